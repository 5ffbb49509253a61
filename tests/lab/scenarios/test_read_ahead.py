"""The kernel's handling of read_ahead_kb, without nfstuned."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nfstuned.host.events import Writes
from nfstuned.host.root import Root
from tests.lab.kit.mounts import BDI, set_read_ahead_kb
from tests.lab.kit.shell import becomes, run

if TYPE_CHECKING:
    from tests.lab.kit.mounts import Mounted, Mounts

pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("quiet_udev")]
FILE_BYTES = 8 << 20
CHUNK = 4096


def test_the_kernel_keeps_whole_pages_has_no_upper_bound_and_refuses_other_texts(mount: Mounts) -> None:
    mounted = mount("a")
    for written, kept in ((1, 0), (5, 4), (1023, 1020), (4294967296, 4294967296)):
        set_read_ahead_kb(mounted.device, written)
        assert mounted.read_ahead_kb == kept
    for text in ("-1", "abc", "0x10", " 8"):
        with pytest.raises(OSError, match="Invalid argument") as caught:
            (BDI / mounted.device / "read_ahead_kb").write_text(text)
        assert caught.value.errno == errno.EINVAL
    assert mounted.read_ahead_kb == kept


def test_a_remount_keeps_the_value(mount: Mounts) -> None:
    mounted = mount("a")
    set_read_ahead_kb(mounted.device, 15360)
    run("mount", "-o", "remount,noatime", str(mounted.point))
    assert mounted.read_ahead_kb == 15360


def test_an_open_file_keeps_the_value_that_it_was_opened_with(mount: Mounts) -> None:
    Path("/srv/a/large").write_bytes(os.urandom(FILE_BYTES))
    mounted = mount("a", "vers=3,nolock,rsize=1048576")
    set_read_ahead_kb(mounted.device, 16)
    before = (mounted.point / "large").open("rb", buffering=0)
    set_read_ahead_kb(mounted.device, 4096)
    with before, (mounted.point / "large").open("rb", buffering=0) as after:
        old, new = _reads(mounted, before.fileno()), _reads(mounted, after.fileno())
    assert old > 4 * new, f"{old} READs through the old descriptor, {new} through the new one"


def test_an_open_bdi_of_a_superblock_that_is_gone_answers_enodev(mount: Mounts) -> None:
    first = mount("a")
    fd = os.open(BDI / first.device / "read_ahead_kb", os.O_RDWR)
    try:
        mount.umount(first)
        second = mount("b")
        assert second.device == first.device
        for use in (lambda: os.pread(fd, 64, 0), lambda: os.pwrite(fd, b"512", 0)):
            with pytest.raises(OSError, match="No such device"):
                use()
        assert second.read_ahead_kb == 128
    finally:
        os.close(fd)


@pytest.mark.parametrize("options", ["vers=3,nolock", "vers=4.2"])
def test_a_write_by_anybody_is_an_inotify_event(mount: Mounts, options: str) -> None:
    mounted = mount("a", options)
    path = f"/sys/devices/virtual/bdi/{mounted.device}/read_ahead_kb"
    writes = Writes(Root())
    try:
        writes.watch(mounted.device, Path(path).stat().st_ino)
        assert writes.drain() == set()
        for command in (
            ["sh", "-c", f"echo 512 >{path}"],
            ["unshare", "--mount", "sh", "-c", f"echo 640 >{path}"],
            ["sh", "-c", f"echo 3 >/proc/sys/vm/drop_caches; echo 768 >{path}"],
        ):
            run(*command)
            becomes({mounted.device}, writes.drain, 5)
        (BDI / mounted.device / "read_ahead_kb").read_text()
        assert writes.drain() == set()
        mount.umount(mounted)
        writes.forget(mounted.device, None)
        again = mount("a", options)
        set_read_ahead_kb(again.device, 512)
        assert writes.drain() == set(), "a forgotten device is still reported"
    finally:
        writes.close()


def _reads(mounted: Mounted, fd: int) -> int:
    """Read the whole file in small steps and return how many READs that took."""
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    before = _count(mounted)
    while os.read(fd, CHUNK):
        pass
    return _count(mounted) - before


def _count(mounted: Mounted) -> int:
    ops = mounted.stats.ops
    return sum(ops[name].ops for name in ("READ", "READ_PLUS") if name in ops)
