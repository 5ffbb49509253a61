"""A folder that stands for the root of a host."""

from __future__ import annotations

import stat
from pathlib import Path

from nfstuned.host.root import Root


def put(path: Path, content: str | bytes = "", mode: int | None = None) -> Path:
    """Write a file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape"))
    if mode is not None:
        path.chmod(mode)
    return path


def link(path: Path, target: str | Path) -> Path:
    """Make a symbolic link, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


def everything(tree: Path) -> dict[str, tuple[str, bytes]]:
    """Return all that is below a folder: kind, permissions and content of each name."""
    found = {}
    for path in sorted(tree.rglob("*")):
        status = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        if stat.S_ISLNK(status.st_mode):
            data = str(path.readlink()).encode()
        found[str(path.relative_to(tree))] = (stat.filemode(status.st_mode), data)
    return found


class Tree:
    """The files of a host below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def root(self) -> Root:
        """A root that has read nothing yet."""
        return Root(str(self.folder))

    def write(self, name: str, content: str | bytes = "", mode: int | None = None) -> Path:
        """Write a file, with the folders above it."""
        return put(self.folder / name, content, mode)

    def link(self, name: str, target: str | Path) -> Path:
        """Make a symbolic link, with the folders above it."""
        return link(self.folder / name, target)
