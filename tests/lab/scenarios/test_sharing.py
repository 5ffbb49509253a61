"""Superblocks of their own and shared ones: each ends with the right read-ahead."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit.expect import tuned
from tests.lab.kit.mounts import Mounted, device_of
from tests.lab.kit.shell import attempt, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounts
    from tests.lab.kit.server import Server

AZURE_KB = 15360
pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("quiet_udev")]


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
def test_a_crossmnt_submount_is_tuned_at_its_first_access(
    mount: Mounts, crossing: Path, options: str
) -> None:
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
def test_the_same_export_twice_is_right_at_both_places(mount: Mounts) -> None:
    first = mount("a")
    tuned(AZURE_KB, first)
    second = mount("a")
    assert first.device == second.device
    tuned(AZURE_KB, second)
    mount.umount(first)
    tuned(AZURE_KB, second)


@pytest.mark.usefixtures("running_daemon")
def test_a_bind_mount_is_right_also_when_the_first_mount_is_gone(mount: Mounts) -> None:
    first = mount("a")
    tuned(AZURE_KB, first)
    bound = mount.bind(first)
    mount.umount(first)
    tuned(AZURE_KB, bound)


@pytest.mark.usefixtures("running_daemon")
def test_a_remount_keeps_the_value(mount: Mounts) -> None:
    mounted = mount("a")
    tuned(AZURE_KB, mounted)
    run("mount", "-o", "remount,ro", str(mounted.point))
    tuned(AZURE_KB, mounted)
    run("mount", "-o", "remount,rw", str(mounted.point))
    tuned(AZURE_KB, mounted)


POLICIES = """
[[policy]]
match = { mount_point = "/mnt/lab/small" }
profile = "small"
[[policy]]
match = { mount_point = "/mnt/lab/large" }
profile = "large"
[profile.small]
read_ahead_kb = 2048
[profile.large]
read_ahead_kb = 4096
"""


def test_of_policies_that_match_one_superblocks_mounts_the_largest_counts(
    mount: Mounts, running_daemon: Daemon
) -> None:
    running_daemon.configure(POLICIES)
    running_daemon.reload()
    for name in ("small", "large"):
        Path("/mnt/lab", name).mkdir(parents=True, exist_ok=True)
    small = mount("b", point=Path("/mnt/lab/small"))
    tuned(2048, small)
    large = mount("b", point=Path("/mnt/lab/large"))
    assert small.device == large.device
    tuned(4096, large)
    entry = running_daemon.wait_for_entry(NFSTUNED_DEVICE=large.device, NFSTUNED_NEW_KB="4096")
    assert "largest" in entry["MESSAGE"], entry["MESSAGE"]
