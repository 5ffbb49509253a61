"""A disk of the guest's server that hangs when it is told to."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from tests.lab.kit.shell import attempt, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.server import Server

_FILE, _PLACE = Path("/var/lab-disk"), Path("/srv/disk")


@contextlib.contextmanager
def exported(server: Server, shares: int) -> Iterator[tuple[str, ...]]:
    """Export folders of a file system of their own while the block runs; yield their names."""
    names = tuple(f"disk/{number}" for number in range(shares))
    with _FILE.open("wb") as file:
        file.truncate(256 << 20)
    run("mkfs.btrfs", "-q", "-f", str(_FILE))
    _PLACE.mkdir(exist_ok=True)
    run("mount", "-o", "loop", str(_FILE), str(_PLACE))
    server.export(*names)
    try:
        yield names
    finally:
        for name in names:
            del server.shares[name]
        server.export()
        run("exportfs", "-f")
        run("umount", str(_PLACE))
        _FILE.unlink()


@contextlib.contextmanager
def hanging() -> Iterator[None]:
    """Have every write to that file system wait while the block runs, and so the server's threads."""
    run("fsfreeze", "--freeze", str(_PLACE))
    try:
        yield
    finally:
        attempt("fsfreeze", "--unfreeze", str(_PLACE))
