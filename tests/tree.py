"""A folder that stands for the root of a host."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
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


def fingerprints(root: Path) -> dict[str, str]:
    """Return of each name below a folder its kind, mode, owner and content; but for folders also its time."""
    found = {}
    for parent, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(parent, name)
            status = path.lstat()
            mode = f"{stat.filemode(status.st_mode)} {status.st_uid}:{status.st_gid}"
            found[str(path.relative_to(root))] = f"{mode} {_content(path, status)}"
    return found


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the names that are not the same in both."""
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def _content(path: Path, status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return f"-> {path.readlink()}"
    if stat.S_ISREG(status.st_mode):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return f"{digest} {status.st_mtime_ns} {status.st_nlink}"
    return str(status.st_rdev)


class Tree:
    """The files of a host below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def root(self) -> Root:
        """A root that has read nothing yet."""
        return Root(str(self.folder))

    def write(self, name: str, content: str | bytes = "", mode: int | None = None) -> Path:
        return put(self.folder / name, content, mode)

    def link(self, name: str, target: str | Path) -> Path:
        return link(self.folder / name, target)
