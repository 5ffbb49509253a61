"""The unit allows each system call that the service makes, and each of its allowances is needed."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.daemon import STATE
from tests.lab.kit.mounts import set_read_ahead_kb
from tests.lab.kit.namespaces import hidden_mount
from tests.lab.kit.server import AZURE
from tests.lab.kit.shell import CommandError, run, tuned, wait_for
from tests.lab.kit.unit import allowed, drop_in, made, override

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounted, Mounts

pytestmark = [pytest.mark.release, pytest.mark.usefixtures("quiet_udev")]
WAIT_S = 8.0
ALL = frozenset({"a mount that was there", "a new mount"})
START = "the start"
NO_USER_NAMESPACES = "ExecStartPre=+/usr/sbin/sysctl -q -w user.max_user_namespaces=0\n"
UNIT = Path("/usr/lib/systemd/system/nfstuned.service")
SAMPLES, TEXTFILE = STATE / "samples.jsonl", STATE / "nfstuned.prom"
PERSISTED = Path("/etc/nfsmount.conf.d/50-nfstuned.conf")
# A traced service that samples each second leaves no processor to the one that persists, which is niced.
EVERYTHING = f"""[daemon]
sample_interval = "5s"
restore_on_stop = true

[nconnect]
mode = "persist"

[samples]
file = "{SAMPLES}"

[prometheus]
textfile = "{TEXTFILE}"
"""
SEEN = frozenset({"inotify_init1"})
"""The one allowed call that is traced all the same: it shows that there was a tracer."""
TRACED_S = 60.0


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


@pytest.fixture
def _own_nfsmount_conf() -> Iterator[None]:
    """The service's drop-in for mount.nfs is gone before and after the test."""
    PERSISTED.unlink(missing_ok=True)
    yield
    run("systemctl", "stop", "nfstuned-persist.service")  # it may still write
    PERSISTED.unlink(missing_ok=True)


@pytest.mark.usefixtures("_own_nfsmount_conf")
def test_the_unit_allows_what_the_service_calls(
    stopped_daemon: Daemon, mount: Mounts, tmp_path: Path
) -> None:
    trace = tmp_path / "calls"
    stopped_daemon.configure(EVERYTHING)
    with override(drop_in(trace, allowed(UNIT) - SEEN)):
        stopped_daemon.start()
        mounts = [mount("a", "vers=3,nolock"), mount("b", "vers=4.1,nconnect=4"), mount("c", "vers=4.2")]
        tuned(15360, *mounts, seconds=TRACED_S)
        with hidden_mount(f"{AZURE}:/srv/d", mount.new_point(), "vers=4.2,nosharecache") as hidden:
            tuned(15360, hidden, seconds=TRACED_S)
        set_read_ahead_kb(mounts[0].device, 128)
        tuned(15360, mounts[0], seconds=TRACED_S)

        def sampled() -> bool:
            (mounts[1].point / "file").write_bytes(os.urandom(100_000))
            return bool(stopped_daemon.entries(MESSAGE_ID=Message.SAMPLE.id))

        wait_for("a sample", sampled, TRACED_S)
        wait_for("the text file", TEXTFILE.exists, TRACED_S)
        wait_for("the file of samples", SAMPLES.exists, TRACED_S)
        wait_for("the drop-in for mount.nfs", PERSISTED.exists, TRACED_S)
        stopped_daemon.configure("[daemon]\nsample_interval = 1\n")
        stopped_daemon.reload()
        stopped_daemon.wait_for_entry(TRACED_S, MESSAGE_ID=Message.CONFIG_INVALID.id)
        stopped_daemon.stop()
    assert made(trace) == SEEN
