"""systemd's units: files, names (systemd.unit(5)), presets (systemd.preset(5)), control groups and state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from nfstuned.errors import ParseError
from nfstuned.model.mounts import (
    Maker,
    Misnamed,
    Request,
    UnitSetting,
    UnitState,
)
from nfstuned.model.system import Unit
from nfstuned.parse.etc.requests import TYPES, mounted_type
from nfstuned.parse.fields import clean_path, quoted, unit_name, without_remark
from nfstuned.parse.tree import FileTree

SUFFIX = ".mount"
_YES = ("1", "yes", "y", "true", "t", "on")
AFTER_NETWORK = frozenset({"network.target", "network-online.target", "remote-fs-pre.target"})
_SPACE = " \t\n\r"
_COMMENTS = ("#", ";")
_SPECIFIER = r"%([A-Za-z0-9%])"
_MOST_SPECIFIERS = 100
"""Of a setting: each may stand for a long text."""


@dataclass(slots=True, eq=False)
class _UnitReader:
    """The section that a unit file's lines are in, and their items."""

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
            reader.refuse(number, f"not UTF-8, so systemd ignores it: {quoted(content)}")
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
    """Return the request of a mount unit, or a Misnamed where systemd refuses it; () without NFS, EFS or SMB.

    `settings` are the unit file's and then its drop-ins', `specifiers` the host's (`H` to its name). The
    values are not unquoted: systemd takes What=, Where= and Options= as they stand. It ignores a setting with
    a specifier that does not exist; a unit with a specifier that is not known here is not judged.
    """
    stem = name.removesuffix(SUFFIX)
    last = stem.rpartition("-")[2]
    names = {"n": name, "N": stem, "p": stem, "P": _unescape(stem), "j": last, "J": _unescape(last)}
    known = {**_OF_ROOT, **names, "f": unit_path(name), "i": "", "I": "", "%": "%", **specifiers}
    values: dict[str, UnitSetting] = {}
    errors: list[ParseError] = []
    is_whole = True
    for setting in settings:
        if setting.section != "Mount":
            continue
        letters = re.findall(_SPECIFIER, setting.value)
        unknown = next((letter for letter in letters if letter not in known), None)
        if len(letters) > _MOST_SPECIFIERS:
            message = f"more than {_MOST_SPECIFIERS} specifiers in {setting.name}="
            errors.append(ParseError(setting.file, setting.line, message))
        elif unknown is None:
            value = re.sub(_SPECIFIER, lambda match: known[match[1]], setting.value)
            values[setting.name] = setting._replace(value=value)
        else:
            message = f"a specifier that is not known here: {quoted('%' + unknown)}"
            errors.append(ParseError(setting.file, setting.line, message))
            is_whole = is_whole and unknown not in OTHER_SPECIFIERS
    requests = _request(name, values)
    kind = values["Type"].value if "Type" in values else ""
    if not requests and without_remark(kind) not in TYPES:
        return ()
    if not is_whole:
        return tuple(errors)
    for setting in values.values() if requests else ():
        right = _MEANT.get(setting.name.lower(), setting.name)
        if right != setting.name:
            message = f"systemd ignores {setting.name}= in [Mount]: write {right}="
            errors.append(ParseError(setting.file, setting.line, message))
    return (*errors, *requests)


_OF_ROOT = {
    **dict.fromkeys("ug", "root"),
    **dict.fromkeys("UG", "0"),
    "h": "/root",
    "t": "/run",
    "S": "/var/lib",
    "C": "/var/cache",
    "L": "/var/log",
    "E": "/etc",
}
"""The specifiers of the system's manager."""
OTHER_SPECIFIERS = frozenset("aAbBcdDHlmMoqrRsTvVwWyY")
"""The others of systemd.unit(5): a host or a release of systemd decides."""
_MEANT = {
    **dict.fromkeys(("option", "options", "opts", "mountoptions"), "Options"),
    **dict.fromkeys(("type", "fstype"), "Type"),
    "what": "What",
    "where": "Where",
}
"""Names that people write in [Mount], in lower case, and systemd's own (systemd.mount(5))."""


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
    """Return the request of a [Mount] section, () for other types; its line has Options= or What=.

    Its source_line has What=, or a misspelt Type=.
    """
    source = values.get("What")
    kind, where, options = (
        values[key].value if key in values else "" for key in ("Type", "Where", "Options")
    )
    if "SloppyOptions" in values and values["SloppyOptions"].value.lower() in _YES:
        options = f"{options},sloppy".lstrip(",")  # mount -s
    if not where.startswith("/") or ".." in where.split("/"):
        where = ""  # config_parse_unit_path_printf() ignores it
    fstype = mounted_type(without_remark(kind), source.value) if source is not None else ""
    if source is None or fstype not in TYPES:
        return ()
    point, place = where or unit_path(name), values.get("Options", source)
    request = Request(source.value, clean_path(point), options, place.file, place.line, fstype=fstype)
    request = request._replace(maker=Maker.UNIT, named=kind if kind != fstype else None)
    origin = values["Type"] if request.is_mistyped and kind else source
    # systemd's mount_verify() in src/core/mount.c.
    if unit_name(point) == name:
        return (_with_source(request, origin),)
    bare = without_remark(point) if where else point
    if bare != point:
        request = request._replace(file=values["Where"].file, line=values["Where"].line)
    return (Misnamed(_with_source(request, origin), unit_name(point), bare if bare != point else ""),)


def _with_source(request: Request, origin: UnitSetting) -> Request:
    """Return a request with the place of its source, where that is another than its own."""
    line = origin.line if (origin.file, origin.line) != (request.file, request.line) else 0
    return request._replace(source_line=line, source_file=origin.file if origin.file != request.file else "")


def _unescape(text: str) -> str:
    data = text.replace("-", "/").encode("utf-8", "surrogateescape")
    plain = re.sub(rb"\\x([0-9a-fA-F]{2})", lambda match: bytes.fromhex(match[1].decode()), data)
    return plain.decode("utf-8", "surrogateescape")


_PLACES = ("etc", "run", "usr/local/lib", "usr/lib", "lib")
STRONG_UNIT_FOLDERS = (
    "etc/systemd/system.control",
    "run/systemd/system.control",
    "run/systemd/transient",
    "etc/systemd/system",
    "run/systemd/system",
)
"""Their units stand before the units which systemd makes of fstab."""
WEAK_UNIT_FOLDERS = ("usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
"""The last is a folder of its own only where /usr is not merged."""
UNIT_FOLDERS = (*STRONG_UNIT_FOLDERS, *WEAK_UNIT_FOLDERS)
GENERATED = ("run/systemd/generator", "run/systemd/generator.early", "run/systemd/generator.late")


def conf_files(root: FileTree, folder: str) -> list[str]:
    """Return the .conf files that count of a folder such as "sysctl.d"; the last with a setting decides."""
    return strongest_files(root, [f"{place}/{folder}" for place in _PLACES], ".conf")


def strongest_files(root: FileTree, folders: Iterable[str], suffix: str) -> list[str]:
    """Return the first file of each name in folders, sorted by name, whatever its folder."""
    files: dict[str, str] = {}
    for folder in folders:
        for name in root.names(folder):
            if name.endswith(suffix):
                files.setdefault(name, f"{folder}/{name}")
    return [files[name] for name in sorted(files)]


def preset_enables(texts: Iterable[str], unit: str) -> bool:
    """Return whether preset files, in systemd's order, enable a unit: the first line that fits decides.

    A unit that no line names is enabled. Instances of templates are of no interest here.
    """
    for text in texts:
        for line in text.splitlines():
            words = line.split()
            if len(words) > 1 and words[0] in {"enable", "disable", "ignore"} and fnmatchcase(unit, words[1]):
                return words[0] == "enable"
    return True


PROPERTIES = (
    *("Id", "LoadState", "FragmentPath", "NeedDaemonReload", "LazyUnmount", "ForceUnmount", "BoundBy"),
    *("ActiveState", "Result", "ConditionResult", "ConditionTimestampMonotonic", "Job", "InvocationID"),
    *("WantedBy", "RequiredBy"),
)


def parse_units(text: str) -> Mapping[str, UnitState]:
    """Return the state of each unit by name; a property that an old systemd lacks is false or empty."""
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


_MASK_COMMAND = re.compile(r"^\s*ExecStartPre\s*=.*nfstuned udev mask", re.MULTILINE)
_NULL = "/dev/null"
_CGROUPS = ("sys/fs/cgroup", "sys/fs/cgroup/systemd", "sys/fs/cgroup/unified")
"""Where systemd has its tree: the only tree, or with version 1 any of several."""
_USERS = "user.slice"
"""The services below it are of other service managers."""


def read_unit(root: FileTree, name: str, *, image: bool) -> Unit:
    """Return the state of a service: by its unit files, and on a host by its control group's processes."""
    active = None if image else _active(root, name)
    files = [f"{folder}/{name}" for folder in UNIT_FOLDERS if name in root.names(folder)]
    if not files:
        return Unit(active=active)
    masked = is_mask(root, files[0])
    return Unit(
        installed=any(_has_unit(root, file) for file in files),
        enabled=not masked and name in wanted_units(root, name),
        active=active,
        masked=masked,
        masks_rules=_MASK_COMMAND.search(unit_file(root, name)[1]) is not None,
    )


def unit_file(root: FileTree, name: str) -> tuple[str, str]:
    """Return path and text of the strongest unit file that is no mask; "" and "" without such a file."""
    places = (f"{folder}/{name}" for folder in UNIT_FOLDERS)
    return next(((place, text) for place in places if (text := root.read_or_empty(place))), ("", ""))


def is_mask(root: FileTree, file: str) -> bool:
    """Return whether systemd takes a file for a mask: it is empty, or a link to /dev/null.

    A link to nowhere is no mask (null_or_empty_path() of systemd), nor is a file that cannot be read.
    """
    try:
        return not root.read(file)
    except OSError:
        return False


def _has_unit(root: FileTree, file: str) -> bool:
    """Return whether a file has a unit; a file that cannot be read is taken for a unit, as nearly all are."""
    try:
        return bool(root.read(file))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def wanted_units(root: FileTree, suffixes: str | tuple[str, ...]) -> Mapping[str, set[str]]:
    """Return the units with names that end so, each with the units that have a link to it in a folder.

    Of such a folder's names the strongest file counts, and a link to /dev/null hides the weaker links
    (load-dropin.c of systemd).
    """
    strongest: dict[tuple[str, str], str] = {}
    for place in (*UNIT_FOLDERS, *GENERATED):
        for group in root.names(place):
            if group.endswith((".wants", ".requires", ".upholds")):
                for name in root.names(f"{place}/{group}"):
                    if name.endswith(suffixes):
                        strongest.setdefault((group, name), f"{place}/{group}/{name}")
    wanted: dict[str, set[str]] = {}
    for (group, name), file in strongest.items():
        if root.link(file) not in {None, _NULL}:
            wanted.setdefault(name, set()).add(group.rpartition(".")[0])
    return wanted


def _active(root: FileTree, name: str) -> bool | None:
    """Return whether a service of the system has processes.

    None on a host without such control groups, or where they cannot be read.
    """
    for tree in _CGROUPS:
        if root.names(f"{tree}/system.slice"):
            group = next((each for each in _slices(root, tree) if name in root.names(each)), None)
            try:
                return group is not None and bool(root.read(f"{group}/{name}/cgroup.procs").strip())
            except FileNotFoundError:
                return False
            except OSError:
                return None
    return None


def _slices(root: FileTree, group: str) -> Iterator[str]:
    """Yield the slices in a control group, from above: `Slice=` may name any of them."""
    names = [name for name in root.names(group) if name.endswith(".slice") and name != _USERS]
    yield from (f"{group}/{name}" for name in sorted(names, key=lambda name: name != "system.slice"))
    for name in names:
        yield from _slices(root, f"{group}/{name}")


_PRESETS = tuple(f"{place}/systemd/system-preset" for place in ("etc", "usr/local/lib", "usr/lib"))


def enabled_by_preset(root: FileTree, unit: str) -> bool:
    """Return whether systemd will enable a unit at the image's first boot (machine-id(5), "First Boot").

    An image without /etc/machine-id, or with "uninitialized" in it, has not booted; an empty file does not
    count as such. systemd then follows the presets, and enables a unit that no preset names. A masked unit
    stays as it is.
    """
    if root.exists("etc/machine-id") and root.read_or_empty("etc/machine-id").strip() != "uninitialized":
        return False
    if is_mask(root, f"etc/systemd/system/{unit}"):
        return False
    return preset_enables(map(root.read_or_empty, strongest_files(root, _PRESETS, ".preset")), unit)
