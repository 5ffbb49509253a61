"""The installed unit under its real sandbox, which allows each call of the service, and nothing else."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.daemon import STATE, Daemon, nfstuned
from tests.lab.kit.fstab import append
from tests.lab.kit.mounts import Mounted, Mounts, set_read_ahead_kb
from tests.lab.kit.namespaces import hidden_mount
from tests.lab.kit.server import AZURE
from tests.lab.kit.shell import CommandError, attempt, restored, run, tuned, wait_for
from tests.lab.kit.unit import allowed, compiled, drop_in, made, override, process_status

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev")]

BDIS = "/sys/devices/virtual/bdi"
MOST_KB = 30 * 1024
HIDEABLE = (Path("/home/lab"), Path("/root/lab"), Path("/tmp/lab"))  # noqa: S108 - sandboxes often hide these
READ_ONLY_BUT_ITS_STATE_AND_THE_BDIS = {
    **dict.fromkeys(("/", "/proc", "/sys", "/run"), "ro"),
    **dict.fromkeys(("/run/nfstuned", BDIS), "rw"),
}
CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
UNIT = Path("/usr/lib/systemd/system/nfstuned.service")
RULE = Path("/lab/udev/99-nfstuned.rules")


def test_it_is_ready_in_time_small_without_capability_and_ends(stopped_daemon: Daemon, mount: Mounts) -> None:
    daemon = stopped_daemon
    daemon.start()
    assert daemon.rss_kb <= MOST_KB
    status = process_status(daemon.pid)
    found = {name: status[name] for name in CAPABILITIES if int(status[name], 16)}
    assert not found, f"capabilities: {found}"
    assert status["NoNewPrivs"] == "1"
    assert _modes(daemon) == READ_ONLY_BUT_ITS_STATE_AND_THE_BDIS
    mounted = mount("a")
    tuned(15360, mounted)
    daemon.stop()
    # After a start or a stop beyond the unit's limits it would be "timeout".
    assert daemon.show("Result") == "success"
    assert mounted.read_ahead_kb == 15360
    assert daemon.entries(MESSAGE_ID=Message.STOPPED.id), "no message about the stop"
    _has_no_troubles(daemon)


def test_it_sees_mounts_below_home_root_and_tmp(stopped_daemon: Daemon, mount: Mounts) -> None:
    # A policy by mount point only works where the daemon sees the mount point.
    points = ", ".join(f'"{point}"' for point in HIDEABLE)
    stopped_daemon.configure(
        f'[[policy]]\nmatch = {{ mount_point = [{points}] }}\nprofile = "here"\n'
        "[profile.here]\nread_ahead_kb = 2048\n"
    )
    stopped_daemon.start()
    for share, point in zip("abc", HIDEABLE, strict=True):
        point.mkdir(parents=True, exist_ok=True)
        mounted = mount(share, point=point)
        try:
            tuned(2048, mounted)
        finally:
            run("umount", str(point))
    _has_no_troubles(stopped_daemon)


@pytest.mark.usefixtures("fstab")
def test_it_orders_the_boot_without_a_cycle() -> None:
    append("nas.lab.internal:/srv/a /srv/data nfs defaults 0 0\n")
    assert _cycles() == []
    # Units of systemd and of nfs-utils make some with /var on NFS, and chance decides which is found first.
    append("nas.lab.internal:/srv/a /var nfs defaults 0 0\n")
    assert [line for line in _cycles() if "nfstuned" in line] == []


def _cycles() -> list[str]:
    """Return systemd's lines about cycles and about this unit when it puts a whole boot in order."""
    done = attempt("systemd-analyze", "verify", "--generators=yes", "--man=no", "default.target")
    return [line for line in (done.stdout + done.stderr).splitlines() if re.search("cycle|nfstuned", line)]


def _modes(daemon: Daemon) -> dict[str, str | None]:
    """Return `ro` or `rw` for the mounts of its namespace, as the kernel has them.

    ProtectControlGroups= once left /sys and /run writable, and nothing reported it.
    """
    found = {}
    for line in Path(f"/proc/{daemon.pid}/mountinfo").read_text().splitlines():
        _, _, _, _, point, options, *_ = line.split()
        found[point] = "ro" if "ro" in options.split(",") else "rw"
    return {point: found.get(point) for point in READ_ONLY_BUT_ITS_STATE_AND_THE_BDIS}


def _has_no_troubles(daemon: Daemon) -> None:
    """It reports at these levels all that it cannot read or do in its sandbox."""
    troubles = [entry["MESSAGE"] for entry in daemon.entries() if int(entry.get("PRIORITY", "6")) <= 4]
    assert troubles == []


def test_systemd_and_udev_find_nothing_wrong() -> None:
    """`--threshold` counts in tenths: 20 is an exposure of 2.0."""
    done = attempt("systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", str(UNIT))
    assert done.returncode == 0, done.stdout
    done = attempt("systemd-analyze", "verify", "--man=yes", "--recursive-errors=no", str(UNIT))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    done = attempt("udevadm", "verify", str(RULE))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert not list(Path("/usr/lib/udev/rules.d").glob("*nfstuned*")), "the fallback rule is installed"


def test_the_preset_enables_the_service_and_the_catalog_explains_its_messages() -> None:
    run("systemctl", "preset", "nfstuned.service")
    assert run("systemctl", "is-enabled", "nfstuned.service").strip() == "enabled"
    assert "nfstuned" in run("journalctl", "--list-catalog")


def test_commands_find_all_their_imports_compiled() -> None:
    """A service in its sandbox and a user without rights cannot write compiled files."""
    before = compiled()
    assert before
    for command in (("status",), ("check", "--offline"), ("config", "schema"), ("explain", "NFS101")):
        assert nfstuned(*command).returncode in {0, 1}
    assert compiled() == before
    assert attempt("dpkg", "--verify", "nfstuned").stdout == ""


WAIT_S = 8.0
ALL = frozenset({"a mount that was there", "a new mount"})
START = "the start"
NO_USER_NAMESPACES = "ExecStartPre=+/usr/sbin/sysctl -q -w user.max_user_namespaces=0\n"
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
    with restored(Path("/proc/sys/user/max_user_namespaces")):
        yield


@pytest.mark.release
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


@pytest.mark.release
@pytest.mark.usefixtures("_own_nfsmount_conf")
def test_the_unit_allows_the_services_calls(stopped_daemon: Daemon, mount: Mounts, tmp_path: Path) -> None:
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
