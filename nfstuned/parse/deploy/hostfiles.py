"""A host's own files without their host: units and maps, judged by their texts."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain, islice

from nfstuned.errors import ParseError
from nfstuned.model.mounts import (
    AutoMap,
    Local,
    Maker,
    MapEntry,
    Misnamed,
    Request,
    Unexpanded,
    UnitSetting,
    Unread,
    UnreadMap,
)
from nfstuned.parse.deploy.deployment import Found, moved
from nfstuned.parse.deploy.script import AUTOMOUNT, MOUNT, SERVICE, WrittenFile, parse_command
from nfstuned.parse.deploy.shell import MARK
from nfstuned.parse.etc.autofs import DIRECT, mount_requests, parse_map, parse_master
from nfstuned.parse.etc.requests import MOST_REQUESTS, TOO_MANY_REQUESTS
from nfstuned.parse.etc.units import AFTER_NETWORK, OTHER_SPECIFIERS, mount_request, parse_unit
from nfstuned.parse.fields import has_placeholder

_IN_PLACE = re.compile(r"(?:.*/)?(?:etc|lib|run)/systemd/system/[^/@]+", re.DOTALL)
"""A unit in a folder of systemd's has its name already; elsewhere its installation may give it another."""
_OF_HOST = "\1"
"""The mark of a specifier for which a host has the text."""
_BRANCH = "{%"
_MASTER_NAME = re.compile(r"auto[._]master(?:\..+)?")
_PARTS, _PART = "auto.master.d", ".autofs"
"""The folder with the parts of a master map, and the end of their names."""
_DROP_IN = re.compile(r"(?P<unit>.*\.(?:mount|automount|service))\.d/[^/]+\.conf", re.DOTALL)
_Row = Request | ParseError | Unexpanded | UnreadMap
"""A row of a map."""


def is_drop_in(file: str) -> bool:
    """Whether a file is a drop-in of a unit."""
    return _DROP_IN.fullmatch(file) is not None


def unit_requests(files: Mapping[str, str]) -> Iterator[tuple[str, Found]]:
    """Yield the requests of units, each with its unit's file: of a service those of its commands.

    `files` has the texts by name, also of drop-ins next to the units, which count in the order of their
    names. An .automount unit in the folder of its .mount unit makes that mount at its first use. The
    specifiers of a host are not known.
    """
    units: dict[str, list[UnitSetting | ParseError]] = {}
    for file in sorted(files, key=lambda file: (is_drop_in(file), file)):
        match = _DROP_IN.fullmatch(file)
        items = units.setdefault(match["unit"], []) if match else units.setdefault(file, [])
        items += parse_unit(files[file], file)
    for file, items in units.items():
        settings = [item for item in items if isinstance(item, UnitSetting)]
        if file.endswith(MOUNT):
            automount = units.get(file.removesuffix(MOUNT) + AUTOMOUNT, ())
            found = [*_of_mount(file, settings, [one for one in automount if isinstance(one, UnitSetting)])]
            if found and _BRANCH in files.get(file, ""):
                found = [Unexpanded("a unit with a template's branches", file, 1)]
            # Without a mount of NFS or SMB nobody asked about the unit.
            problems = (item for item in items if found and isinstance(item, ParseError) and _is_own(item))
            yield from ((file, row) for row in (*found, *problems))
        elif file.endswith(SERVICE):
            for setting in settings:
                if setting.section == "Service" and setting.name.startswith("Exec"):
                    command = re.sub("%.", _specifier, setting.value.lstrip("-@:+!|"))
                    rows = parse_command(command, setting.file, setting.line)
                    yield from ((file, row) for row in rows if not isinstance(row, WrittenFile))


def _specifier(match: re.Match[str]) -> str:
    """Return a percent sign, or the mark of a text that is not known."""
    return "%" if match[0] == "%%" else MARK


def _of_mount(file: str, settings: list[UnitSetting], automount: list[UnitSetting]) -> Iterator[Found]:
    for item in mount_request(posixpath.basename(file), settings, dict.fromkeys(OTHER_SPECIFIERS, _OF_HOST)):
        request = item.request if isinstance(item, Misnamed) else item
        if isinstance(request, Request) and _OF_HOST in f"{request.source}{request.point}{request.options}":
            yield Unexpanded("a unit with a specifier of its host", request.file, request.line)
            continue
        if isinstance(item, Misnamed) and not _is_refused(file, item.request.point):
            item = item.request  # noqa: PLW2901 - the same request
        if isinstance(item, Request) and automount:
            item = item._replace(maker=Maker.AUTOMOUNT)  # noqa: PLW2901 - the same request
            for setting in automount:
                if setting.name == "After" and not AFTER_NETWORK.isdisjoint(setting.value.split()):
                    yield Local(item._replace(file=setting.file, line=setting.line), item)
        yield item


def _is_refused(file: str, point: str) -> bool:
    """Return whether systemd refuses a unit with another mount point than its name: both must be its own."""
    own = posixpath.basename(file) + point
    return bool(_IN_PLACE.fullmatch(file)) and "{" not in own and not has_placeholder(own)


def _is_own(item: ParseError) -> bool:
    """Return whether a line is the unit's own, and not one that a template's program replaces."""
    return not re.search(r"\{[{%#]|\0|x00", item.message)


def written_requests(units: Mapping[str, str], file: str) -> Iterator[Found]:
    """Yield the requests of units by their names and texts; `file` has the texts.

    A line is of the unit's text.
    """
    for unit, row in unit_requests(units):
        if not isinstance(row, Local):
            found = moved(row, lambda line: line, file)
            yield found._replace(unit=unit) if isinstance(found, Misnamed) else found


def automount_requests(files: Mapping[str, str]) -> Iterator[tuple[str, Found]]:
    """Yield the requests of the automounter's maps, each with its map's file.

    `files` has the texts by name. A map has the mount points and the options of the lines that name it in a
    master map of its machine. Without such a line it is direct where a key is a path. Maps with such lines
    come first; a map has its entries again for each line, up to MOST_REQUESTS rows of all maps.
    """
    masters = {file: _masters_maps(file, text) for file, text in files.items() if _is_master(file, text)}
    of_name: defaultdict[str, list[AutoMap]] = defaultdict(list)
    for auto in chain.from_iterable(masters.values()):
        of_name[posixpath.basename(auto.name)].append(auto)
    maps = {
        file: tuple(auto for auto in of_name[posixpath.basename(file)] if _is_named(auto, file))
        for file in files
        if file not in masters
    }
    rows = ((file, row) for file, named in maps.items() if named for row in _of_map(file, files[file], named))
    yield from islice(rows, MOST_REQUESTS)
    for file, row in islice(rows, 1):
        yield file, ParseError(file, row.line, TOO_MANY_REQUESTS)
    for file in (file for file, named in maps.items() if not named):
        yield from ((file, row) for row in _of_map(file, files[file], ()))


def machine_of(file: str) -> str:
    """Return the folder that stands for a machine: above its etc, or the file's own."""
    above, etc, _ = f"/{file}".rpartition("/etc/")
    folder = above if etc else posixpath.dirname(file)
    return posixpath.dirname(folder) if posixpath.basename(folder) == _PARTS else folder


def _masters_maps(file: str, text: str) -> tuple[AutoMap, ...]:
    items = (item for item in parse_master(text, file) if isinstance(item, AutoMap))
    return tuple(part for item in items for part in item.parts or (item,))


def _is_master(file: str, text: str) -> bool:
    """Return whether a file is a master map, or a part of it, by its name and its place or its lines."""
    folder, name = posixpath.split(file)
    if not name.endswith(_PART):
        return _MASTER_NAME.fullmatch(name) is not None
    named = [each for each in _masters_maps(file, text) if not each.kind]
    # In a direct map options or a server follow the path.
    is_map = any(each.name.startswith("-") or ":" in each.name for each in named)
    return posixpath.basename(folder) == _PARTS or (bool(named) and not is_map)


def _is_named(auto: AutoMap, file: str) -> bool:
    """Return whether a line of a master map names a file of its machine."""
    if auto.kind not in {"", "file"} or auto.format == "amd" or machine_of(auto.file) != machine_of(file):
        return False
    name = auto.name if "/etc/" in f"/{file}" else posixpath.basename(auto.name)
    return f"/{file}".endswith(name if name.startswith("/") else f"/{name}")


def _of_map(file: str, text: str, maps: tuple[AutoMap, ...]) -> Iterator[_Row]:
    """Yield the requests of a map, and the entries that do not count for their keys."""
    first: dict[str, MapEntry] = {}
    for entry in parse_map(text, file):
        if isinstance(entry, ParseError):
            yield entry
        elif isinstance(entry, MapEntry):
            known = entry if _BRANCH in text or "{" in entry.key else first.setdefault(entry.key, entry)
            if known is not entry:
                place = f"{file}:{known.line}"
                yield UnreadMap(Unread.TWICE, "", "", entry.key, file, entry.line, place)
                continue
            point = DIRECT if entry.key.startswith("/") else f"/{posixpath.basename(file)}"
            for auto in maps or (AutoMap(point, "file", "sun", file, "", file, 0),):
                for item in mount_requests(entry, auto, {}):
                    if not isinstance(item, AutoMap):
                        yield item if maps else _of_unknown_type(item, entry)


def _of_unknown_type(item: Request | ParseError, entry: MapEntry) -> _Row:
    """Return a request, or that its type is not known: the line that names its map may have it."""
    if isinstance(item, Request) and item.source.startswith("//") and "fstype=" not in entry.text:
        return Unexpanded("a share of SMB without fstype=: give the master map, too", item.file, item.line)
    return item
