"""The automounter's maps, as far as they are files."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nfstuned.errors import ParseError
from nfstuned.host.look.nfsmount import Collected, below
from nfstuned.host.root import Root
from nfstuned.model.requests import AutoMap, MapEntry, MapInclude
from nfstuned.parse.etc.autofs import DIRECT, MASTER, WILDCARD, mount_requests, parse_map, parse_master
from nfstuned.parse.fields import clean_path

_DEEPEST = 16
"""How deep maps may include each other (MAX_INCLUDE_DEPTH of autofs)."""
_ASKED = ("program", "exec", "yp", "nis", "nisplus", "ldap", "ldaps", "sss", "hesiod")
"""The kinds of maps whose entries are in no file. `-hosts` is left out: it is on by default with RHEL, and
nobody wrote a server into it."""
_VARIABLES = {
    "ARCH": "arch",
    "HOST": "hostname",
    "OSNAME": "ostype",
    "OSREL": "osrelease",
    "OSVERS": "version",
}


@dataclass
class AutoMaps:
    """A reader of maps; nothing below the points in `mounted`, or of the maps, is read."""

    root: Root
    mounted: Sequence[str]
    collected: Collected
    maps: list[AutoMap] = field(default_factory=list)

    def read(self) -> None:
        """Add what the maps in files ask for; a point that comes twice is its first map's."""
        self._master(MASTER, ())
        points: set[str] = set()
        nulled: set[str] = set()
        avoid = [*self.mounted, *(item.point for item in self.maps)]
        variables = self._variables()
        for item in self.maps:
            if item.point in nulled:
                nulled.remove(item.point)
            elif item.kind == "null":
                nulled.add(item.point)
            elif item.point == DIRECT or item.point not in points:
                points.add(item.point)
                self._map(item, avoid, variables)

    def _map(self, item: AutoMap, avoid: Sequence[str], variables: Mapping[str, str]) -> None:
        """Add what a map asks for, or the map itself where only the automounter can ask it."""
        path = _file_of(item.kind, item.name)
        if item.format == "amd":
            return
        if item.kind in _ASKED or (path and not below(path, avoid) and self.root.executable(path[1:])):
            self.collected.maps.append(item)
        entries: dict[str, MapEntry] = {}
        for entry in self._entries(path, avoid, ()):
            entries.setdefault(entry.key, entry)
        for entry in sorted(entries.values(), key=lambda entry: entry.key == WILDCARD):
            self.collected.add(mount_requests(entry, item, variables))

    def _master(self, file: str, chain: tuple[str, ...]) -> None:
        if file in chain or len(chain) > _DEEPEST or below(file, self.mounted):
            return
        for item in parse_master(self.root.read_or_empty(file[1:]), file):
            if isinstance(item, ParseError):
                self.collected.problems.append(item)
            elif isinstance(item, AutoMap):
                self.maps.append(item)
            else:
                for path in self._included(item):
                    self._master(path, (*chain, file))

    def _included(self, include: MapInclude) -> list[str]:
        if include.kind != "dir":
            path = _file_of(include.kind, include.name)
            return [path] if path else []
        names = self.root.names(include.name[1:])
        good = [name for name in names if name.endswith(".autofs") and not name.startswith(".")]
        return [posixpath.join(include.name, name) for name in good]

    def _entries(self, path: str, avoid: Sequence[str], chain: tuple[str, ...]) -> list[MapEntry]:
        """Return the entries of a map in a file; none where the map is a program or a server keeps it."""
        if not path or path in chain or len(chain) > _DEEPEST or below(path, avoid):
            return []
        if self.root.executable(path[1:]):
            return []
        entries: list[MapEntry] = []
        for item in parse_map(self.root.read_or_empty(path[1:]), path):
            if isinstance(item, ParseError):
                self.collected.problems.append(item)
            elif isinstance(item, MapEntry):
                entries.append(item)
            else:
                entries += self._entries(_file_of(item.kind, item.name), avoid, (*chain, path))
        return entries

    def _variables(self) -> dict[str, str]:
        texts = {
            name: self.root.read_or_empty(f"proc/sys/kernel/{file}").strip()
            for name, file in _VARIABLES.items()
        }
        return {name: text for name, text in texts.items() if text}


def _file_of(kind: str, name: str) -> str:
    """Return the file of a map, "" where it is no file; without a path it is in /etc."""
    if kind not in ("", "file"):
        return ""
    return clean_path(posixpath.join("/etc", name))
