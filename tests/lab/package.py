"""The .deb of the tree as it is, for guests and for images: built once, kept until a source of it changes.

It is what `sh dev/build` makes, but for its packing: nothing is compressed, because the builds follow each
change, and a guest would unpack in emulation.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dev.package import deb as debian
from dev.package import lock, own
from dev.package.about import Release, version
from dev.package.run import PROJECT
from dev.package.tree import tree
from dev.package.wheels import libraries, unpack

SOURCES = ("nfstuned", "systemd", "udev", "docs", "dev/package", "pyproject.toml", "*.md", "LICENSE")
"""Everything that a package is made of, and little else."""
_FOLDER = PROJECT / "build/lab"
_NAME = "nfstuned_*_amd64.deb"
_UNUSED_S = 86400.0


def deb() -> Path:
    """Return the package, built unless it is there. Raises BuildError.

    Half a minute and a network for the first one in a checkout, which fetches the libraries; seconds for
    the next. May be called by several threads and processes at once: one builds, the others wait for it.
    """
    folder = _FOLDER / key()
    with _alone():
        if not (made := sorted(folder.glob(_NAME))):
            made = [_build(folder)]
            _forget_unused()
        os.utime(folder)  # as a sign that it is used
    return made[0]


def sources() -> tuple[Path, ...]:
    """Return the files that the package is made of."""
    found = (path for pattern in SOURCES for top in PROJECT.glob(pattern) for path in _files(top))
    return tuple(sorted(found))


def key() -> str:
    """Return the name of what these sources make."""
    digest = hashlib.sha256()
    for path in sources():
        digest.update(f"{path.relative_to(PROJECT)} {lock.digest(path)}\n".encode())
    return digest.hexdigest()[:12]


def _files(top: Path) -> Iterator[Path]:
    if top.is_file():
        yield top
        return
    for path in top.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            yield path


@contextmanager
def _alone() -> Iterator[None]:
    """Each call opens the file anew, so that a lock keeps out threads as well as processes."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with (_FOLDER / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(folder: Path) -> Path:
    """Build it into a folder, which is there as a whole or not at all."""
    # No commit has this tree, and a bare system may have no git.
    newest = max(path.stat().st_mtime for path in sources())
    what = Release(version(), 1, int(newest))
    wheels = lock.fetch(lock.VENDOR, lock.CACHE)
    with tempfile.TemporaryDirectory(dir=_FOLDER) as temporary:
        work = Path(temporary)
        files = tree(own.wheel(what, work), unpack(wheels))
        made = debian.build(files, libraries(wheels), what, work, debian.PLAIN)
        unfinished = work / folder.name
        unfinished.mkdir()
        made.rename(unfinished / made.name)
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.rename(folder)
    return folder / made.name


def _forget_unused() -> None:
    """Remove the packages of other sources that no boot has used for a day: each is 40 MB."""
    for made in _FOLDER.glob(f"*/{_NAME}"):
        if time.time() - made.parent.stat().st_mtime > _UNUSED_S:
            shutil.rmtree(made.parent)
