"""nfsmount.conf or nfs.conf, its drop-ins and what they include, in the order of nfs-utils."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nfstuned.errors import ParseError
from nfstuned.host.found import Found, below
from nfstuned.host.root import Root
from nfstuned.model.intent import ConfInclude, Setting
from nfstuned.parse.nfsmount import FILE, VENDOR_FILE, drop_ins, included, parse_nfsmount

NFS_CONF = "/etc/nfs.conf"
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_DEEPEST = 16
"""How deep files may include each other here; mount.nfs knows no bound, and crashes."""


@dataclass
class MountConf:
    """A reader of one configuration of nfs-utils; nothing below the points in `mounted` is read."""

    root: Root
    mounted: Sequence[str]
    found: Found
    file: str = FILE

    def read(self) -> None:
        """Read it as conf_init_file does: the vendor's own files count only where the file is absent."""
        vendors = VENDOR_FILE.replace(FILE, self.file)
        if not self._file(self.file):
            self._file(vendors)
            self._folder(vendors)
        self._folder(self.file)

    def _folder(self, file: str) -> None:
        for name in drop_ins(self.root.names(f"{file[1:]}.d")):
            self._file(f"{file}.d/{name}")

    def _file(self, file: str) -> bool:
        try:
            text = self.root.read(file[1:])
        except OSError as error:
            self._missed(file, error)
            return False
        self._keep(parse_nfsmount(text, file), (file,))
        return True

    def _keep(self, items: Iterable[Setting | ConfInclude | ParseError], chain: tuple[str, ...]) -> None:
        for item in items:
            if isinstance(item, Setting):
                self.found.settings.append(item)
            elif isinstance(item, ParseError):
                self.found.problems.append(item)
            else:
                self._include(item, chain)

    def _include(self, include: ConfInclude, chain: tuple[str, ...]) -> None:
        path = included(include)
        if path in chain or len(chain) > _DEEPEST:
            message = f"{path} includes itself, which makes mount.nfs crash"
            self.found.problems.append(ParseError(include.file, include.line, message))
            return
        try:
            text = "" if below(path, self.mounted) else self.root.read(path[1:])
        except OSError as error:
            self._missed(path, error)
            if not include.optional:
                message = f"the included file cannot be read: {path}"
                self.found.problems.append(ParseError(include.file, include.line, message))
            return
        self._keep(parse_nfsmount(text, path, include.section, include.argument), (*chain, path))

    def _missed(self, file: str, error: OSError) -> None:
        if error.errno not in _ABSENT:
            self.found.unread.append(f"{file}: {error.strerror}")
