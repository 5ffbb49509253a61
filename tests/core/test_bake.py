from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.core.image import (
    RULE,
    SERVICE,
    ImageUnit,
    Wanted,
    interrupted,
    joined,
    results,
    taken_back,
    wanted_rule,
    wanted_sections,
    wanted_service,
)
from nfstuned.core.nconnect.persist import with_sections
from nfstuned.model.change import Change, ChangeKind, FileStep, Link, Placement, settled
from nfstuned.model.mounts import Result
from nfstuned.model.system import Unit
from nfstuned.parse.etc.nfsmount import PERSISTED

UNIT = "usr/lib/systemd/system/nfstuned.service"
TEXT = (Path(__file__).parents[2] / "systemd/nfstuned.service").read_text()
LINK = "etc/systemd/system/multi-user.target.wants/nfstuned.service"
INSTALLED = Unit(installed=True)


def summary(changes: tuple[Change, ...]) -> list[tuple[ChangeKind, str, Result]]:
    return [(one.kind, one.target, one.result) for one in changes]


def test_the_service_is_started_by_its_units_targets() -> None:
    wanted = wanted_service(ImageUnit(INSTALLED, UNIT, TEXT))
    assert wanted.contents == {LINK: Link(f"/{UNIT}")}
    assert summary(wanted.changes) == [(ChangeKind.SERVICE, SERVICE, Result.PLANNED)]


@pytest.mark.parametrize(
    "install",
    [
        "",
        "[Install]\nAlias=a.service\n",
        "[Install]\nWantedBy=\n",
        "[Unit]\nWantedBy=a.target\n",
        "[Install]\nWantedBy=%i.target a/b.target\n",
    ],
)
def test_a_unit_that_names_no_target_is_not_started(install: str) -> None:
    wanted = wanted_service(ImageUnit(INSTALLED, UNIT, install))
    assert (dict(wanted.contents), summary(wanted.changes)) == (
        {},
        [(ChangeKind.SERVICE, SERVICE, Result.FAILED)],
    )


def test_a_target_that_is_named_twice_has_one_link() -> None:
    text = "[Install]\nWantedBy=a.target a.target\nWantedBy=a.target\nRequiredBy=a.target\n"
    names = [path.split("/")[3] for path in wanted_service(ImageUnit(INSTALLED, UNIT, text)).contents]
    assert names == ["a.target.wants", "a.target.requires"]


@pytest.mark.parametrize(
    ("service", "old"),
    [
        (ImageUnit(Unit()), "not installed"),
        (ImageUnit(Unit(installed=True, masked=True), UNIT, TEXT), "masked"),
        (ImageUnit(Unit(masked=True)), "masked"),
    ],
)
def test_a_service_that_cannot_be_started_is_reported(service: ImageUnit, old: str) -> None:
    (change,) = wanted_service(service).changes
    assert (change.old, change.new, change.place, change.result) == (old, "enabled", "", Result.FAILED)


def test_a_service_that_something_starts_already_is_left() -> None:
    assert wanted_service(ImageUnit(Unit(installed=True, enabled=True), UNIT, TEXT)) == Wanted()


def test_the_rule_needs_awk_and_no_service() -> None:
    assert (
        summary(wanted_rule(b"rule", has_awk=False, linked=False, starts=False).changes)[0][2]
        is Result.FAILED
    )
    wanted = wanted_rule(b"rule", has_awk=True, linked=True, starts=True)
    assert wanted.contents == {RULE: b"rule"}
    assert [one.result for one in wanted.changes] == [Result.PLANNED, Result.SKIPPED]
    assert wanted.changes[1].reason.endswith("systemctl --root=DIR disable nfstuned.service")


def test_a_service_that_a_preset_will_start_has_to_be_masked() -> None:
    (_, service) = wanted_rule(b"rule", has_awk=True, linked=False, starts=True).changes
    assert "first boot" in service.reason
    assert service.reason.endswith("systemctl --root=DIR mask nfstuned.service")


def section(name: str, old: int | None, new: int | None, result: Result = Result.PLANNED) -> Change:
    return Change(ChangeKind.PERSIST, name, old, new, result, "why")


def test_sections_are_compared_with_the_images_own() -> None:
    planned = (section("a", None, 8), section("b", None, 8), section("x", None, 4, Result.SKIPPED))
    wanted = wanted_sections(planned, {"a": 8, "b": 8}, {"a": 8, "old": 4}, with_sections({"a": 8, "b": 8}))
    assert [(one.target, one.old, one.new, one.result) for one in wanted.changes] == [
        ("b", None, 8, Result.PLANNED),
        ("old", 4, None, Result.PLANNED),
        ("x", None, 4, Result.SKIPPED),
    ]
    assert wanted.changes[1].reason == "nothing asks for it any more"
    assert list(wanted.contents) == [PERSISTED[1:]]


def test_a_drop_in_without_sections_goes_as_a_file() -> None:
    wanted = wanted_sections((), {}, {"a": 8}, None)
    steps = (Placement(PERSISTED[1:], FileStep.REMOVE),)
    assert summary(results(wanted, steps)) == [(ChangeKind.FILE, PERSISTED, Result.PLANNED)]


def test_a_change_has_the_result_of_its_file() -> None:
    def change(path: str) -> Change:
        return Change(ChangeKind.PARAMETER, path, 1, 2, Result.PLANNED, "why", f"/{path}")

    names = ("written", "same", "refused")
    wanted = joined(Wanted((change(name),), {name: b""}) for name in names)
    steps = (
        Placement("written", FileStep.WRITE),
        Placement("same", FileStep.SAME),
        Placement("refused", FileStep.REFUSE, "foreign"),
        Placement("gone", FileStep.REMOVE),
        Placement("kept", FileStep.KEEP, "edited"),
    )
    changes = settled(results(wanted, steps), Result.DONE)
    assert [(one.place, one.result, one.reason) for one in changes] == [
        ("/written", Result.DONE, "why"),
        ("/refused", Result.FAILED, "foreign"),
        ("/gone", Result.DONE, "nothing asks for it any more"),
        ("/kept", Result.SKIPPED, "edited"),
    ]
    half = interrupted(changes, {"/gone"}, "no space")
    assert [(one.place, one.reason) for one in half if one.result is Result.FAILED] == [
        ("/written", "no space"),
        ("/refused", "foreign"),
    ]


def test_a_removal_and_a_restored_text_differ() -> None:
    steps = (
        Placement("a", FileStep.REMOVE),
        Placement("b", FileStep.REMOVE),
        Placement("c", FileStep.KEEP, "edited"),
    )
    changes = taken_back(steps, {"b"})
    assert [(one.new, one.result) for one in changes] == [
        ("removed", Result.PLANNED),
        ("as before", Result.PLANNED),
        (None, Result.FAILED),
    ]
