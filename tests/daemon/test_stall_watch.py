"""The reports of stalls, and the file of them for other commands."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from nfstuned.daemon.reporter import Reporter
from nfstuned.daemon.sampler import StallWatch
from nfstuned.host.observe import read_stalls
from nfstuned.host.root import Root
from nfstuned.model.samples import LATE_S, Counted, Stall
from tests.core.test_stalls import at, superblock, xprt
from tests.host.entries import Entries
from tests.parse.test_sunrpc import WAITS, asked

V41 = "v4.1 tcp 10.10.10.10:2049"
TASKS = "sys/kernel/debug/sunrpc/rpc_clnt/a/tasks"


class Host:
    """A host with one mount, whose requests wait while `waits` is true."""

    def __init__(self, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tree, self.monkeypatch = tree, monkeypatch
        self.sent = Entries()
        asked(tree, "a", "")
        self.root = Root(str(tree))
        self.watch = StallWatch(self.root, Reporter(self.sent.journal))

    def look(
        self, seconds: float, *, waits: bool, mounted: Counted | None = None, gone: bool = False
    ) -> None:
        (self.tree / TASKS).write_text(WAITS if waits else "")
        look = at(seconds, mounted or mount(21 if waits else 20, 20))
        if gone:
            look = type(look)(look.time, seconds)
        self.watch.add_look(look, seconds + 60)

    def stall(self) -> None:
        """Look twice while a request waits: the stall is known after 15 s."""
        for seconds in (0, 15):
            self.look(seconds, waits=True)

    def told(self) -> list[tuple[str, str]]:
        return [(name, entry["MESSAGE"]) for name, entry in zip(self.sent.names(), self.sent, strict=True)]

    def known_at(self, now: float) -> Mapping[tuple[str, int | None], Stall] | None:
        """Return the stalls that another command learns at a time."""
        self.monkeypatch.setattr(time, "monotonic", lambda: now)
        found = read_stalls(self.root)
        return found.stalls if found is not None else None


def mount(sends: int, receives: int, **counts: int) -> Counted:
    """Return the counters of the mount."""
    return superblock("0:43", V41, transports=xprt(sends=sends, receives=receives), **counts)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


def ended(seconds: int) -> tuple[str, str]:
    """Return the report of a stall's end."""
    return "STALL_ENDED", f"/mnt/0:43: answers again after {seconds} s, server 10.10.10.10:2049"


def test_a_stall_is_reported_once_and_so_is_its_end(host: Host) -> None:
    for seconds in (0, 5, 10, 15, 20, 80):
        host.look(seconds, waits=True)
    for seconds in (85, 145):
        host.look(seconds, waits=False, mounted=mount(22, 22, reads=11))
    stalled = "stalled: a request waits for an answer (WRITE), since 15 s, server 10.10.10.10:2049"
    assert host.told() == [("STALLED", f"/mnt/0:43: {stalled}"), ended(85)]
    begin, end = host.sent
    assert (begin["NFSTUNED_SINCE"], end["NFSTUNED_SINCE"]) == ("1000000000.0", "1000000000.0")
    assert (begin["NFSTUNED_REQUESTS"], begin["NFSTUNED_OPERATIONS"]) == ("1", "WRITE")
    assert (end["NFSTUNED_STALLED_S"], end["NFSTUNED_REASON"]) == ("85", "answered")


def test_a_server_in_its_grace_answers_and_nobody_is_served_before_its_end(host: Host) -> None:
    host.stall()
    for turn, seconds in enumerate((20, 35, 50, 65, 80), 1):
        refused = mount(21 + turn, 21 + turn, reads=10 + turn, refused=turn)
        host.look(seconds, waits=False, mounted=refused)
        assert host.watch.due_s == seconds + 5
    assert [stall.recovering for stall in (host.known_at(81.0) or {}).values()] == [True]
    assert host.sent.names() == ["STALLED"]
    host.look(85, waits=False, mounted=mount(30, 30, reads=16, refused=5))
    assert host.told()[1:] == [ended(85)]
    assert host.watch.due_s == float("inf")


def test_a_server_that_answers_everything_with_an_error_is_not_in_its_grace_for_ever(host: Host) -> None:
    """It came back without its export, and a monitor asks every 20 s."""
    host.stall()
    for turn, seconds in enumerate(range(20, 400, 20), 1):
        refused = mount(21 + turn, 21 + turn, reads=10 + turn, refused=turn)
        host.look(seconds, waits=False, mounted=refused)
    assert host.told()[1:] == [ended(320)]


def test_where_nobody_asks_any_more_the_recovery_ends(host: Host) -> None:
    host.stall()
    for seconds in (20, 40, 45):
        host.look(seconds, waits=False, mounted=mount(22, 22, renewals=2))
    assert host.sent.names() == ["STALLED", "STALL_ENDED"]


def test_a_server_that_is_silent_again_while_it_recovers_is_the_same_stall(host: Host) -> None:
    host.stall()
    host.look(20, waits=False, mounted=mount(22, 22, reads=11, refused=1))
    for seconds in (25, 40, 60):
        host.look(seconds, waits=True, mounted=mount(23, 22, reads=11, refused=1))
    assert [stall.since_s for stall in host.watch.stalled(60).stalls.values()] == [0.0]
    assert host.sent.names() == ["STALLED"]


def test_a_stall_without_an_answer_ends_as_given_up_or_unmounted(host: Host) -> None:
    host.stall()
    host.look(20, waits=False, mounted=mount(21, 20))
    for seconds in (30, 45):
        host.look(seconds, waits=True, mounted=mount(22, 20))
    host.look(50, waits=False, gone=True)
    reasons = [entry["NFSTUNED_REASON"] for entry in host.sent if "NFSTUNED_REASON" in entry]
    assert reasons == ["given up", "unmounted"]


def test_the_next_look_is_soon_only_while_a_request_waits(host: Host) -> None:
    host.look(0, waits=False)
    assert host.watch.due_s == float("inf")
    host.look(60, waits=True)
    assert host.watch.due_s == 65
    host.look(65, waits=False)
    assert host.watch.due_s == float("inf")


def test_unreadable_tasks_are_reported_once_and_the_connections_are_followed(host: Host) -> None:
    for seconds in (0, 15, 30):
        (host.tree / TASKS).write_text(f"new format {seconds}\n")
        silent = superblock("0:43", "v3 tcp 10.10.10.10:2049", transports=xprt(sends=20 + (seconds > 0)))
        host.watch.add_look(at(seconds, silent), seconds + 60)
    assert host.sent.names() == ["UNREADABLE", "STALLED"]
    assert host.sent[1]["NFSTUNED_REQUESTS"] == "unknown"


def test_other_commands_learn_it_as_long_as_the_service_looks(host: Host) -> None:
    host.stall()
    assert host.known_at(16.0) == {("0:43", 43): Stall(0, 1, ("WRITE",))}
    assert (host.known_at(20.1 + LATE_S), host.known_at(14.0)) == (None, None)


def test_the_file_for_other_commands_is_never_stale(host: Host) -> None:
    file = host.tree / "run/nfstuned/stalled.json"
    written = set()
    for seconds in range(0, 300, 10):
        host.look(seconds, waits=False)
        written.add(file.stat().st_mtime_ns)
        assert (host.known_at(seconds), host.known_at(seconds + 9.9)) == ({}, {})
    assert 1 < len(written) < 30
    for seconds in (300, 315):
        host.look(seconds, waits=True)
    assert host.known_at(315.0)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"looked_s": 0, "next_s": 1e9, "stalled": [[1]]}', "[" * 10_000]
)
def test_a_damaged_file_is_no_file(host: Host, text: str) -> None:
    host.look(0, waits=False)
    (host.tree / "run/nfstuned/stalled.json").write_text(text)
    assert read_stalls(host.root) is None
