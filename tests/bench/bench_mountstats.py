"""Print what the parsers of large files cost: python -m tests.bench.bench_mountstats [MOUNTS]."""

from __future__ import annotations

import sys
import tracemalloc
from functools import partial
from pathlib import Path
from timeit import repeat
from typing import TYPE_CHECKING

from nfstuned.parse.mountinfo import parse_mountinfo
from nfstuned.parse.mountstats import parse_mountstats
from nfstuned.parse.nfsfs import find_volume, parse_volumes

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).parent.parent / "parse" / "data" / "6.12"


def report(name: str, size: int, work: Callable[[], object], number: int = 1) -> None:
    best = min(repeat(work, number=number, repeat=7)) / number
    print(f"{name:<38} {size / 1e6:6.2f} MB {best * 1e3:10.3f} ms")


def main() -> None:
    mounts = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    stats = (DATA / "mountstats").read_text()
    start = stats.index("device sa1.")
    end = stats.index("\ndevice ", start) + 1
    stats = stats[:start] + stats[start:end] * mounts
    lines = (DATA / "mountinfo").read_text()
    line = next(line for line in lines.splitlines() if "sa1." in line)
    info = lines + f"{line}\n" * mounts
    row = "v4 0a0a0a0a  801 {:<12} e:0                               no \n"
    volumes = "NV SERVER   PORT DEV          FSID\n" + "".join(row.format(f"0:{n}") for n in range(mounts))

    print(f"{mounts} NFSv4.1 mounts with nconnect=4, best of 7")
    report("parse_mountstats", len(stats), lambda: parse_mountstats(stats))
    report("parse_mountinfo", len(info), lambda: parse_mountinfo(info))
    report("parse_volumes", len(volumes), lambda: parse_volumes(volumes))
    for name, device in (("newest", f"0:{mounts - 1}"), ("oldest", "0:0"), ("absent", "0:99999999")):
        report(f"find_volume, {name}", len(volumes), partial(find_volume, volumes, device), 200)
    tracemalloc.start()
    kept = parse_mountstats(stats)
    print(f"memory of {len(kept)} parsed stanzas: {tracemalloc.get_traced_memory()[0] / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
