"""The shipped rule tunes NFS and nothing else; the service masks the distribution's rule while it runs."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit import rivals
from tests.lab.kit.daemon import Daemon, nfstuned
from tests.lab.kit.mounts import BDI, Mounts, all_read_ahead_kb
from tests.lab.kit.rivals import MASK, difference, view
from tests.lab.kit.server import SHARES
from tests.lab.kit.shell import becomes, restored, run, tuned, wait_for
from tests.lab.kit.strangers import strangers

pytestmark = pytest.mark.kernel

RULE_KB = 15360
SHIPPED = Path("/lab/udev/99-nfstuned.rules")
VERSIONS = ("vers=3,nolock", "vers=4.1,nconnect=4", "vers=4.2")


@pytest.fixture
def rule() -> Iterator[Path]:
    """The rule as an administrator installs it, next to nfs-utils' own."""
    with rivals.rule(SHIPPED.name, SHIPPED.read_text()) as path:
        yield path


@pytest.mark.usefixtures("rule")
@pytest.mark.parametrize("options", VERSIONS)
def test_the_rule_tunes_a_mount_and_outdoes_nfs_utils_own(mount: Mounts, options: str) -> None:
    mounted = mount("a", options)
    rivals.settle()
    assert mounted.read_ahead_kb == RULE_KB


@pytest.mark.usefixtures("rule", "quiet_udev")
def test_the_rule_tunes_a_mount_where_nfs_utils_own_is_masked(mount: Mounts) -> None:
    mounted = mount("a")
    rivals.settle()
    assert mounted.read_ahead_kb == RULE_KB


@pytest.mark.system
def test_the_rule_touches_nothing_else(mount: Mounts, request: pytest.FixtureRequest) -> None:
    before = all_read_ahead_kb()
    with strangers() as without:
        rivals.settle()
        kernels = without.values()
    request.getfixturevalue("rule")
    mounted = [mount(share) for share in SHARES]
    with strangers() as later:
        rivals.settle()
        assert later.values() == kernels, f"of {later.bdis}"
    assert {one.read_ahead_kb for one in mounted} == {RULE_KB}
    after = all_read_ahead_kb()
    assert {name: after.get(name) for name in before} == before


AZURE_KB = 15360
CONF = Path("/etc/nfs.conf.d/lab-mask.conf")
STOCK = rivals.SHIPPED_NFSRAHEAD


@pytest.fixture
def nfs_conf() -> Iterator[Path]:
    """A drop-in of nfs.conf, gone after the test."""
    with restored(CONF, ""):
        yield CONF


@pytest.mark.system
def test_udev_is_as_it_was_after_a_stop_and_while_a_killed_service_waits(stopped_daemon: Daemon) -> None:
    before = view()
    stopped_daemon.start()
    assert difference(before, view()) == [str(MASK.parent), str(MASK), "udevadm test"]
    assert f"Skipping overridden file '{STOCK}'" in view()["udevadm test"]
    stopped_daemon.signal("KILL")
    wait_for("the mask and its folder are gone", lambda: not MASK.parent.exists())
    assert difference(before, view()) == []
    wait_for("the service is back", lambda: stopped_daemon.active)
    assert MASK.exists()
    stopped_daemon.restart()
    assert MASK.exists()
    stopped_daemon.stop()
    assert difference(before, view()) == []


@pytest.mark.system
def test_administrators_values_keep_the_rule(stopped_daemon: Daemon, mount: Mounts, nfs_conf: Path) -> None:
    daemon = stopped_daemon
    nfs_conf.write_text("[nfsrahead]\ndefault=4096\n")
    daemon.start()
    assert not MASK.exists()
    mounted = mount("a")
    rivals.settle()
    time.sleep(1)
    assert mounted.read_ahead_kb == AZURE_KB
    fights = daemon.about(Message.READ_AHEAD_CONTESTED, mounted)
    assert len(fights) <= 1, fights
    assert all("nfs.conf" in entry["MESSAGE"] for entry in fights)

    nfs_conf.unlink()
    daemon.reload()
    assert MASK.exists()
    nfs_conf.write_text("[nfsrahead]\nnfs4=4096\n")
    daemon.reload()
    assert not MASK.exists()
    nfs_conf.unlink()
    daemon.reload()
    assert MASK.exists()
    assert nfstuned("install-files", "--remove").returncode == 0
    assert not MASK.exists()
    assert daemon.active


@pytest.mark.system
def test_a_write_without_an_event_is_answered_at_once(daemon: Daemon, mount: Mounts) -> None:
    """As efs-utils writes, two seconds after the mount: no udev event reports it.

    At once is sooner than a machine starts an interpreter; a look that no event asks for comes in a minute.
    """
    mounted = mount("a")
    tuned(AZURE_KB, mounted)
    starts, took = [], []
    for command in (f"echo 128 > {BDI}/{mounted.device}/read_ahead_kb",) * 3:
        began = time.monotonic()
        run("python3", "-c", "pass")
        starts.append(time.monotonic() - began)
        subprocess.run(["unshare", "--mount", "sh", "-c", command], check=True)
        written = time.monotonic()
        becomes(AZURE_KB, lambda: mounted.read_ahead_kb)
        took.append(time.monotonic() - written)
    becomes(3, lambda: len(daemon.about(Message.READ_AHEAD_CONTESTED, mounted)))
    assert median(took) < median(starts), (took, starts)
