from __future__ import annotations

from nfstuned.core.readahead.plan import Contest


def test_the_fourth_change_within_a_minute_ends_it() -> None:
    contest = Contest()
    for now in (0.0, 10.0, 20.0):
        contest = contest.continued(now)
        assert not contest.left
    assert contest.continued(59.9).left


def test_changes_more_than_a_minute_apart_never_end_it() -> None:
    contest = Contest()
    for now in range(0, 6000, 31):
        contest = contest.continued(float(now))
    assert not contest.left
    assert len(contest.times) <= 3


def test_what_was_left_stays_left() -> None:
    left = Contest(left=True)
    assert left.continued(1e9).left
