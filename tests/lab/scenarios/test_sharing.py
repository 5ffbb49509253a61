"""Superblocks of their own and shared ones: each ends with the right read-ahead."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit.mounts import Mounted, device_of
from tests.lab.kit.shell import attempt, run, tuned

if TYPE_CHECKING:
    from collections.abc import Iterator

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
def test_the_same_export_again_and_a_bind_mount_are_right_also_when_the_first_mount_is_gone(
    mount: Mounts,
) -> None:
    first = mount("a")
    tuned(AZURE_KB, first)
    second, bound = mount("a"), mount.bind(first)
    assert first.device == second.device
    mount.umount(first)
    tuned(AZURE_KB, second, bound)
    mount.umount(second)
    tuned(AZURE_KB, bound)
