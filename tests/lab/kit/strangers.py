"""Devices that are no NFS mounts, some with numbers like theirs: nothing may ever change their read-ahead."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.lab.kit.mounts import BDI, device_of
from tests.lab.kit.shell import attempt, run

_FOLDER = Path("/var/lib/lab-strangers")
_numbers = itertools.count()
_KINDS = (("tmpfs", "mount", "-t", "tmpfs", "-o", "size=1m", "stranger"), ("fuse", "bindfs", "/usr/share"))


@dataclass(frozen=True)
class Strangers:
    """The bdi of a mount of each kind, by kind; a tmpfs has none."""

    bdis: dict[str, str]

    def values(self) -> dict[str, str]:
        """Return the raw read_ahead_kb of each kind as it is now."""
        return {kind: (BDI / name / "read_ahead_kb").read_text() for kind, name in self.bdis.items()}


@contextlib.contextmanager
def strangers() -> Iterator[Strangers]:
    """Mount a tmpfs, a FUSE and a btrfs, and attach a loop device, while the block runs."""
    folder = _FOLDER / str(next(_numbers))
    folder.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        before, image = set(BDI.iterdir()), str(folder / "btrfs.img")
        run("truncate", "-s", "120M", image)
        run("mkfs.btrfs", "-q", image)
        for kind, *argv in (*_KINDS, ("btrfs", "mount", "-o", "loop", image)):
            point = folder / kind
            point.mkdir()
            run(*argv, str(point))
            stack.callback(_umount, point)
        btrfs = next(path.name for path in set(BDI.iterdir()) - before if path.name.startswith("btrfs"))
        loop = run("losetup", "--find", "--show", image)
        stack.callback(run, "losetup", "--detach", loop.strip())
        number, fuse = Path(loop.strip()).stat().st_rdev, device_of(folder / "fuse")
        assert fuse.startswith("0:"), f"a FUSE mount without an anonymous number: {fuse}"
        yield Strangers({"fuse": fuse, "btrfs": btrfs, "loop": f"{os.major(number)}:{os.minor(number)}"})


def _umount(point: Path) -> None:
    if attempt("umount", str(point)).returncode:
        run("umount", "--lazy", str(point))
