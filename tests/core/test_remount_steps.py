"""A remount on a model of the kernel, with any step failing in any way."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.nconnect.remount import remount
from nfstuned.model.change import Change, Left, RemountPlan
from nfstuned.model.mounts import Result
from tests.core.nconnect_hosts import Made, facts
from tests.core.remounting import Kernel, planned, sight, the_plan

BARE = "vers=4.1,proto=tcp"
A = Made("/a", "vers=4.1", BARE, age_s=9)
B = Made("/b", "vers=4.1,nconnect=4", BARE, fstab="vers=4.1,nconnect=4", age_s=5)
POINTS = ("/a", "/a/b", "/a/b/c", "/d", "/d e", "/f/g")


def by_point(ended: tuple[Change, ...]) -> dict[str, Change]:
    return {change.target: change for change in ended}


def failing(*steps: str, how: str = "refused") -> Callable[[str, str], str]:
    return lambda step, point: how if f"{step} {point}".strip() in steps else ""


def test_all_go_then_the_one_that_asks_comes_first() -> None:
    kernel = Kernel({"/a": A, "/b": B})
    ended = remount(the_plan(A, B), kernel)
    assert kernel.calls == ["unmount /b", "unmount /a", "held", "mount /b", "mount /a"]
    assert kernel.mounts == {"/a": 4, "/b": 4}
    assert [(one.target, one.result, one.mounted, one.command) for one in ended] == [
        ("/a", Result.DONE, True, None),
        ("/b", Result.DONE, True, None),
    ]


def test_what_is_busy_brings_back_what_is_gone() -> None:
    kernel = Kernel({"/a": A, "/b": B}, failing("unmount /a"))
    ended = remount(the_plan(A, B), kernel)
    assert kernel.calls == ["unmount /b", "unmount /a", "mount /b"]
    assert kernel.mounts == {"/a": 1, "/b": 1}
    assert {one.result for one in ended} == {Result.FAILED}
    assert by_point(ended)["/b"].reason == (
        "/a could not be unmounted: unmount refused; it is mounted and has nconnect=1"
    )


def test_connections_that_something_else_holds_are_left_as_they_are() -> None:
    kernel = Kernel({"/a": A, "/b": B}, failing("held"))
    ended = remount(the_plan(A, B), kernel)
    assert set(kernel.mounts) == {"/a", "/b"}
    assert {one.result for one in ended} == {Result.FAILED}


def test_a_mount_that_is_refused_leaves_no_other_one_away() -> None:
    kernel = Kernel({"/a": A, "/b": B}, failing("mount /a"))
    ended = by_point(remount(the_plan(A, B), kernel))
    assert kernel.mounts == {"/b": 4}
    assert (ended["/a"].mounted, str(ended["/a"].command)) == (
        False,
        "mount -t nfs4 -o vers=4.1 -- nas:/srv /a",
    )
    assert (ended["/b"].mounted, ended["/b"].result) == (True, Result.DONE)
    assert "mount refused" in ended["/a"].reason


def test_a_unit_that_is_refused_is_mounted_as_it_was() -> None:
    calls: list[str] = []

    def first_time(step: str, point: str) -> str:
        calls.append(f"{step} {point}")
        return "refused" if calls.count("mount /b") == 1 and calls[-1] == "mount /b" else ""

    kernel = Kernel({"/a": A, "/b": B}, first_time)
    ended = by_point(remount(the_plan(A, B), kernel))
    assert kernel.calls[-3:] == ["mount /b", "mount /b", "mount /a"]
    assert set(kernel.mounts) == {"/a", "/b"}
    assert ended["/b"].result is Result.FAILED
    assert "systemctl start -- b.mount" in ended["/b"].reason


def test_a_server_that_went_away_leaves_the_commands_to_finish() -> None:
    kernel = Kernel({"/a": A, "/b": B}, lambda step, _: "refused" if step == "mount" else "")
    ended = by_point(remount(the_plan(A, B), kernel))
    assert kernel.mounts == {}
    assert {point: str(one.command) for point, one in ended.items()} == {
        "/a": "mount -t nfs4 -o vers=4.1 -- nas:/srv /a",
        "/b": "systemctl start -- b.mount",
    }


def test_what_lies_in_a_mount_that_is_missing_is_not_mounted_below_it() -> None:
    inner = Made("/b/c", "vers=4.1", BARE)
    kernel = Kernel({"/b": B, "/b/c": inner}, failing("mount /b"))
    ended = by_point(remount(the_plan(B, inner), kernel))
    assert kernel.mounts == {}
    assert ended["/b/c"].reason == "not mounted now: it lies in /b"


def test_an_automount_that_was_quicker_is_no_accident_where_it_has_the_number() -> None:
    kernel = Kernel({"/a": A, "/b": B})

    class Eager:
        """Somebody goes to /b as soon as it is gone."""

        def __getattr__(self, name: str) -> object:
            return getattr(kernel, name)

        def held(self, plan: RemountPlan) -> str:
            del plan
            kernel.count = kernel.mounts["/b"] = 4
            return "something still uses the connections"

    ended = remount(the_plan(A, B), Eager())  # type: ignore[arg-type]  # it has what Kernel has
    assert kernel.mounts == {"/a": 4, "/b": 4}
    assert {one.result for one in ended} == {Result.DONE}


@st.composite
def _hosts(draw: st.DrawFn) -> tuple[list[Made], list[RemountPlan | Left]]:
    """Return the mounts of a random host, and what is planned for them."""
    points = draw(st.lists(st.sampled_from(POINTS), min_size=1, unique=True))
    shown = draw(st.sampled_from([BARE, f"{BARE},nconnect=2"]))
    asked = st.sampled_from(["vers=4.1", "vers=4.1,nconnect=2", "vers=4.1,nconnect=4,nosuid"])
    made = []
    for point in points:
        options = draw(asked)
        fstab = draw(st.sampled_from([None, options, "vers=4.1,nconnect=4"]))
        made.append(Made(point, options, shown, fstab=fstab))
    found = facts(*made)
    return made, planned(found, sight(found, systemd=draw(st.booleans())))


_HOW = st.sampled_from(["", "", "", "refused", "silent", "late"])


@given(st.data(), _hosts())
def test_whatever_fails_every_mount_is_back_or_named(
    data: st.DataObject, host: tuple[list[Made], list[RemountPlan | Left]]
) -> None:
    made, plans = host
    for plan in plans:
        if isinstance(plan, RemountPlan):
            kernel = Kernel({one.point: one for one in made}, lambda *_: data.draw(_HOW))
            ended = remount(plan, kernel)
            assert [one.target for one in ended] == sorted(kernel.made)
            assert {one.target for one in ended if one.mounted} == set(kernel.mounts)
            for one in ended:
                assert (one.command is None) is one.mounted
                assert one.result is not Result.DONE or kernel.mounts[one.target] == plan.new
            _finish(kernel, ended)


@given(_hosts())
def test_where_nothing_fails_all_have_the_number(host: tuple[list[Made], list[RemountPlan | Left]]) -> None:
    made, plans = host
    for plan in plans:
        if isinstance(plan, RemountPlan):
            kernel = Kernel({one.point: one for one in made})
            ended = remount(plan, kernel)
            assert kernel.mounts == dict.fromkeys(kernel.made, plan.new)
            assert {one.result for one in ended} == {Result.DONE}


@given(st.data(), _hosts())
def test_where_only_unmounting_fails_every_mount_is_back(
    data: st.DataObject, host: tuple[list[Made], list[RemountPlan | Left]]
) -> None:
    made, plans = host
    for plan in plans:
        if isinstance(plan, RemountPlan):
            kernel = Kernel(
                {one.point: one for one in made}, lambda step, _: "" if step == "mount" else data.draw(_HOW)
            )
            ended = remount(plan, kernel)
            assert set(kernel.mounts) == set(kernel.made)
            assert all(one.mounted for one in ended)


def _finish(kernel: Kernel, ended: tuple[Change, ...]) -> None:
    """Do what the outcomes say is left to do: then everything is there again."""
    kernel.fails = lambda _step, _point: ""
    for one in ended:
        if one.command is not None:
            assert kernel.mount(one.command) == ""
    assert set(kernel.mounts) == set(kernel.made)


@pytest.mark.parametrize("how", ["refused", "silent", "late"])
def test_only_what_mountinfo_says_counts(how: str) -> None:
    kernel = Kernel({"/a": A, "/b": B}, failing("unmount /b", how=how))
    ended = remount(the_plan(A, B), kernel)
    assert {one.result for one in ended} == {Result.DONE if how == "late" else Result.FAILED}
    assert set(kernel.mounts) == {"/a", "/b"}
