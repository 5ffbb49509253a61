"""The Debian package that is tried: that of dist/, built anew where it is missing or out of date."""

from __future__ import annotations

import fcntl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nfstuned import __version__

_PROJECT = Path(__file__).parents[2]
_DIST = _PROJECT / "dist"
_SOURCES = ("nfstuned", "systemd", "udev", "docs/man", "docs/completion", "docs/rules", "dev/package")
_FILES = ("pyproject.toml", "CHANGELOG.md", "LICENSE")


def deb() -> Path:
    """Return the package of this tree as it is now; building it takes minutes. Raises RuntimeError."""
    with _lock():
        found = _newest()
        if found is None or found.stat().st_mtime < _changed():
            _build()
            found = _newest()
    if found is None:
        raise RuntimeError(f"dev/build left no package of nfstuned {__version__} in {_DIST}")
    return found


def _newest() -> Path | None:
    made = _DIST.glob(f"nfstuned_{__version__}-*_amd64.deb")
    return max(made, key=lambda path: path.stat().st_mtime, default=None)


def _changed() -> float:
    """Return when something that goes into the package was last changed."""
    own = [_PROJECT / name for name in _FILES]
    for folder in _SOURCES:
        own += (path for path in (_PROJECT / folder).rglob("*") if path.suffix != ".pyc" and path.is_file())
    return max(path.stat().st_mtime for path in own)


def _build() -> None:
    command = ["sh", str(_PROJECT / "dev/build")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"the packages do not build:\n{(done.stdout + done.stderr)[-4000:]}")


@contextmanager
def _lock() -> Iterator[None]:
    """Let two that need it at once build it once."""
    _DIST.mkdir(exist_ok=True)
    with (_DIST / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
