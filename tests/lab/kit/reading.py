"""Programs that read for some seconds, each in one way: fio, without advice to the kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from tests.lab.kit.shell import run

MIB = 1 << 20
_STRIDE = MIB - (1 << 16)
_LARGE_BYTES, _SMALL_BYTES = {1: 256 * MIB, 8: 48 * MIB}, 1 << 16
_SMALL_FILES = {1: 512, 8: 64}
"""By the number of readers, for each; so are the bytes of a large file."""


class Way(NamedTuple):
    """The order in which a program goes through its files."""

    name: str
    engine: str
    order: str
    block_bytes: int
    small: bool = False
    """Through many small files, one after the other, and not through a large one."""


SEQUENTIAL = Way("read, sequential", "psync", "read", 1 << 16)
MAPPED_RANDOM = Way("mmap, random", "mmap", "randread", 1 << 12)
WAYS = (
    SEQUENTIAL,
    Way("read, strided", "psync", f"read:{_STRIDE}", 1 << 16),
    Way("read, random", "psync", "randread", 1 << 12),
    # Eight blocks in order, then a new place.
    Way("read, stretches", "psync", "randread:8", 1 << 13),
    Way("read, small files", "psync", "read", 1 << 16, small=True),
    Way("mmap, sequential", "mmap", "read", 1 << 16),
    Way("mmap, strided", "mmap", f"read:{_STRIDE}", 1 << 16),
    MAPPED_RANDOM,
)


class Delivered(NamedTuple):
    bytes_per_s: float
    read_bytes: int


def arguments(way: Way, readers: int, folder: Path, seconds: float) -> list[str]:
    files = _SMALL_FILES[readers] if way.small else 1
    size = _SMALL_BYTES if way.small else _LARGE_BYTES[readers]
    return [
        "fio", "--output-format=json", "--name=reader", f"--directory={folder}",
        f"--filename_format={readers}-{files}-{size}.$jobnum.$filenum", f"--rw={way.order}",
        "--rw_sequencer=sequential", f"--bs={way.block_bytes}", f"--ioengine={way.engine}",
        f"--numjobs={readers}", f"--nrfiles={files}", f"--filesize={size}", "--time_based",
        f"--runtime={seconds * 1000:.0f}ms", "--fallocate=none", "--invalidate=1", "--fadvise_hint=0",
        "--group_reporting", "--thread",
    ]  # fmt: skip


def lay_out(folder: Path, readers: int, *ways: Way) -> None:
    """Make the files that these ways read, once for all."""
    for way in ways:
        run(*arguments(way, readers, folder, 1), "--create_only=1", timeout=600)


def read(way: Way, readers: int, folder: Path, seconds: float) -> Delivered:
    """Open the files, read them for so long, and return the programs' throughput."""
    said = run(*arguments(way, readers, folder, seconds), timeout=600)
    side = json.loads(said[said.index("{") :])["jobs"][0]["read"]
    return Delivered(side["bw_bytes"], side["io_bytes"])
