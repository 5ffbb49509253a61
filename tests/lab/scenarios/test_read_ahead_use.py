"""Verdicts on read-ahead from counters: too small, of help, or none, as files are read in different ways."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nfstuned.core.samples.evidence import Reads, Use, read_ahead_use, reads_of
from nfstuned.core.samples.rates import make_look, rates
from nfstuned.host.observe import observe_stanzas, observe_superblocks
from nfstuned.host.root import Root
from nfstuned.model.kernel import MountStats
from nfstuned.model.samples import Look
from nfstuned.parse.proc.mountstats import parse_mountstats
from tests.lab.kit.mounts import Mounts, set_read_ahead_kb
from tests.lab.kit.shell import run

pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("quiet_udev", "stopped_daemon")]
SIZE = 48 << 20
KIB = 1 << 10
RSIZE = 256 * KIB
READPAGES = 9
"""Of the events; nfsiostat calls it vfsreadpages."""


def seen() -> Look:
    root = Root()
    return make_look(
        observe_superblocks(root, deep=False), observe_stanzas(root) or (), time.time(), time.monotonic()
    )


def read_ahead() -> tuple[int, int]:
    """How often the kernel's read-ahead called NFS, and the pages that were read (fs/nfs/read.c)."""
    (one,) = parse_mountstats(Path("/proc/self/mountstats").read_bytes())
    assert isinstance(one, MountStats), one
    assert one.bytes is not None
    return one.events[READPAGES], one.bytes.pages_read


def during(work: Callable[[], None]) -> Reads:
    """Return the superblock's reads during some work; nothing of the file is cached before."""
    Path("/proc/sys/vm/drop_caches").write_text("3\n")
    before, (calls, pages) = seen(), read_ahead()
    work()
    (sample,) = rates(before, seen())
    reads = reads_of(sample)
    assert reads is not None, sample
    calls, pages = read_ahead()[0] - calls, read_ahead()[1] - pages
    print(
        f"{read_ahead_use(reads)}: {reads.ratio} times the bytes read, "
        f"{reads.request_bytes / KIB:.0f} KiB a READ, "
        f"{pages} pages in {calls} calls of read-ahead"
    )
    return reads


@pytest.fixture(autouse=True)
def _shown(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Show the observations also when the test passes."""
    yield
    output = capsys.readouterr().out
    with capsys.disabled():
        print(f"\n{output}", flush=True)


def test_verdicts_fit_the_reads_and_there_is_none_where_counters_do_not_suffice(mount: Mounts) -> None:
    """All on one mount, so that nothing differs but how the file is read and the read-ahead."""
    Path("/srv/a/file").write_bytes(os.urandom(SIZE))
    mounted = mount("a", f"vers=4.1,rsize={RSIZE}")
    file = str(mounted.point / "file")

    def read(*how: str) -> None:
        run("dd", f"if={file}", "of=/dev/null", "status=none", *how)

    def mapped() -> None:
        with Path(file).open("rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as data:
            assert sum(len(data[at : at + 1]) for at in range(0, SIZE, 4 * KIB)) == SIZE // (4 * KIB)

    def twice() -> None:
        read("bs=64K")
        read("bs=64K")

    set_read_ahead_kb(mounted.device, 128)
    narrow = during(lambda: read("bs=4K"))
    assert read_ahead_use(narrow) is Use.TOO_SMALL, narrow
    assert narrow.rsize_bytes == RSIZE, narrow
    assert narrow.read_bytes == pytest.approx(SIZE), narrow
    large = during(lambda: read("bs=1M"))
    assert read_ahead_use(large) is None, large
    assert large.request_bytes > 1.5 * narrow.request_bytes, (narrow, large)
    assert read_ahead_use(during(lambda: read("bs=64K", "iflag=direct"))) is None
    assert read_ahead_use(during(twice)) is None
    of_map = during(mapped)
    assert read_ahead_use(of_map) is None
    assert of_map.read_bytes == 0 < of_map.fetched_bytes, of_map

    set_read_ahead_kb(mounted.device, 1024)

    def again_and_again() -> None:
        for _ in range(6):
            Path("/proc/sys/vm/drop_caches").write_text("3\n")
            read("bs=64K")

    wide = during(again_and_again)
    assert read_ahead_use(wide) is Use.HELPS, wide
