"""Connections that are added to a model of the kernel, with any step failing in any way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.nconnect.live import carry_out, idle_connections
from nfstuned.model.kernel import Transport
from nfstuned.model.mounts import Result
from tests.core.living import FOUR, Line, Sunrpc, seen, the_plan

TWO = ["xprt-0-tcp", "xprt-1-tcp"]


def failing(step: str, how: str = "refused") -> Callable[[str, str], str]:
    return lambda done, name: how if f"{done} {name}" == step else ""


def names(kernel: Sunrpc) -> list[str]:
    return [one.name for one in kernel.lines]


def reason(kernel: Sunrpc, result: Result = Result.FAILED) -> str:
    (ended,) = carry_out(the_plan(), kernel)
    assert (ended.target, ended.old, ended.new, ended.result) == ("/a", 2, 4, result), ended
    assert (ended.mounted, ended.command) == (True, None)
    return ended.reason


def carried(sends: int, receives: int) -> Transport:
    return Transport("tcp", None, 1, 0, sends, receives, 0, 0, 0)


def test_each_carries_requests_before_the_next_one_comes() -> None:
    kernel = Sunrpc()
    assert reason(kernel, Result.DONE) == "/etc/fstab:1 asks for nconnect=4"
    assert kernel.calls == ["answers 2", "ask 16", "add xprt-2-tcp", "ask 24", "add xprt-3-tcp", "ask 32"]
    assert all(one.sends > 0 for one in kernel.lines)
    assert len(kernel.lines) == 4


@pytest.mark.parametrize(
    ("step", "how", "said"),
    [
        ("answers 2", "refused", "the server does not answer on 2 further connections (answers refused)"),
        ("ask 16", "lost", "requests over /a come to nothing (no end within 30 s)"),
    ],
)
def test_nothing_is_written_where_it_does_not_work_before(step: str, how: str, said: str) -> None:
    kernel = Sunrpc(fails=failing(step, how))
    assert reason(kernel) == f"{said}; nothing was changed"
    assert not [call for call in kernel.calls if call.startswith("add")]


def test_a_connection_that_carries_nothing_before_is_a_reason_to_add_none() -> None:
    kernel = Sunrpc()
    kernel.odd["xprt-1-tcp"] = "unused"
    assert reason(kernel) == "1 connection of 2 carried none of 16 requests; nothing was changed"


def test_a_port_that_shows_when_it_is_connected_counts() -> None:
    kernel = Sunrpc()
    kernel.lines[1].port = 783
    assert "xprt-1-tcp comes from a port of at most 1023" in reason(kernel)
    kernel.lines[1].port = 0
    assert reason(kernel) == "from which port xprt-1-tcp comes is not known; nothing was changed"
    assert names(kernel) == TWO


def test_connections_that_are_not_those_of_the_plan_are_left() -> None:
    kernel = Sunrpc(count=3)
    assert reason(kernel) == "its connections have changed since this was shown; nothing was changed"
    kernel.gone = True
    assert reason(kernel) == "its connections have changed since this was shown; nothing was changed"
    assert kernel.calls == []


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("unused", "connection 4: 1 connection of 4 carried none of 32 requests"),
        ("denied", "connection 4: requests over /a come to nothing (Operation not permitted)"),
        ("refused", "connection 4: add refused"),
        ("silent", "connection 4: 0 connections appeared where one was added"),
        ("late", "connection 4: add refused"),
    ],
)
def test_one_that_does_not_carry_takes_all_back(how: str, said: str) -> None:
    kernel = Sunrpc(fails=failing("add xprt-3-tcp", how))
    text = reason(kernel)
    assert text.startswith(
        f"{said}; what was added was taken back, and 2 connections carry requests as before"
    )
    assert [one.name for one in kernel.lines if not one.state] == TWO
    assert "offline xprt-2-tcp" in kernel.calls


def test_one_that_never_connects_stays_listed_and_that_is_said() -> None:
    kernel = Sunrpc(fails=failing("add xprt-2-tcp", "stuck"))
    assert reason(kernel) == (
        "connection 3: requests over /a come to nothing (no end within 30 s); what was added was taken back, "
        "and 2 connections carry requests as before; xprt-2-tcp stays listed, switched off, until they are "
        "unmounted"
    )
    assert kernel.calls[-4:] == ["offline xprt-2-tcp", "settle xprt-2-tcp", "remove xprt-2-tcp", "ask 16"]
    assert [one.name for one in kernel.lines if not one.state] == TWO


def test_what_cannot_be_taken_back_is_said() -> None:
    def fails(step: str, name: str) -> str:
        return {"add xprt-2-tcp": "unused", "offline xprt-2-tcp": "refused"}.get(f"{step} {name}", "")

    assert reason(Sunrpc(fails=fails)).endswith(
        "it has 3 connections now, which could not all be taken back (offline refused): "
        "unmount all mounts of the server, then mount again"
    )


def test_requests_that_fail_in_the_end_are_said() -> None:
    def fails(step: str, name: str) -> str:
        del name
        if step == "ask" and kernel.calls[-1].startswith("remove"):
            return "lost"
        return "unused" if step == "add" else ""

    kernel = Sunrpc(fails=fails)
    assert (
        "; what was added was taken back, and requests still come to nothing (no end within 30 s); xprt-2-tcp"
    ) in reason(kernel)


def test_a_signal_takes_back_what_was_added() -> None:
    def interrupt(kernel: Sunrpc) -> None:
        if len(kernel.lines) == 3:
            kernel.signal = "interrupted by SIGINT"

    kernel = Sunrpc(rivals=interrupt)
    assert reason(kernel).startswith("connection 4: interrupted by SIGINT; what was added was taken back")
    assert names(kernel) == TWO


def test_a_mount_that_goes_meanwhile_is_no_longer_touched() -> None:
    def unmount(kernel: Sunrpc) -> None:
        kernel.gone = len(kernel.lines) == 3

    kernel = Sunrpc(rivals=unmount)
    assert reason(kernel).endswith("; the mount is gone, and its connections with it")


def test_another_program_that_adds_some_is_noticed() -> None:
    def add(kernel: Sunrpc) -> None:
        if len(kernel.lines) == 3:
            kernel.lines.append(Line("xprt-9-tcp", 50_000, sends=0, receives=0))

    kernel = Sunrpc(rivals=add)
    assert "mountstats shows 4 connections, and 3 should be in use" in reason(kernel)
    assert "xprt-2-tcp" not in names(kernel)
    assert "xprt-9-tcp" in names(kernel), "it is not ours"


def test_every_mount_of_the_group_has_the_outcome() -> None:
    plan = replace(the_plan(), points=("/a", "/b"))
    assert [change.target for change in carry_out(plan, Sunrpc())] == ["/a", "/b"]
    assert the_plan(FOUR).switch == seen()


def test_requests_without_replies_are_not_carried() -> None:
    before = [carried(5, 5), carried(5, 5)]
    assert idle_connections(before, [carried(6, 6), carried(6, 5)]) == (1,)
    assert idle_connections(before, [carried(6, 6), carried(6, 6), carried(0, 0)]) == (2,)
    assert idle_connections(before, [carried(6, 6), carried(6, 6), carried(1, 1)]) == ()
    assert idle_connections(before, [carried(0, 0), carried(6, 6)]) == (0,), "it began anew"


ADDS = st.sampled_from(["", "", "refused", "silent", "late", "stuck", "denied", "unused"])
ASKS = st.sampled_from(["", "", "", "", "lost"])


@given(st.dictionaries(st.sampled_from(["xprt-2-tcp", "xprt-3-tcp"]), ADDS), st.lists(ASKS, max_size=5))
def test_either_all_carry_or_the_mount_is_as_it_was(adds: dict[str, str], asks: list[str]) -> None:
    left = list(asks)

    def fails(step: str, name: str) -> str:
        if step == "ask":
            return left.pop(0) if left else ""
        return adds.get(name, "") if step == "add" else ""

    kernel = Sunrpc(fails=fails)
    (ended,) = carry_out(the_plan(), kernel)
    active = [one for one in kernel.lines if not one.state]
    if ended.result is Result.DONE:
        assert len(active) == 4
        assert all(one.receives > 0 for one in active)
    else:
        assert [one.name for one in active] == TWO
        assert "could not" not in ended.reason
