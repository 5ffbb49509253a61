"""nfsmount.conf and nfs.conf in the order of nfs-utils, and the mount.nfs that reads them."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from nfstuned.errors import ParseError
from nfstuned.host.root import Root
from nfstuned.model.mounts import Request
from nfstuned.model.requests import AutoMap, ConfInclude, Setting
from nfstuned.model.system import NfsUtils
from nfstuned.parse.etc.nfsmount import FILE, VENDOR_FILE, drop_ins, included, parse_mount_nfs, parse_nfsmount


@dataclass
class Collected:
    """What the files ask for, and what in them could not be understood."""

    requests: list[Request] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    problems: list[ParseError] = field(default_factory=list)
    maps: list[AutoMap] = field(default_factory=list)
    """The automounter's maps whose entries no file has."""
    unread: list[str] = field(default_factory=list)
    """Files of nfs-utils' configuration that are there and could not be read, each with the reason."""

    def add(self, items: Iterable[Request | ParseError]) -> None:
        """Keep requests and errors, each in its place."""
        for item in items:
            if isinstance(item, ParseError):
                self.problems.append(item)
            else:
                self.requests.append(item)


def below(path: str, points: Iterable[str]) -> bool:
    """Return whether a path is below any of the points; "/" does not count."""
    return any(path.startswith(point.rstrip("/") + "/") for point in points if point != "/")


NFS_CONF = "/etc/nfs.conf"
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_DEEPEST = 16
"""How deep files may include each other here; mount.nfs knows no bound, and crashes."""


@dataclass
class MountConf:
    """A reader of a configuration of nfs-utils; nothing below the points in `mounted` is read."""

    root: Root
    mounted: Sequence[str]
    collected: Collected
    file: str = FILE

    def read(self) -> None:
        """Read it as conf_init_file does: the vendor's own files count only where the file is absent."""
        vendors = VENDOR_FILE.replace(FILE, self.file)
        if not self._read_file(self.file):
            self._read_file(vendors)
            self._read_drop_ins(vendors)
        self._read_drop_ins(self.file)

    def _read_drop_ins(self, file: str) -> None:
        for name in drop_ins(self.root.names(f"{file[1:]}.d")):
            self._read_file(f"{file}.d/{name}")

    def _read_file(self, file: str) -> bool:
        try:
            text = self.root.read(file[1:])
        except OSError as error:
            self._note_unread(file, error)
            return False
        self._keep(parse_nfsmount(text, file), (file,))
        return True

    def _keep(self, items: Iterable[Setting | ConfInclude | ParseError], chain: tuple[str, ...]) -> None:
        for item in items:
            if isinstance(item, Setting):
                self.collected.settings.append(item)
            elif isinstance(item, ParseError):
                self.collected.problems.append(item)
            else:
                self._include(item, chain)

    def _include(self, include: ConfInclude, chain: tuple[str, ...]) -> None:
        path = included(include)
        if path in chain or len(chain) > _DEEPEST:
            message = f"{path} includes itself, which makes mount.nfs crash"
            self.collected.problems.append(ParseError(include.file, include.line, message))
            return
        try:
            text = "" if below(path, self.mounted) else self.root.read(path[1:])
        except OSError as error:
            self._note_unread(path, error)
            if not include.optional:
                message = f"the included file cannot be read: {path}"
                self.collected.problems.append(ParseError(include.file, include.line, message))
            return
        self._keep(parse_nfsmount(text, path, include.section, include.argument), (*chain, path))

    def _note_unread(self, file: str, error: OSError) -> None:
        if error.errno not in _ABSENT:
            self.collected.unread.append(f"{file}: {error.strerror}")


_PROGRAMS = ("sbin/mount.nfs", "usr/sbin/mount.nfs")
"""mount(8) looks in /sbin (FS_SEARCH_PATH of util-linux), which is /usr/sbin nearly everywhere."""


def observe_nfs_utils(root: Root) -> NfsUtils | None:
    """Return what the installed mount.nfs tells of itself; None without a program that this user may read."""
    for name in _PROGRAMS:
        with suppress(OSError):
            return parse_mount_nfs(root.read_bytes(name))
    return None
