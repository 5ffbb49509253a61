"""When the loop ticks, tries again, and asks for nfstuned-persist.service in mode persist."""

from __future__ import annotations

import errno
import gc
import math
import os
import signal
import socket
import time
import weakref
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from threading import Timer
from typing import ClassVar

import pytest

from nfstuned.daemon import loop
from nfstuned.daemon.loop import COLLECT_S, REPEAT_S, Daemon, Persister, next_tick
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Message
from nfstuned.host.telemetry.sinks import REQUEST
from nfstuned.model.mounts import Snapshot
from nfstuned.model.policy import ConfigError, Policy, UnvalidatedError
from tests.core.nconnect_hosts import Made, facts
from tests.host.entries import Entries
from tests.tree import put

WANTED = Policy((), nconnect_mode="persist")


class Host:
    """A persister, the file that it makes, and what it tells the journal."""

    def __init__(self, tree: Path) -> None:
        self.file = tree / REQUEST
        self.entries = Entries()
        self.now = 0.0
        self.persister = Persister(Root(str(tree)), self.entries.journal, lambda: self.now)

    def asks(self, snapshot: Snapshot, policy: Policy | None = WANTED) -> bool:
        """Return whether the service is asked for; as systemd does, take the file away then."""
        self.persister.offer(snapshot, policy)
        asked = self.file.exists()
        if asked:
            self.file.unlink()
        return asked


@pytest.fixture
def here(tmp_path: Path) -> Host:
    (tmp_path / "run/nfstuned").mkdir(parents=True)
    return Host(tmp_path)


def mounted(*sources: str) -> Snapshot:
    return facts(*(Made(f"/{n}", source=source) for n, source in enumerate(sources))).snapshot


@pytest.mark.parametrize("policy", [None, replace(WANTED, nconnect_mode="advise")])
def test_nothing_is_asked_in_another_mode(here: Host, policy: Policy | None) -> None:
    assert not here.asks(mounted("nas:/a"), policy)


def test_a_new_configuration_is_a_reason_without_a_server(here: Host) -> None:
    assert here.asks(mounted())
    assert not here.asks(mounted())
    here.persister.start_over()
    assert here.asks(mounted())


def test_a_new_server_is_a_reason_once_and_one_that_comes_and_goes_is_no_news(here: Host) -> None:
    """Automounts expire; each would start a service."""
    assert here.asks(mounted())
    assert here.asks(mounted("nas:/a"))
    for sources in (("nas:/a",), ("nas:/a", "NAS:/b"), (), ("nas:/a",)):
        assert not here.asks(mounted(*sources))
    assert here.asks(mounted("nas:/a", "other:/a"))


def test_known_servers_are_a_reason_after_an_hour(here: Host) -> None:
    """A run that failed for a reason that passes has left its servers unwritten."""
    assert here.asks(mounted("nas:/a"))
    here.now = REPEAT_S - 1
    assert not here.asks(mounted("nas:/a"))
    here.now = REPEAT_S
    assert not here.asks(mounted())
    assert here.asks(mounted("nas:/a"))
    assert not here.asks(mounted("nas:/a"))


def test_once_more_before_it_was_served_is_the_same(here: Host) -> None:
    here.persister.offer(mounted("nas:/a"), WANTED)
    here.persister.offer(mounted("nas:/a", "other:/a"), WANTED)
    assert here.file.exists()
    assert here.entries == []


def test_the_known_servers_have_a_bound(here: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "REMEMBERED", 2)
    assert here.asks(mounted("a:/x", "b:/x"))
    assert here.asks(mounted("c:/x"))
    assert not here.asks(mounted("c:/x"))
    assert here.asks(mounted("a:/x", "c:/x"))


def test_a_failure_is_reported_once_and_tried_again(here: Host) -> None:
    here.file.mkdir()
    for _ in range(3):
        here.persister.offer(mounted("nas:/a"), WANTED)
    (entry,) = here.entries
    assert entry["MESSAGE_ID"] == Message.PERSIST_UNASKED.id
    assert entry["NFSTUNED_FILE"] == str(here.file)
    assert entry["NFSTUNED_REASON"] == "Is a directory"
    here.file.rmdir()
    assert here.asks(mounted("nas:/a"))
    here.file.symlink_to("/nowhere")
    here.persister.offer(mounted("other:/a"), WANTED)
    assert [one["NFSTUNED_REASON"] for one in here.entries[1:]] == ["Too many levels of symbolic links"]


def test_a_tick_is_due_while_there_is_any_period() -> None:
    assert next_tick(100.0, 30.0, 60.0) == 130.0
    assert next_tick(100.0, 0.0, 60.0) == 160.0
    assert math.isinf(next_tick(100.0, 0.0, 0.0))


class Silent:
    """A source without an event."""

    made: ClassVar[list[int]] = []

    def __init__(self, *_: object) -> None:
        self.made.extend(os.pipe())
        self._fd = self.made[-2]

    def fileno(self) -> int:
        return self._fd

    def next(self) -> None:
        return None

    def drain(self) -> tuple[()]:
        return ()


@pytest.fixture
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Daemon, Entries, socket.socket]]:
    """A daemon without events, its journal, and a socket that takes signals' numbers."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").touch()
    put(tmp_path / "etc/nfstuned/nfstuned.toml", "")
    for name in ("KernelEvents", "UdevEvents", "Writes", "MountTable"):
        monkeypatch.setattr(loop, name, Silent)
    receiver, sender = socket.socketpair()
    monkeypatch.setattr(loop, "catch_signals", lambda *_: (receiver, sender))
    monkeypatch.setattr(loop, "notify", lambda _: True)
    monkeypatch.setattr(loop, "CONFIG_AGAIN_S", 0.01)
    entries = Entries()
    with receiver, sender:
        yield Daemon(Root(str(tmp_path)), entries.journal), entries, sender
    while Silent.made:
        os.close(Silent.made.pop())


def test_a_configuration_that_cannot_be_validated_now_is_tried_again_and_reported_once(
    quiet: tuple[Daemon, Entries, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, entries, sender = quiet
    tries = []

    def fail(*_: object) -> None:
        tries.append(time.monotonic())
        if len(tries) == 4:
            sender.send(bytes([signal.SIGTERM]))
        if len(tries) == 2:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        raise UnvalidatedError(("no child",))

    monkeypatch.setattr(loop, "start_load", fail)
    assert daemon.run() == 0
    assert len(tries) == 4
    why = "the configuration cannot be validated: [Errno 24] Too many open files"
    after = "(no mount is tuned; nfstuned tries again)"
    assert entries.texts(Message.CONFIG_INVALID) == [
        f"no child {after}",
        f"{why} {after}",
        f"no child {after}",
    ]
    # Each wait is twice as long.
    assert tries[3] - tries[2] >= 0.04


def test_a_daemon_whose_events_cannot_be_read_can_be_stopped(
    quiet: tuple[Daemon, Entries, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, entries, sender = quiet

    def fail() -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(loop, "start_load", lambda *_: fail())
    monkeypatch.setattr(daemon, "_drain_kernel", fail)
    sender.send(bytes([signal.SIGTERM]))
    assert daemon.run() == 0
    assert entries.texts(Message.STOPPED) == ["stopped"]


def test_a_search_in_which_events_are_lost_is_followed_by_a_rest(
    quiet: tuple[Daemon, Entries, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a storm of mounts each search loses events: one after the other would take a whole processor."""
    daemon, _, sender = quiet
    searches: list[float] = []

    def lose(*, deep: bool) -> None:
        if deep:
            searches.append(time.monotonic())
            time.sleep(0.02)
            daemon._lose_events()  # noqa: SLF001 - as the queue of the kernel's events does
        if len(searches) == 3:
            sender.send(bytes([signal.SIGTERM]))

    def refuse(*_: object) -> None:
        raise ConfigError(("x is wrong",))

    monkeypatch.setattr(loop, "start_load", refuse)
    monkeypatch.setattr(daemon._tuner, "look", lose)  # noqa: SLF001
    assert daemon.run() == 0
    # Ten times as long as the search took.
    assert min(later - before for before, later in pairwise(searches)) >= 0.2


def test_a_tick_collects_garbage_each_ten_minutes(
    quiet: tuple[Daemon, Entries, socket.socket],
) -> None:
    class Cycle:
        def __init__(self) -> None:
            self.itself = self

    daemon, now, left = quiet[0], time.monotonic(), weakref.ref(Cycle())
    gc.disable()
    try:
        daemon._tick(now)  # noqa: SLF001 - with its own time
        assert left() is not None
        daemon._tick(now + COLLECT_S)  # noqa: SLF001
    finally:
        gc.enable()
    assert left() is None


def test_a_wrong_configuration_is_not_tried_again(
    quiet: tuple[Daemon, Entries, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, entries, sender = quiet
    tries = []

    def refuse(*_: object) -> None:
        tries.append(time.monotonic())
        Timer(0.2, sender.send, (bytes([signal.SIGTERM]),)).start()
        raise ConfigError(("x is wrong",))

    monkeypatch.setattr(loop, "start_load", refuse)
    assert daemon.run() == 0
    assert len(tries) == 1
    assert entries.texts(Message.CONFIG_INVALID) == [
        "x is wrong (no mount is tuned until the file is corrected)"
    ]


def test_a_cycle_that_fails_for_ever_is_reported_once_and_a_stop_goes_on(
    quiet: tuple[Daemon, Entries, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, entries, _ = quiet
    cycles = []

    def fail() -> None:
        cycles.append(time.monotonic())
        if len(cycles) == 3:
            daemon._stop_signal = "SIGTERM"  # noqa: SLF001 - as a signal's cycle does
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(loop, "start_load", lambda *_: fail())
    monkeypatch.setattr(daemon, "_cycle", fail)
    daemon._tuner.policy = replace(WANTED, restore_on_stop=True)  # noqa: SLF001
    monkeypatch.setattr(daemon._tuner, "restore", fail)  # noqa: SLF001
    assert daemon.run() == 0
    assert entries.texts(Message.CYCLE_FAILED) == ["OSError: [Errno 5] Input/output error"]
    assert entries.texts(Message.STOPPED) == ["stopped"]


@pytest.mark.parametrize(
    ("error", "user", "text"),
    [
        (
            OSError(errno.EMFILE, "Too many open files"),
            0,
            "the events of the kernel and of udev: Too many open files; raise LimitNOFILE= of the unit",
        ),
        (OSError(errno.ENOSPC, "Full", "/run/x"), 0, "/run/x: Full; make room there"),
        (OSError(errno.EROFS, "Read-only", "/run/x"), 0, "/run/x: Read-only; make it writable"),
        (OSError(errno.EIO, "Input/output error", "/run/x"), 0, "/run/x: Input/output error"),
        (OSError(errno.EACCES, "Denied", "/run/x"), 1000, "/run/x: Denied; run it as root"),
        (
            ImportError("No library named udev"),
            0,
            "the events of the kernel and of udev: No library named udev",
        ),
    ],
)
def test_a_refused_start_names_the_place_the_reason_and_a_remedy(
    error: Exception, user: int, text: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(loop, "Daemon", refuse)
    monkeypatch.setattr(loop, "keep_heap_small", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert loop.serve() == 1
    assert capfd.readouterr().err.splitlines()[-1] == f"<3>cannot start: {text}"
