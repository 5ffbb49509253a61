"""The automounter's maps in files, and the sources of nsswitch.conf(5) that name them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from nfstuned.errors import MapError, ParseError
from nfstuned.model.mounts import AutoMap, MapEntry, MapInclude, MapSource, Unread, UnreadMap
from nfstuned.parse.etc.autofs import (
    CONF,
    DIRECT,
    MASTER,
    OLD_CONFS,
    WILDCARD,
    mount_requests,
    parse_map,
    parse_master,
    parse_master_name,
)
from nfstuned.parse.etc.requests import MOST_MAPS, Intent
from nfstuned.parse.fields import below, clean_path, quoted
from nfstuned.parse.tree import ELF, FileTree

_DEEPEST = 16
"""How deep maps may include each other (MAX_INCLUDE_DEPTH of autofs)."""
DEEPEST_MOUNTED = 16
"""How deep a map may be mounted in another; automount(8) has no bound, as it mounts on use."""
MOST_FILES = 1000
"""How many files are read, an included file each time that another map includes it."""
_FOLDERS = ("/etc", "/etc/autofs")
"""Where maps without a path are (AUTOFS_MAP_DIR): mostly in the first, with Arch and Gentoo in the other."""
_PROGRAM = ("#!", ELF)
"""The first characters of a file that execve(2) runs."""
_FOUND, _NOT_FOUND, _UNAVAILABLE, _AGAIN = "SUCCESS", "NOTFOUND", "UNAVAIL", "TRYAGAIN"
_OLD_MASTER = "auto_master"
_MISNAMED = re.compile(
    r"(?!.*(?:old|ba[ck]|orig|save|copy|dis|off|ample|tmp|te?mpl))([\w-]+)(?:\.(?:conf|cfg|auto|map|master))?",
    re.IGNORECASE,
)
"""Files of auto.master.d that somebody meant to be read: names without the marks of a copy put away."""
_HOSTS, _NULL = "hosts", "null"
"""The map of `-hosts` is not named: it is on by default with RHEL, and nobody wrote a server into it."""
_PROGRAMS = ("usr/sbin/automount", "usr/bin/automount")
_SSSD, _SSSD_FOLDER = "etc/sssd/sssd.conf", "etc/sssd/conf.d"
_SSSD_SOCKET = "etc/systemd/system/sssd.service.wants/sssd-autofs.socket"
"""Where this unit is enabled, SSSD starts the service that answers automount(8) without a setting."""
_NIS_PLUS = "var/nis/NIS_COLD_START"
"""The client's directory, which nisinit writes."""
_NIS_DOMAIN, _NO_DOMAIN = "proc/sys/kernel/domainname", "(none)"
_DEFAULT_DOMAIN, _SYSCONFIG_NETWORK = "etc/defaultdomain", "etc/sysconfig/network"
"""Debian and SUSE set it by the first of them, RHEL by the second."""
_NIS_OF_NETWORK = r"(?m)^\s*NISDOMAIN=[\"']?[^\s\"']"
_VARIABLES = {
    "ARCH": "arch",
    "HOST": "hostname",
    "OSNAME": "ostype",
    "OSREL": "osrelease",
    "OSVERS": "version",
}


class AutoMaps:
    """A reader of maps; nothing below the points in `mounted`, or of the maps, is read."""

    def __init__(self, root: FileTree, mounted: Sequence[str], collected: Intent) -> None:
        self.root = root
        self.mounted = mounted
        self.collected = collected
        self.maps: list[AutoMap] = []
        self.misnamed: dict[str, str] = {}
        """Files next to .autofs files, by the name under which automount(8) would read them."""
        self.files = 0
        self._answering: dict[str, bool] = {}

    def read(self) -> None:
        """Add the requests of the maps in files; a point that comes twice is its first map's."""
        self._read_default_master()
        points: set[str] = set()
        nulled: set[str] = set()
        for item in self.maps:
            if item.point in nulled:
                nulled.remove(item.point)
            elif item.kind == _NULL:
                nulled.add(item.point)
            elif item.point == DIRECT or item.point not in points:
                points.add(item.point)
                self._read_map(item)
        self.collected.automounted += sorted(points - {DIRECT})[:MOST_MAPS]
        for right, path in self.misnamed.items():
            entries = [] if self.root.exists(right[1:]) else parse_master(self._text(path), path)
            maps = [each for each in entries if isinstance(each, AutoMap)]
            names = {
                each.name for each in maps if each.name.startswith("/") and self._may_exist(each.name[1:])
            }
            if maps and len(maps) == len(entries) == len(names - {each.name for each in self.maps}):
                found = MapInclude("", path, path, maps[0].line)
                self._name(Unread.ENDING, found, maps[0].point, local=right)

    @cached_property
    def _folder(self) -> str:
        """The folder for which automount(8) was built, by the files that come with it."""
        mine = (
            folder
            for folder in _FOLDERS
            if any(self.root.exists(f"{folder[1:]}/{name}") for name in (MASTER, CONF, _OLD_MASTER))
        )
        return next(mine, _FOLDERS[0])

    @cached_property
    def _avoided(self) -> Sequence[str]:
        return [*self.mounted, *(item.point for item in self.maps)]

    def _read_map(self, item: AutoMap, depth: int = 0) -> None:
        """Add the requests of a map, also those of the maps that are mounted in it."""
        entries: dict[str, tuple[MapEntry, AutoMap]] = {}
        for part in item.parts or (item,):
            for entry in self._entries_of(part):
                first, _ = entries.setdefault(entry.key, (entry, part))
                if first is not entry and first.file == entry.file:
                    place = f"{first.file}:{first.line}"
                    self._name(
                        Unread.TWICE,
                        MapInclude("", entry.key, entry.file, entry.line),
                        item.point,
                        local=place,
                    )
            if WILDCARD in entries:
                break
        for entry, part in sorted(entries.values(), key=lambda pair: pair[0].key == WILDCARD):
            if self.collected.full:
                break
            for request in mount_requests(entry, part, self._variables):
                if not isinstance(request, AutoMap):
                    self.collected.add([request])
                elif depth < DEEPEST_MOUNTED:
                    self._read_map(request, depth + 1)
                else:
                    message = f"more than {DEEPEST_MOUNTED} maps mounted in each other: this map was not read"
                    self.collected.refuse(MapError(entry.file, entry.line, message))

    def _entries_of(self, item: AutoMap) -> list[MapEntry]:
        """Return the entries of a map; none of a map that is no file: it is named."""
        wanted = MapInclude(item.kind, item.name, item.file, item.line)
        if item.kind == _HOSTS:
            return []
        if item.format == "amd":
            self._name(Unread.FORMAT, wanted, item.point)
            return []
        if WILDCARD in item.point.split("/"):
            self._name(Unread.KEY, wanted, item.point)
            return []
        return self._entries(wanted, item.point, set())

    def _entries(self, wanted: MapInclude, point: str, known: set[str], depth: int = 0) -> list[MapEntry]:
        """Return the entries of a map and of the maps that it includes, as far as these are files.

        A map in `known` adds none: it stands further up, and the first entry of a key counts.
        """
        entries: list[MapEntry] = []

        def read(path: str) -> str:
            entries.extend(self._entries_in(path, wanted, point, known, depth))
            return _FOUND if any(entry.key == WILDCARD for entry in entries) else _NOT_FOUND

        if depth <= _DEEPEST:
            self._find(wanted, point, known, read)
        return entries

    def _entries_in(
        self, path: str, wanted: MapInclude, point: str, known: set[str], depth: int
    ) -> list[MapEntry]:
        known.add(path)
        text = self._text(path)
        if wanted.kind != "file" and self.root.executable(path[1:]):
            if text.startswith(_PROGRAM):
                self._name(Unread.ASKED, wanted, point, "program")
                return []
            self._name(Unread.EXECUTABLE, wanted, point, local=path)
        entries: list[MapEntry] = []
        for item in parse_map(text, path):
            if isinstance(item, ParseError):
                self.collected.refuse(item)
            elif isinstance(item, MapEntry):
                entries.append(item)
            else:
                entries += self._entries(item, point, known, depth + 1)
        return entries

    def _text(self, path: str) -> str:
        """Return a file's text, "" where it cannot be read, and for all files beyond MOST_FILES."""
        self.files += 1
        if self.files == MOST_FILES + 1:
            message = f"more than {MOST_FILES} maps to read: nothing of this and of later maps was checked"
            self.collected.refuse(MapError(path, 0, f"{message}; remove repeated includes"))
        return self.root.read_or_empty(path[1:]) if self.files <= MOST_FILES else ""

    def _read_default_master(self) -> None:
        """Read the master map that is configured, else auto.master, and auto_master where that is missing."""
        files = (posixpath.join(self._folder, CONF), *OLD_CONFS)
        settings = (parse_master_name(self.root.read_or_empty(file[1:]), file) for file in files)
        configured = [setting for setting in settings if setting is not None]
        if not configured:
            # Without an automounter nobody is asked for maps.
            if any(map(self._exists, (MASTER, _OLD_MASTER))) or any(map(self.root.exists, _PROGRAMS)):
                line = self._sources[1]
                self._master(MapInclude("", MASTER, NSSWITCH, line), set(), default=True)
        elif isinstance(configured[-1], ParseError):
            self.collected.refuse(configured[-1])
        else:
            self._master(configured[-1], set())

    def _master(self, wanted: MapInclude, known: set[str], depth: int = 0, *, default: bool = False) -> None:
        def read(path: str) -> str:
            self._master_in(path, known, depth)
            return _FOUND

        if depth > _DEEPEST:
            return
        if wanted.kind == "dir":
            if not self._may_be_read(posixpath.join(wanted.name, "*"), wanted, ""):
                return
            for name in self.root.names(wanted.name[1:]):
                path = posixpath.join(wanted.name, name)
                if name.endswith(".autofs") and not name.startswith(".") and path not in known:
                    self._master_in(path, known, depth)
                elif match := _MISNAMED.fullmatch(name):
                    self.misnamed[posixpath.join(wanted.name, f"{match[1]}.autofs")] = path
            return
        if default and not self._exists(MASTER) and self._exists(_OLD_MASTER):
            wanted = MapInclude("", _OLD_MASTER, wanted.file, wanted.line)
        self._find(wanted, "", known, read)

    def _master_in(self, path: str, known: set[str], depth: int) -> None:
        known.add(path)
        for item in parse_master(self._text(path), path):
            if isinstance(item, ParseError):
                self.collected.refuse(item)
            elif isinstance(item, AutoMap):
                self.maps.append(item)
            else:
                self._master(item, known, depth + 1)

    def _find(self, wanted: MapInclude, point: str, known: set[str], read: Callable[[str], str]) -> None:
        """Have every file of a map read, unless it is in `known`; name a map that is no file.

        `read` returns the status for nsswitch.conf of a master map, or of a key that no file read so far has.
        """
        if wanted.kind not in ("", "file") or wanted.name.startswith("//"):
            self._name(Unread.ASKED, wanted, point, wanted.kind or "ldap")
        elif wanted.kind == "file" or wanted.name.startswith("/"):
            path = clean_path(posixpath.join(self._folder, wanted.name))
            if path in known or not self._may_be_read(path, wanted, point):
                return
            if point and not self._may_exist(path[1:]):
                self._name(Unread.MISSING, wanted, point)
            read(path)
        else:
            self._find_by_name(wanted, point, known, read)

    def _find_by_name(
        self, wanted: MapInclude, point: str, known: set[str], read: Callable[[str], str]
    ) -> None:
        """Go through the sources of nsswitch.conf (lookup_nss_mount, lookup_nss_read_master)."""
        asked: list[str] = []
        local = ""
        path = posixpath.join(self._folder, wanted.name)
        for source in self._sources[0]:
            if source.name != FILES:
                answer = "" if self._may_answer(source.name) else _UNAVAILABLE
                asked += [] if answer else [source.name]
            elif not self._exists(wanted.name):
                answer = "" if point else _UNAVAILABLE
            elif path in known:
                answer = _AGAIN
            elif asked:
                answer, local = "", path
            else:
                answer = read(path) if self._may_be_read(path, wanted, point) else ""
            if answer in source.ends or (asked and len(source.ends) == len(STATUSES)):
                break
        if asked:
            self._name(Unread.SOURCE, wanted, point, ", ".join(asked), local)

    def _exists(self, name: str) -> bool:
        return "/" not in name and self.root.exists(posixpath.join(self._folder, name)[1:])

    def _may_be_read(self, path: str, wanted: MapInclude, point: str) -> bool:
        """Return whether a file is below no mount; one that is below any is named."""
        if below(path, self._avoided if point else self.mounted):
            self._name(Unread.PLACE, wanted, point)
            return False
        return True

    @cached_property
    def _sources(self) -> tuple[tuple[MapSource, ...], int]:
        """The sources of a map that is known by its name, none after an error; and the line that has them."""
        try:
            return parse_automount(self.root.read_or_empty(NSSWITCH[1:]))
        except ParseError as error:
            self.collected.refuse(error)
            return (), error.line

    def _may_answer(self, source: str) -> bool:
        """Return whether a source may have maps: not where its client has no configuration."""
        if source not in self._answering:
            checks = {
                "sss": self._sssd_has_maps,
                "nisplus": lambda: self._may_exist(_NIS_PLUS),
                **dict.fromkeys(("nis", "yp"), self._has_nis_domain),
            }
            self._answering[source] = source not in checks or checks[source]()
        return self._answering[source]

    def _has_nis_domain(self) -> bool:
        """Return whether this machine has a NIS domain, or an image will have it at its boot."""
        running = self.root.read_or_empty(_NIS_DOMAIN).strip()
        if running:
            return running != _NO_DOMAIN
        network = self.root.read_or_empty(_SYSCONFIG_NETWORK)
        return bool(self.root.read_or_empty(_DEFAULT_DOMAIN).strip() or re.search(_NIS_OF_NETWORK, network))

    def _sssd_has_maps(self) -> bool:
        """Return whether SSSD may answer automount(8); where this user may not read its files it may."""
        names = (name for name in self.root.names(_SSSD_FOLDER) if name.endswith(".conf"))
        files = [
            name for name in (_SSSD, *(f"{_SSSD_FOLDER}/{name}" for name in names)) if self._may_exist(name)
        ]
        try:
            texts = [self.root.read(name) for name in files]
        except OSError:
            return True
        return bool(files) and (self.root.exists(_SSSD_SOCKET) or any(map(starts_autofs, texts)))

    def _may_exist(self, name: str) -> bool:
        """Return whether a file is there, also where this user may not know."""
        try:
            return self.root.demand_existence(name)
        except OSError:
            return True

    def _name(self, why: Unread, wanted: MapInclude, point: str, kind: str = "", local: str = "") -> None:
        """Keep that a map was not read."""
        self.collected.name(
            UnreadMap(why, point, kind or wanted.kind, wanted.name, wanted.file, wanted.line, local)
        )

    @cached_property
    def _variables(self) -> Mapping[str, str]:
        texts = {
            name: self.root.read_or_empty(f"proc/sys/kernel/{file}").strip()
            for name, file in _VARIABLES.items()
        }
        return {name: text for name, text in texts.items() if text}


NSSWITCH = "/etc/nsswitch.conf"
FILES = "files"
STATUSES = ("SUCCESS", "NOTFOUND", "UNAVAIL", "TRYAGAIN")
_SOURCES = (FILES, "yp", "nis", "nisplus", "ldap", "hesiod", "sss")
_LINE = r"(?i)automount:(.*)"
_PIECE = r"\[(?P<actions>[^\]]*)(?P<end>\]?)|(?P<source>[\w@$%^&*()+\":;?,<>./'{}~`]+)"
_ACTION = rf"(?i:\s*(!?)\s*({'|'.join(STATUSES)})\s*=\s*(continue|return))"


def parse_automount(text: str, file: str = NSSWITCH) -> tuple[tuple[MapSource, ...], int]:
    """Return the sources in their order and the number of the line; without a line `files` and 0.

    Raises ParseError for a line that automount(8) refuses.
    """
    matches = ((number, re.match(_LINE, line)) for number, line in enumerate(text.split("\n"), 1))
    lines = [(number, match[1]) for number, match in matches if match]
    if not lines:
        return (MapSource(FILES),), 0
    if len(lines) > 1:
        raise ParseError(file, lines[1][0], "a second line for automount: automount(8) reads neither")
    number, content = lines[0]
    sources: list[MapSource] = []
    after_source = False
    for piece in re.finditer(_PIECE, content, re.ASCII):
        if piece["source"] is not None:
            sources.append(MapSource(piece["source"]))
        else:
            ends = _ending_answers(piece["actions"]) if after_source and piece["end"] else None
            if ends is None:
                raise ParseError(file, number, f"automount(8) does not understand {quoted(piece[0])}")
            sources[-1] = MapSource(sources[-1].name, ends)
        after_source = piece["source"] is not None
    known = tuple(source for source in sources if source.name in _SOURCES)
    if not known:
        raise ParseError(file, number, "automount(8) takes no map from this source")
    return known, number


def _ending_answers(text: str) -> frozenset[str] | None:
    """Return the answers that end the search (check_nss_result of daemon/lookup.c); None for another text."""
    if not re.fullmatch(rf"(?:{_ACTION})+\s*", text, re.ASCII):
        return None
    actions = {
        match[2].upper(): (bool(match[1]), match[3].lower() == "return")
        for match in re.finditer(_ACTION, text, re.ASCII)
    }
    others = {status for status, (negated, returns) in actions.items() if negated and returns}
    return frozenset(
        status
        for status in STATUSES
        if others - {status} or actions.get(status, (False, status == "SUCCESS"))[1]
    )


def starts_autofs(text: str) -> bool:
    """Return whether `autofs` is among the `services` of the section [sssd] in a file of sssd.conf(5).

    SSSD then starts the service that answers automount(8). The list may go on over indented lines.
    """
    section = key = ""
    for line in text.split("\n"):
        content = line.strip()
        if not content or content.startswith(("#", ";")):
            continue
        if content.startswith("["):
            section, key = content.strip("[] \t").lower(), ""
            continue
        if not (key and line[0].isspace()):
            key, _, content = content.partition("=")
        if (section, key.strip().lower()) == ("sssd", "services") and re.search(r"\bautofs\b", content):
            return True
    return False
