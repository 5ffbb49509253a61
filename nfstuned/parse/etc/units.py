"""Unit files and their names (systemd.unit(5)), presets (systemd.preset(5)), and `systemctl show`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Maker, Misnamed, Request
from nfstuned.model.requests import UnitSetting, UnitState
from nfstuned.parse.etc.fstab import TYPES, mounted_type
from nfstuned.parse.fields import clean_path, quoted

SUFFIX = ".mount"
_SPACE = " \t\n\r"
_COMMENTS = ("#", ";")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:_")
_DOT = ord(".")
_SPECIFIER = r"%([A-Za-z0-9%])"


@dataclass(slots=True, eq=False)
class _UnitReader:
    """The section that a unit file's lines are in, and what they held."""

    file: str
    section: str | None = None
    items: list[UnitSetting | ParseError] = field(default_factory=list)

    def refuse(self, line: int, message: str) -> None:
        self.items.append(ParseError(self.file, line, message))

    def assign(self, line: int, content: str) -> None:
        name, separator, value = content.partition("=")
        name = name.strip(_SPACE)
        if self.section is None:
            self.refuse(line, f"an assignment outside of a section does not count: {quoted(content)}")
        elif not separator:
            self.refuse(line, f"no '=' in {quoted(content)}")
        elif not name:
            self.refuse(line, f"a value without a name: {quoted(content)}")
        else:
            self.items.append(UnitSetting(self.section, name, value.strip(_SPACE), self.file, line))


def parse_unit(text: str, file: str) -> tuple[UnitSetting | ParseError, ...]:
    """Return the assignments of a unit file or drop-in in their order, of all sections."""
    reader = _UnitReader(file)
    for number, line in _joined_lines(text.removeprefix("\ufeff")):
        content = line.strip(_SPACE)
        if not content:
            continue
        if not content.isprintable() and any("\udc80" <= char <= "\udcff" for char in content):
            reader.refuse(number, f"not UTF-8, so systemd passes it over: {quoted(content)}")
        elif content.startswith("["):
            reader.section = content[1:-1] if content.endswith("]") else None
            if reader.section is None:
                reader.refuse(number, f"a section without a closing bracket: {quoted(content)}")
        else:
            reader.assign(number, content)
    return tuple(reader.items)


def mount_request(
    name: str, settings: Iterable[UnitSetting], specifiers: Mapping[str, str]
) -> tuple[Request | Misnamed | ParseError, ...]:
    """Return what a mount unit asks for: nothing without NFS or SMB, a Misnamed where systemd refuses it.

    `settings` are the unit file's and then its drop-ins', `specifiers` the host's (`H` to its name). The
    values are not unquoted: systemd takes What=, Where= and Options= as they stand.
    """
    known = _name_specifiers(name) | dict(specifiers)
    values: dict[str, UnitSetting] = {}
    errors: list[ParseError] = []
    for setting in settings:
        if setting.section != "Mount":
            continue
        value, unknown = _expand(setting.value, known)
        if unknown:
            message = f"a specifier that is not known here: {quoted(unknown)}"
            errors.append(ParseError(setting.file, setting.line, message))
        else:
            values[setting.name] = UnitSetting("Mount", setting.name, value, setting.file, setting.line)
    return (*errors, *_request(name, values))


def unit_name(point: str) -> str:
    """Return the name of the mount unit of a path, as `systemd-escape --path --suffix=mount` prints it."""
    data = clean_path(point)[1:].encode("utf-8", "surrogateescape")
    return ("".join(_escape(place, byte) for place, byte in enumerate(data)) or "-") + SUFFIX


def unit_path(name: str) -> str:
    """Return the path that a mount unit's name stands for."""
    escaped = name.removesuffix(SUFFIX)
    return "/" if escaped == "-" else "/" + _unescape(escaped)


def drop_in_folders(name: str) -> tuple[str, ...]:
    """Return the folders of a mount unit's drop-ins, the most special first (systemd.unit(5))."""
    parts = name.removesuffix(SUFFIX).split("-")
    prefixes = ["-".join(parts[:count]) + "-" for count in range(len(parts) - 1, 0, -1)]
    return tuple(f"{stem}.d" for stem in (name, *(prefix + SUFFIX for prefix in prefixes), SUFFIX[1:]))


def _joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line and its number, comments left out; a backslash at its end joins it with the next."""
    start = 1
    held: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip(_SPACE).startswith(_COMMENTS):
            continue
        start = start if held else number
        part = line.removesuffix("\r")
        if (len(part) - len(part.rstrip("\\"))) % 2:
            held.append(part[:-1] + " ")
            continue
        yield start, "".join([*held, part])
        held = []
    yield start, "".join(held)


def _request(name: str, values: dict[str, UnitSetting]) -> tuple[Request | Misnamed, ...]:
    """Return the request of a [Mount] section, () for other types."""
    what, where = values.get("What"), values.get("Where")
    kind = values["Type"].value if "Type" in values else ""
    if what is None:
        return ()
    fstype = mounted_type(kind, what.value)
    if fstype not in TYPES:
        return ()
    point = where.value if where is not None and where.value else unit_path(name)
    options = values.get("Options", what)
    text = options.value if options is not what else ""
    request = Request(what.value, clean_path(point), text, options.file, options.line, fstype=fstype)
    request = replace(request, maker=Maker.UNIT, named=kind if kind != fstype else None)
    # systemd's mount_verify() in src/core/mount.c.
    return (request if unit_name(point) == name else Misnamed(request, unit_name(point)),)


def _expand(text: str, specifiers: Mapping[str, str]) -> tuple[str, str]:
    """Return the text with its specifiers replaced, and the first specifier that is not known, or ""."""
    letters = re.findall(_SPECIFIER, text)
    unknown = next((f"%{letter}" for letter in letters if letter != "%" and letter not in specifiers), "")
    return re.sub(_SPECIFIER, lambda match: specifiers.get(match[1], "%"), text), unknown


def _name_specifiers(name: str) -> dict[str, str]:
    stem = name.removesuffix(SUFFIX)
    last = stem.rpartition("-")[2]
    return {
        "n": name,
        "N": stem,
        "p": stem,
        "P": _unescape(stem),
        "f": unit_path(name),
        "j": last,
        "J": _unescape(last),
        "i": "",
        "I": "",
    }


def _escape(place: int, byte: int) -> str:
    """Return what stands in a unit's name for a byte of its path; a dot is escaped only at the beginning."""
    if byte == ord("/"):
        return "-"
    if byte in _PLAIN or (byte == _DOT and place):
        return chr(byte)
    return f"\\x{byte:02x}"


def _unescape(text: str) -> str:
    data = text.replace("-", "/").encode("utf-8", "surrogateescape")
    plain = re.sub(rb"\\x([0-9a-fA-F]{2})", lambda match: bytes.fromhex(match[1].decode()), data)
    return plain.decode("utf-8", "surrogateescape")


_VERBS = ("enable", "disable", "ignore")


def preset_enables(texts: Iterable[str], unit: str) -> bool:
    """Return whether preset files, in systemd's order, enable a unit: the first line that fits decides.

    A unit that no line names is enabled. Instances of templates are of no interest here.
    """
    for text in texts:
        for line in text.splitlines():
            words = line.split()
            if len(words) > 1 and words[0] in _VERBS and fnmatchcase(unit, words[1]):
                return words[0] == "enable"
    return True


PROPERTIES = (
    *("Id", "LoadState", "FragmentPath", "NeedDaemonReload", "LazyUnmount", "ForceUnmount", "BoundBy"),
    *("ActiveState", "Result", "ConditionResult", "ConditionTimestampMonotonic", "Job", "InvocationID"),
    *("WantedBy", "RequiredBy"),
)


def parse_units(text: str) -> Mapping[str, UnitState]:
    """Return the state of each unit, by its name; what an older systemd does not show is false or empty."""
    units: dict[str, UnitState] = {}
    for block in text.split("\n\n"):
        values = dict(line.partition("=")[::2] for line in block.split("\n") if "=" in line)
        if name := values.get("Id"):
            units[name] = UnitState(
                loaded=values.get("LoadState") == "loaded",
                fragment=values.get("FragmentPath", ""),
                stale=values.get("NeedDaemonReload") == "yes",
                lazy=values.get("LazyUnmount") == "yes",
                force=values.get("ForceUnmount") == "yes",
                bound_by=tuple(values.get("BoundBy", "").split()),
                active=values.get("ActiveState", ""),
                result=values.get("Result", ""),
                # Of a unit that was never to be started it says no as well.
                condition=values.get("ConditionResult") != "no"
                or values.get("ConditionTimestampMonotonic", "0") == "0",
                job=values.get("Job", "").strip("0 ") != "",
                wanted_by=tuple(f"{values.get('WantedBy', '')} {values.get('RequiredBy', '')}".split()),
                invocation=values.get("InvocationID", ""),
            )
    return units
