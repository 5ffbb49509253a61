"""Files of a host without their host: units, scripts with the files that they write, and maps."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

from nfstuned.errors import ParseError
from nfstuned.model.mounts import AutoMap, Local, Maker, MapEntry, Misnamed, Request, Unexpanded, UnitSetting
from nfstuned.parse.deploy.deployment import Found, placed
from nfstuned.parse.deploy.docker import compose_requests, is_compose
from nfstuned.parse.deploy.kubernetes import is_manifest, kubernetes_requests
from nfstuned.parse.deploy.script import (
    AUTOMOUNT,
    EXPANDED,
    MOUNT,
    SERVICE,
    YAML,
    WrittenFile,
    marked,
    parse_command,
)
from nfstuned.parse.deploy.shell import MARK, Word
from nfstuned.parse.etc.autofs import DIRECT, mount_requests, parse_map
from nfstuned.parse.etc.units import mount_request, parse_unit
from nfstuned.parse.fields import has_placeholder
from nfstuned.parse.yaml import parse_documents

_AFTER_NETWORK = frozenset({"network.target", "network-online.target", "remote-fs-pre.target"})

_IN_PLACE = re.compile(r"(?:^|/)systemd/system/[^/]+", re.DOTALL)
"""A unit in a folder of systemd's has its name already; elsewhere its installation may give it another."""
_BRACED = r"\$\{(\w+)[^{}\n]*\}"
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
            # Without a mount of NFS or SMB nobody asked about the unit.
            problems = (item for item in items if found and isinstance(item, ParseError))
            yield from ((file, row) for row in (*found, *problems))
        elif file.endswith(SERVICE):
            for setting in settings:
                if setting.section == "Service" and setting.name.startswith("Exec"):
                    rows = parse_command(setting.value.lstrip("-@:+!|"), setting.file, setting.line)
                    yield from ((file, row) for row in rows if not isinstance(row, WrittenFile))


def _of_mount(file: str, settings: list[UnitSetting], automount: list[UnitSetting]) -> Iterator[Found]:
    for item in mount_request(posixpath.basename(file), settings, {}):
        if isinstance(item, Misnamed) and not _is_refused(file, item.request.point):
            item = item.request  # noqa: PLW2901 - the same request
        if isinstance(item, Request) and automount:
            item = item._replace(maker=Maker.AUTOMOUNT)  # noqa: PLW2901 - the same request
            for setting in automount:
                if setting.name == "After" and not _AFTER_NETWORK.isdisjoint(setting.value.split()):
                    yield Local(item._replace(file=setting.file, line=setting.line), item)
        yield item


def _is_refused(file: str, point: str) -> bool:
    """Return whether systemd refuses a unit with another mount point than its name: both must be its own."""
    return bool(_IN_PLACE.search(file)) and point.startswith("/") and not has_placeholder(file + point)


def written_requests(units: Mapping[str, str], file: str) -> Iterator[Request | Misnamed]:
    """Yield the requests of units by their names and texts; `file` has the texts.

    A line is of the unit's text.
    """
    for unit, row in unit_requests(units):
        if isinstance(row, Misnamed):
            yield row._replace(request=row.request._replace(file=file), unit=unit)
        elif isinstance(row, Request):
            yield row._replace(file=file)


def script_requests(text: str, file: str) -> Iterator[Found]:
    """Yield the mounts of a script's commands, and of the units and manifests that it writes.

    A unit with a variable, and a unit that several commands write, is named, not judged.
    """
    units: dict[str, list[Word]] = {}
    for row in parse_command(text, file):
        if not isinstance(row, WrittenFile):
            yield row
        elif row.name and not row.name.endswith(YAML):
            units.setdefault(row.name, []).append(row.text)
        elif row.template:
            yield from _of_yaml(row.template, file)
    whole = {unit: "\n".join(marked(word.text) for word in words) for unit, words in units.items()}
    for unit, found in unit_requests(whole):
        lines = units[unit][0].lines
        request = found.request if isinstance(found, Misnamed) else found
        if units[unit][1:]:
            yield Unexpanded("a unit that several commands write", file, lines[0])
        elif isinstance(request, Request):
            if MARK in f"{unit}{request.source}{request.point}{request.options}":
                yield Unexpanded(EXPANDED, file, lines[0])
                continue
            request = request._replace(file=file, line=lines[request.line - 1])
            yield found._replace(request=request, unit=unit) if isinstance(found, Misnamed) else request
        elif isinstance(request, Unexpanded):
            yield request._replace(file=file, line=lines[request.line - 1])


def _of_yaml(text: Word, file: str) -> Iterator[Found]:
    """Yield the requests of a here-document's manifests, or of a compose file."""
    rows: list[Found] = []
    try:
        # In a mapping such as {name: ${NAME}} a brace is YAML's own.
        for document in parse_documents(re.sub(_BRACED, r"$\1", text.text), file):
            if is_manifest(document):
                rows += kubernetes_requests(document, file)
            elif is_compose(document):
                rows += compose_requests(document, file)
    except ParseError as error:
        rows.append(Unexpanded("a text that is no YAML", file, error.line))
    yield from (placed(row, text.line, is_block=True) for row in rows)


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
