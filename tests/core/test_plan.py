from __future__ import annotations

from dataclasses import replace

import pytest

from nfstuned.core.policy.plan import Contest, changed_by_another, plan_superblock, superblock_name
from nfstuned.model.kernel import Mount, Options
from nfstuned.model.mounts import Decision, Hold, Outcome, Record, Result, Superblock

UNTOUCHED = Superblock("0:43", 7001, 128)
TUNED = UNTOUCHED._replace(read_ahead_kb=15360, record=Record("0:43", 7001, 128, 15360))


def decision(kb: int | None, *, lower: bool = False) -> Decision:
    return Decision(kb=kb, profile="azure-files", provider="azure-files", lower=lower, why="because")


def new_kb(superblock: Superblock, wanted: Decision, page_kb: int = 4) -> int | None:
    outcome = plan_superblock(superblock, wanted, page_kb)
    return None if outcome is None else outcome.action.new_kb


def test_a_default_is_raised() -> None:
    outcome = plan_superblock(UNTOUCHED, decision(15360), 4)
    assert outcome is not None
    assert outcome.result is Result.PLANNED
    assert (outcome.action.bdi, outcome.action.old_kb, outcome.action.new_kb) == (7001, 128, 15360)


@pytest.mark.parametrize(("lower", "expected"), [(False, None), (True, 1024)])
def test_only_a_profile_that_says_so_lowers(lower: bool, expected: int | None) -> None:  # noqa: FBT001
    high = UNTOUCHED._replace(read_ahead_kb=16384)
    assert new_kb(high, decision(1024, lower=lower)) == expected


@pytest.mark.parametrize(("found", "expected"), [(128, 15360), (4096, 15360), (16384, None), (0, 15360)])
def test_another_writers_value_is_replaced_only_when_it_is_lower(found: int, expected: int | None) -> None:
    contested = TUNED._replace(read_ahead_kb=found)
    assert changed_by_another(contested)
    assert new_kb(contested, decision(15360)) == expected


def test_an_undone_superblock_is_left_alone() -> None:
    undone = UNTOUCHED._replace(record=Record("0:43", 7001, 128, 128, hold=Hold.UNDONE))
    outcome = plan_superblock(undone, decision(15360), 4)
    assert outcome is not None
    assert outcome.result is Result.SKIPPED
    assert not changed_by_another(undone._replace(read_ahead_kb=64))


HIDDEN = (UNTOUCHED._replace(bdi=None), UNTOUCHED._replace(read_ahead_kb=None))


@pytest.mark.parametrize("block", [TUNED, *HIDDEN])
def test_the_right_value_and_a_superblock_without_a_readable_bdi_need_nothing(block: Superblock) -> None:
    assert plan_superblock(block, decision(15360), 4) is None


def test_a_superblock_is_called_by_its_first_mount_point() -> None:
    mount = Mount(30, 1, "0:43", "/", "/mnt/a b", "nfs4", "sa1:/a", Options())
    assert superblock_name(UNTOUCHED) == "0:43"
    assert superblock_name(UNTOUCHED._replace(mounts=(mount, replace(mount, point="/mnt/c")))) == "/mnt/a b"
    outcome = plan_superblock(UNTOUCHED._replace(mounts=(mount,)), decision(15360), 4)
    assert isinstance(outcome, Outcome)
    assert outcome.action.target == "/mnt/a b"


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
