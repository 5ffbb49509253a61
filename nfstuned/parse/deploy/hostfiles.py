"""A host's own files without their host: units and maps, judged by their texts."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

from nfstuned.errors import ParseError
from nfstuned.model.mounts import AutoMap, Local, Maker, MapEntry, Misnamed, Request, Unexpanded, UnitSetting
from nfstuned.parse.deploy.deployment import Found, moved
from nfstuned.parse.deploy.script import AUTOMOUNT, MOUNT, SERVICE, WrittenFile, parse_command
from nfstuned.parse.deploy.shell import MARK
from nfstuned.parse.etc.autofs import DIRECT, mount_requests, parse_map
from nfstuned.parse.etc.units import AFTER_NETWORK, mount_request, parse_unit
from nfstuned.parse.fields import has_placeholder

_IN_PLACE = re.compile(r"(?:.*/)?(?:etc|lib|run)/systemd/system/[^/@]+", re.DOTALL)
"""A unit in a folder of systemd's has its name already; elsewhere its installation may give it another."""
_BRANCH = "{%"
_DROP_IN = re.compile(r"(?P<unit>.*\.(?:mount|automount|service))\.d/[^/]+\.conf", re.DOTALL)


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
    for item in mount_request(posixpath.basename(file), settings, {}):
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


def map_requests(text: str, file: str) -> Iterator[Request | ParseError]:
    """Yield the requests of a map of the automounter's; it is direct where a key is a path."""
    for entry in parse_map(text, file):
        if isinstance(entry, ParseError):
            yield entry
        elif isinstance(entry, MapEntry):
            point = DIRECT if entry.key.startswith("/") else f"/{posixpath.basename(file)}"
            auto = AutoMap(point, "file", "sun", file, "", file, 0)
            for item in mount_requests(entry, auto, {}):
                if not isinstance(item, AutoMap):
                    yield item
