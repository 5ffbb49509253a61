"""What the unit allows, it needs: each allowance is taken away in turn, and something no longer works."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit.shell import CommandError, wait_for
from tests.lab.kit.unit import override

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounted, Mounts

pytestmark = [pytest.mark.release, pytest.mark.usefixtures("quiet_udev")]
WAIT_S = 8.0
ALL = frozenset({"a mount that was there", "a new mount"})
START = "the start"
NO_USER_NAMESPACES = "ExecStartPre=+/usr/sbin/sysctl -q -w user.max_user_namespaces=0\n"


@pytest.fixture
def _user_namespaces() -> Iterator[None]:
    """As many user namespaces as before, after the test."""
    setting = Path("/proc/sys/user/max_user_namespaces")
    before = setting.read_text()
    yield
    setting.write_text(before)


@pytest.mark.usefixtures("_user_namespaces")
@pytest.mark.parametrize(
    ("without", "lost"),
    [
        ("", frozenset()),
        ("ReadWritePaths=\n", ALL),
        ("User=nobody\n", ALL),
        ("RestrictAddressFamilies=~AF_NETLINK\n", ALL | {START}),
        ("RestrictAddressFamilies=~AF_UNIX\n", {START}),
        (f"{NO_USER_NAMESPACES}PrivateUsers=yes\n", ALL | {START}),
    ],
    ids=["nothing", "paths to write", "root", "netlink", "Unix sockets", "the host's users"],
)
def test_without_it_something_is_lost(
    stopped_daemon: Daemon, mount: Mounts, without: str, lost: frozenset[str]
) -> None:
    there = mount("a", "vers=4.1")
    with override(f"[Service]\nTimeoutStartSec=20s\n{without}"):
        found = set()
        try:
            stopped_daemon.start()
        except CommandError:
            found.add(START)
        new = mount("b", "vers=4.1")
        watched = {"a mount that was there": there, "a new mount": new}
        with contextlib.suppress(AssertionError):
            wait_for("the values", lambda: not _missing(watched), WAIT_S)
        found |= _missing(watched)
        stopped_daemon.stop()
    # Where the start waits for a word that never comes, the values are right for as long as it waits.
    assert found - (ALL if lost == {START} else set()) == lost


def _missing(watched: Mapping[str, Mounted]) -> set[str]:
    return {name for name, mounted in watched.items() if mounted.read_ahead_kb != 15360}
