"""The .deb of the tree as it is, for guests and for images: built once, kept until a source of it changes.

`sh dev/build` makes the same, but for its compression and its files' times: the builds follow each change, a
guest unpacks in emulation, and the image's compiled libraries stay right.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dev.package import deb as debian
from dev.package import lock, own
from dev.package.about import Release, version
from dev.package.run import PROJECT, run
from dev.package.tree import HOME, File, tree, write
from dev.package.wheels import libraries, unpack

SOURCES = ("nfstuned", "systemd", "udev", "docs", "dev/package", "pyproject.toml", "*.md", "LICENSE")
"""Everything that a package is made of, and little else."""
_SCRIPTS = PROJECT / "dev/package/files"
_FOLDER = PROJECT / "build/lab"
_NAME = "nfstuned_*_amd64.deb"
_UNUSED_S = 86400.0
_FIRST = "f70e166aa8"
"""The commit of 0.1.0."""
_TIME = 1_767_225_600
"""No commit has this tree. Compiled Python is right for a source of the same time and size."""


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


def first() -> Path:
    """Return the .deb of 0.1.0, built by the tree of its commit unless it is there. Raises BuildError."""
    folder = _FOLDER / _FIRST
    with _alone():
        if not (made := sorted(folder.glob(f"build/lab/*/{_NAME}"))):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            archive = _FOLDER / "first.tar"
            run("git", "archive", f"--output={archive}", _FIRST)
            run("tar", "-xf", archive, "-C", folder)
            archive.unlink()
            build = "import sys; sys.path.insert(0, '.'); from tests.lab import package; package.deb()"
            run("env", f"--chdir={folder}", sys.executable, "-P", "-c", build)
            made = sorted(folder.glob(f"build/lab/*/{_NAME}"))
    return made[0]


def sources() -> tuple[Path, ...]:
    found = (path for pattern in SOURCES for top in PROJECT.glob(pattern) for path in _files(top))
    return tuple(sorted(found))


def key() -> str:
    digest = hashlib.sha256()
    for path in sources():
        digest.update(f"{path.relative_to(PROJECT)} {lock.digest(path)}\n".encode())
    return digest.hexdigest()[:12]


def precompile(root: Path) -> None:
    """Compile in an installation that has Python the libraries, as the package's postinst will.

    That takes seconds here, and in a guest half a minute of each boot. Needs to be root. Raises BuildError.
    """
    top = root / HOME
    top.mkdir()
    carried = {f"vendor/{path}": File(data) for path, data in unpack(fetched()).items()}
    names = ("compile", "python.sh")
    scripts = {name: File((_SCRIPTS / name).read_bytes(), executable=True) for name in names}
    write(carried | scripts, top, _TIME)
    run("chroot", root, f"/{HOME}/compile")
    for path in top.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            path.unlink()


def fetched() -> tuple[Path, ...]:
    """Return the wheels of the libraries. Raises BuildError where one is neither here nor to be had."""
    return lock.fetch(lock.VENDOR, lock.CACHE, "x86_64")


def shape() -> str:
    """Return a text that changes with the work of `precompile`."""
    return lock.VENDOR.read_text() + (_SCRIPTS / "compile").read_text()


def _files(top: Path) -> Iterator[Path]:
    if top.is_file():
        yield top
        return
    for path in top.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            yield path


@contextmanager
def _alone() -> Iterator[None]:
    """Each call opens the file again, so that a lock keeps out threads as well as processes."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with (_FOLDER / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(folder: Path) -> Path:
    """Build it into a folder, which is there as a whole or not at all."""
    release = Release(version(), 1, _TIME)
    wheels = fetched()
    with tempfile.TemporaryDirectory(dir=_FOLDER) as temporary:
        work = Path(temporary)
        files = tree(own.wheel(release, work), unpack(wheels))
        made = debian.build(files, libraries(wheels), release, work, debian.QUICK)
        unfinished = work / folder.name
        unfinished.mkdir()
        made.rename(unfinished / made.name)
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.rename(folder)
    return folder / made.name


def _forget_unused() -> None:
    """Remove the packages of other sources that no boot has used for a day: each is 14 MB."""
    for made in _FOLDER.glob(f"*/{_NAME}"):
        if time.time() - made.parent.stat().st_mtime > _UNUSED_S:
            shutil.rmtree(made.parent)
