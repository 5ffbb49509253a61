from __future__ import annotations

import gc
import socket
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nfstuned.host import process
from nfstuned.host.process import collector_paused


def test_the_collector_waits_and_goes_on_whatever_happens() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), collector_paused():
        raise ZeroDivisionError
    assert gc.isenabled()


NOTIFIERS = [process.notify, process.notify_by_socket]


@pytest.fixture
def manager() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.settimeout(5)
        yield listener


@pytest.mark.parametrize("notify", NOTIFIERS)
@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_the_manager_receives_the_state_at_either_kind_of_address(
    notify: Callable[[str], bool],
    manager: socket.socket,
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = str(tmp_path / "notify") if kind == "path" else f"@nfstuned-{uuid.uuid4().hex}"
    manager.bind(name.replace("@", "\0"))
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    assert notify("READY=1\nSTATUS=2 mounts")
    assert manager.recv(4096) == b"READY=1\nSTATUS=2 mounts"


@pytest.mark.parametrize("notify", NOTIFIERS)
@pytest.mark.parametrize("address", ["", "/nowhere/at/all"])
def test_without_a_manager_nothing_is_sent(
    notify: Callable[[str], bool], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    assert not notify("READY=1")


def test_a_reload_is_timed(manager: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager.bind(str(tmp_path / "notify"))
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    assert process.reloading()
    first, second = manager.recv(4096).decode().split("\n")
    assert first == "RELOADING=1"
    assert second.removeprefix("MONOTONIC_USEC=").isdigit()


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({"WATCHDOG_USEC": "180000000", "WATCHDOG_PID": "7"}, 180.0),
        ({"WATCHDOG_USEC": "500000"}, 0.5),
        ({"WATCHDOG_USEC": "180000000", "WATCHDOG_PID": "8"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_only_a_watchdog_of_this_process_counts(environ: dict[str, str], seconds: float | None) -> None:
    assert process.watchdog_s(environ, 7) == seconds
