from __future__ import annotations

import pytest

from nfstuned.core.image import plan_files, plan_removal
from nfstuned.model.change import FileStep, Installed, Link
from nfstuned.parse.etc.installed import digest

TEXT, BEFORE = b"new", "before"
OLD, NEW, OTHER = "0" * 64, digest(TEXT), "2" * 64
COMMAND = "install-files"
UNIT = "usr/local/lib/systemd/system/nfstuned.service"


def known(*digests: str) -> Installed:
    return Installed({UNIT: digests} if digests else {})


@pytest.mark.parametrize(
    ("found", "ours", "step"),
    [
        (None, (), FileStep.WRITE),
        (None, (OLD,), FileStep.WRITE),
        (NEW, (), FileStep.SAME),
        (NEW, (NEW,), FileStep.SAME),
        (OLD, (OLD,), FileStep.WRITE),
        (OLD, (NEW, OLD), FileStep.WRITE),
        (OLD, (), FileStep.REFUSE),
        ("", (), FileStep.REFUSE),
        (OTHER, (OLD,), FileStep.REFUSE),
        ("", (OLD,), FileStep.REFUSE),
    ],
)
def test_only_a_missing_or_unchanged_file_is_written(
    found: str | None, ours: tuple[str, ...], step: FileStep
) -> None:
    (one,) = plan_files({UNIT: TEXT}, {UNIT: found}, known(*ours), COMMAND)
    assert one.step is step
    assert bool(one.reason) is (step is FileStep.REFUSE)


def test_a_refusal_says_whether_the_file_ever_was_ours() -> None:
    (foreign,) = plan_files({UNIT: TEXT}, {UNIT: OTHER}, known(), COMMAND)
    (edited,) = plan_files({UNIT: TEXT}, {UNIT: OTHER}, known(OLD), COMMAND)
    assert "not written by install-files" in foreign.reason
    assert "changed after" in edited.reason


@pytest.mark.parametrize(
    ("found", "steps"),
    [(OLD, [FileStep.REMOVE]), (OTHER, [FileStep.KEEP]), ("", [FileStep.KEEP]), (None, [])],
)
def test_only_an_unchanged_file_is_removed(found: str | None, steps: list[FileStep]) -> None:
    assert [one.step for one in plan_removal({UNIT: found}, known(OLD), COMMAND)] == steps


def test_a_file_that_a_newer_version_does_not_have_is_removed_by_it() -> None:
    steps = plan_files({"usr/local/new": TEXT}, {"usr/local/new": None, UNIT: OLD}, known(OLD), COMMAND)
    assert [(one.path, one.step) for one in steps] == [
        ("usr/local/new", FileStep.WRITE),
        (UNIT, FileStep.REMOVE),
    ]


def test_a_link_is_known_by_where_it_leads() -> None:
    link = Link("/usr/lib/systemd/system/nfstuned.service")
    (same,) = plan_files({UNIT: link}, {UNIT: digest(link)}, known(), COMMAND)
    (other,) = plan_files({UNIT: link}, {UNIT: digest(Link("/dev/null"))}, known(), COMMAND)
    assert (same.step, other.step) == (FileStep.SAME, FileStep.REFUSE)


def test_a_file_with_its_earlier_text_needs_no_removal() -> None:
    installed = Installed({UNIT: (NEW,)}, before={UNIT: BEFORE})
    assert plan_removal({UNIT: digest(BEFORE.encode())}, installed, COMMAND) == ()
    (one,) = plan_removal({UNIT: NEW}, installed, COMMAND)
    assert one.step is FileStep.REMOVE
