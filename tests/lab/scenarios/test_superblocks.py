"""Superblocks that are shared, hidden, lazily unmounted or new under an old number: each ends right."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.kit.daemon import STATE, Daemon
from tests.lab.kit.mounts import BDI, Mounted, Mounts, device_of, table_device, volumes
from tests.lab.kit.namespaces import hidden_mount, late_mount, network
from tests.lab.kit.server import AZURE, GENERIC, GENERIC_KB, Server
from tests.lab.kit.shell import attempt, becomes, run, tuned

pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("quiet_udev")]

AZURE_KB, KERNEL_KB = 15360, 128
SOURCE = f"{AZURE}:/srv/a"


@pytest.fixture
def crossing(server: Server) -> Iterator[Path]:
    """A file system inside share `a`: clients mount it by themselves when they enter it."""
    inner = server.path("a") / "inner"
    inner.mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", "size=1m", "lab-inner", str(inner))
    (inner / "file").write_text("inner")
    server.export("a/inner")
    yield inner
    del server.shares["a/inner"]
    server.export()
    run("exportfs", "-f")
    attempt("umount", "--lazy", str(inner))


@pytest.mark.parametrize("options", ["vers=3,nolock", "vers=4.2"])
@pytest.mark.usefixtures("running_daemon")
def test_a_crossmnt_submount_is_tuned_at_first_access(mount: Mounts, crossing: Path, options: str) -> None:
    outer = mount("a", options)
    point = outer.point / crossing.name
    assert (point / "file").read_text() == "inner"
    inner = Mounted(outer.source, point, device_of(point))
    assert inner.device != outer.device, "the client did not cross into a superblock of its own"
    tuned(AZURE_KB, inner, outer)


@pytest.mark.usefixtures("running_daemon")
def test_nosharecache_has_a_bdi_of_its_own_and_is_tuned(mount: Mounts) -> None:
    first, second = mount("a"), mount("a", "vers=4.2,nosharecache")
    assert first.device != second.device
    tuned(AZURE_KB, first, second)


@pytest.mark.usefixtures("running_daemon")
def test_an_export_again_and_a_bind_mount_are_right_also_when_the_first_mount_is_gone(mount: Mounts) -> None:
    first = mount("a")
    tuned(AZURE_KB, first)
    second, bound = mount("a"), mount.bind(first)
    assert first.device == second.device
    mount.umount(first)
    tuned(AZURE_KB, second, bound)
    mount.umount(second)
    tuned(AZURE_KB, bound)


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """A network namespace that reaches the server. It must outlive its mounts: ask for it before `mount`."""
    with network() as name:
        yield name


@pytest.mark.parametrize("options", ["vers=3,nolock", "vers=4.2"])
@pytest.mark.usefixtures("running_daemon")
def test_a_mount_in_a_private_mount_namespace_is_tuned(mount: Mounts, options: str) -> None:
    with hidden_mount(SOURCE, mount.new_point(), options) as hidden:
        assert table_device(hidden.point) is None, "it is visible here: not private"
        tuned(AZURE_KB, hidden)


POLICY = """
[[policy]]
match = { mount_point = "/mnt/lab/*" }
profile = "by-point"
[profile.by-point]
read_ahead_kb = 32768
"""


@pytest.mark.system
def test_a_policy_reaches_and_stays_in_a_private_namespace(mount: Mounts, running_daemon: Daemon) -> None:
    """Each of the others has the daemon look, mostly without the other namespaces."""
    drop_in = running_daemon.configure(POLICY, "by-point")
    running_daemon.reload()
    try:
        with hidden_mount(SOURCE, mount.new_point(), "vers=4.2") as hidden:
            tuned(32768, hidden)
            values = set()
            for _ in range(4):
                other = mount("b", host=GENERIC)
                end = time.monotonic() + 1
                while time.monotonic() < end:
                    values.add(hidden.read_ahead_kb)
                mount.umount(other)
            assert values == {32768}
    finally:
        drop_in.unlink()
        running_daemon.reload()


@pytest.mark.system
def test_a_policy_reaches_a_mount_that_gets_its_place_late(mount: Mounts, running_daemon: Daemon) -> None:
    """The searches that the new superblock caused, and its report, were too early."""
    drop_in = running_daemon.configure(POLICY, "by-point")
    running_daemon.reload()
    try:
        with late_mount(SOURCE, mount.new_point(), after_s=7) as late:
            tuned(32768, late)
    finally:
        drop_in.unlink()
        running_daemon.reload()


@pytest.mark.parametrize("options", ["vers=3,nolock", "vers=4.2"])
@pytest.mark.usefixtures("running_daemon")
def test_a_mount_in_another_network_namespace_is_tuned(elsewhere: str, mount: Mounts, options: str) -> None:
    enter = ("ip", "netns", "exec", elsewhere)
    with hidden_mount(SOURCE, mount.new_point(), options, prefix=enter) as hidden:
        assert hidden.device not in volumes(), "its row is visible here: not another network namespace"
        tuned(AZURE_KB, hidden)


@pytest.mark.usefixtures("running_daemon")
def test_a_visible_mount_over_another_network_namespace_is_tuned(elsewhere: str, mount: Mounts) -> None:
    point = mount.new_point()
    enter = ("nsenter", f"--net=/run/netns/{elsewhere}")
    run(*enter, "mount", "-t", "nfs", "-o", "vers=4.2", SOURCE, str(point))
    device = table_device(point)
    assert device is not None
    assert device not in volumes(), "its row is visible here: not another network namespace"
    tuned(AZURE_KB, Mounted(SOURCE, point, device))


@pytest.mark.system
def test_ready_means_earlier_mounts_are_right(elsewhere: str, mount: Mounts, running_daemon: Daemon) -> None:
    running_daemon.stop()
    versions = ("vers=3,nolock", "vers=4.1,nconnect=4", "vers=4.2")
    before = [mount("a", options) for options in versions]
    other = mount("b", host=GENERIC)
    enter = ("ip", "netns", "exec", elsewhere)
    with hidden_mount(SOURCE, mount.new_point(), "vers=4.2", prefix=enter) as hidden:
        assert {one.read_ahead_kb for one in (*before, other, hidden)} == {KERNEL_KB}
        running_daemon.start()
        values = [one.read_ahead_kb for one in (*before, other, hidden)]
        assert values == [AZURE_KB, AZURE_KB, AZURE_KB, KERNEL_KB, AZURE_KB], f"at READY: {values}"


@pytest.mark.usefixtures("generic_number")
def test_lazily_unmounted_superblocks_keep_values_while_open(mount: Mounts, running_daemon: Daemon) -> None:
    mounted = mount("a")
    tuned(AZURE_KB, mounted)
    with (mounted.point / "open").open("w"):
        mount.umount(mounted, lazy=True)
        other = mount("b", host=GENERIC)
        tuned(GENERIC_KB, other)
        assert table_device(mounted.point) is None
        assert mounted.device in volumes()
        assert mounted.read_ahead_kb == AZURE_KB
    becomes(expected=False, seen=(BDI / mounted.device).exists)
    becomes(expected=False, seen=(STATE / "read-ahead" / mounted.device).exists)
    assert running_daemon.active
    assert running_daemon.failed_cycles == []


@pytest.mark.release
def test_a_lazily_unmounted_superblock_is_tuned_at_a_start(mount: Mounts, running_daemon: Daemon) -> None:
    running_daemon.stop()
    mounted = mount("a")
    with (mounted.point / "open").open("w"):
        mount.umount(mounted, lazy=True)
        running_daemon.start()
        tuned(AZURE_KB, mounted)
    becomes(expected=False, seen=(BDI / mounted.device).exists)


@pytest.mark.release
@pytest.mark.parametrize("options", ["vers=3,nolock", "vers=4.2"])
@pytest.mark.usefixtures("generic_number")
def test_a_device_number_reused_with_another_policy_is_right_20_times(mount: Mounts, options: str) -> None:
    """A mistake would stay: nfstuned never lowers a value that it does not know as its own."""
    devices, seen = [], []
    for turn in range(20):
        host, kb = ((AZURE, AZURE_KB), (GENERIC, GENERIC_KB))[turn % 2]
        mounted = mount("a", options, host=host)
        devices.append(mounted.device)
        tuned(kb, mounted)
        seen.append((mounted.read_ahead_kb, kb))
        mount.umount(mounted)
    assert [value for value, _ in seen] == [kb for _, kb in seen]
    assert len(set(devices)) <= 2, f"the number was hardly ever reused: {devices}"
