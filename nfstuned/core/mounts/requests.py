"""The options that a mount asks for, and the line of a file that decides each.

As mount.nfs of nfs-utils 2.8.3 does it, or an older one (Setting.alone): conf_get_mntopts and
conf_parse_mntopts in utils/mount/configfile.c, conf_set_now and conf_get_section in support/nfs/conffile.c.
utab already has the options of nfsmount.conf: mount_main of utils/mount/mount_libmount.c merges it before
try_mount, and store_mount_options writes the merged options down.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from nfstuned.model.kernel import Mount, Options, aznfs_version, parse_options
from nfstuned.model.mounts import AZNFS, SMB_TYPES, UTAB, Asked, Request, Setting, Snapshot, Tunnel
from nfstuned.parse.fields import clean_path

GLOBAL = "nfsmount_global_options"
NO_STAND_INS: Mapping[str, str] = MappingProxyType({})
ALIASES = {"background": "bg", "foreground": "fg", "sloppy": "sloppy"}
_VERSIONS = ("v3", "v4", "vers", "nfsvers", "minorversion")
_TITLES = {"mountpoint": "MountPoint", "server": "Server", GLOBAL: "NFSMount_Global_Options"}
"""Sections as people write them."""
_OPPOSITE = {"fg": "bg", "bg": "fg"}
_FACTORS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_DIGITS = {
    8: re.compile(r"0*([0-7]*)"),
    10: re.compile(r"\s*([+-]?[0-9]+)", re.ASCII),
    16: re.compile(r"0x0*([0-9a-fA-F]*)"),
}
_MOST_DIGITS = 40
"""More than 64 bits need, in any base; int() refuses thousands."""
_LONG = 1 << 63
_DEEPEST = 8


class Claim(NamedTuple):
    """A place with a say about an option of a mount; `value` is None where its line does not have it."""

    place: str
    """`file:line`."""
    value: str | None
    section: str = ""
    """Of nfsmount.conf: `[ Server "nas" ]`; "" for a mount's own options."""
    replaced: bool = False
    """A later line of nfsmount.conf replaces it."""


class Intents:
    """All requests of a host: the options that mounts were made with, and those of its files."""

    def __init__(
        self, requests: Sequence[Request], settings: Sequence[Setting], tunnels: Sequence[Tunnel] = ()
    ) -> None:
        self._names = {tunnel.stands_in: tunnel.host for tunnel in tunnels if tunnel.stands_in is not None}
        self._settings = _Settings(effective(settings), {name: own for own, name in self._names.items()})
        self._written = settings
        self._places: dict[tuple[str, str], list[Request]] = {}
        self._wildcards = [request for request in requests if request.wildcard]
        for request in requests:
            if not request.wildcard:
                place = _place(mounted_source(request), request.point)
                self._places.setdefault(place, []).append(request)

    def of(self, mount: Mount) -> tuple[Asked, ...]:
        """Return the options that a live mount asked for; () where no file has them.

        utab has the options that mount.nfs really got, so that the other files count only for a mount that
        utab does not know. Of several rows in utab the last counts: it is the mount on top. Where another
        file asks for the same, that file is named instead of utab.
        """
        mine = self._mine(mount)
        actual = next((request for request in reversed(mine) if request.file == UTAB), None)
        planned = self.planned(mount)
        if actual is None:
            return _merged(planned, self._settings) if planned else ()
        # A mount that no other file knows was made by hand; nfsmount.conf had its say all the same.
        likely = _merged(planned or actual._replace(options="", fstype=mount.fstype), self._settings)
        sources = {(asked.name, asked.value): asked for asked in likely}
        return tuple(sources.get((asked.name, asked.value), asked) for asked in _given(actual))

    def planned(self, mount: Mount) -> Request | None:
        """Return the line of fstab, a unit or a map that asks for a live mount; None without such a line."""
        return next(self._lines(mount), None)

    def claims(self, mount: Mount, name: str) -> Iterator[Claim]:
        """Yield the places with a say about an option of a live mount, in mount.nfs's order of precedence.

        First utab, which has the options of the mount that exists; then the lines that ask for it, and the
        sections of nfsmount.conf for its mount point, for its server and for all mounts.
        """
        actual = [request for request in self._mine(mount) if request.file == UTAB][-1:]
        planned = self.planned(mount) or Request(mount.source, mount.point, "", "", fstype=mount.fstype)
        for request in (*actual, *self._lines(mount)):
            own = last_asked(_given(request), name)
            place = own.origin if own else f"{request.file}:{request.line}"
            yield Claim(place, own and own.value)
        counting = set(effective(self._written))
        for section, argument in _sections(planned, self._settings.stand_ins):
            for setting in reversed(self._written):
                alike = argument is None or _lower(setting.argument) == argument.lower()
                if setting.section == section and alike and _plain(setting.name) == name:
                    title = _TITLES[section] + ("" if argument is None else f' "{argument}"')
                    place = f"{setting.file}:{setting.line}"
                    yield Claim(place, self._settings.value(setting), f"[ {title} ]", setting not in counting)

    def _lines(self, mount: Mount) -> Iterator[Request]:
        """Yield the lines that ask for a live mount: the first counts."""
        named = (request for request in self._mine(mount) if request.file != UTAB)
        claims = (claim(request, mount.source, mount.point) for request in self._wildcards)
        return filter(None, chain(named, claims))

    def _mine(self, mount: Mount) -> list[Request]:
        """Return the requests of a live mount: by its source, or by the name that AZNFS replaced."""
        shown = self._places.get(_place(mount.source, mount.point), [])
        host, _, export = mount.source.partition(":")
        named = self._names.get(host)
        return shown + self._places.get(_place(f"{named}:{export}", mount.point), []) if named else shown

    def coming(self, mount: Mount) -> tuple[Asked, ...]:
        """Return the options that a live mount asks for when it is made again, as far as files say that."""
        by_hand = Request(mount.source, mount.point, "", "", fstype=mount.fstype)
        return _merged(self.planned(mount) or by_hand, self._settings)

    def asked(self, request: Request) -> tuple[Asked, ...]:
        """Return the options with which a line asks for its mount, and those that nfsmount.conf adds."""
        return _merged(request, self._settings)

    def default_version(self, request: Request) -> str | None:
        """Return the Defaultvers with which mount.nfs begins to negotiate for a line; None for none.

        It is text as nfsmount.conf has it, "" where it has no value there.
        """
        default = last_asked(_filled(request, self._settings), "defaultvers")
        return None if default is None else default.value or ""


def requested(
    request: Request, settings: Sequence[Setting], stand_ins: Mapping[str, str] = NO_STAND_INS
) -> tuple[Asked, ...]:
    """Return the options with which mount.nfs would be asked, and those that nfsmount.conf adds.

    The request's own options come first; then the sections of its mount point, of its server and of all
    mounts each add the options that are absent. `stand_ins` are the snapshot's, which a line of mount.aznfs
    needs.
    """
    return _merged(request, _Settings(effective(settings), stand_ins))


def as_option(name: str, value: str) -> str:
    """Return a setting of nfsmount.conf as the option that mount.nfs makes of it, "" where it makes none."""
    plain, flag = _plain(name), value.lower()
    if flag == "false":
        return _OPPOSITE.get(plain, "") if name.lower() in ALIASES else f"no{plain}"
    return plain if flag == "true" else f"{plain}={_converted(value)}"


def asked_options(asked: Sequence[Asked]) -> Options:
    """Return the options without their places."""
    return Options(tuple((option.name, option.value) for option in asked))


def last_asked(asked: Sequence[Asked], name: str) -> Asked | None:
    """Return who decides an option: the last of that name."""
    return next((option for option in reversed(asked) if option.name == name), None)


def is_global(asked: Asked, settings: Iterable[Setting]) -> bool:
    """Return whether nfsmount.conf asks for an option in all mounts, whosever the server is."""
    place = (asked.file, asked.line)
    return any(setting.section == GLOBAL and (setting.file, setting.line) == place for setting in settings)


def mounted_source(request: Request, stand_ins: Mapping[str, str] = NO_STAND_INS) -> str:
    """Return the source that the kernel will show: mount.aznfs mounts its tunnel's end on this host.

    Without a tunnel it mounts the address that stands in for the server: `stand_ins` has those that are known
    by name. It does so by `mount -t nfs` (Azure/AZNFS-mount, src/nfsv4mountscript.sh), so that nfsmount.conf
    counts, with the section of that address.
    """
    if request.wildcard or request.fstype != AZNFS:
        return request.source
    host, _, export = request.source.partition(":")
    own = "127.0.0.1" if request.wants_tunnel else stand_ins.get(host)
    return request.source if own is None else f"{own}:{export}"


def wants_stand_in(request: Request, snapshot: Snapshot) -> bool:
    """Whether mount.aznfs mounts an address of its own for a line, which nobody knows before it does.

    So it is with version 3, and without TLS with the package azfiles-nfs: its forerunner mounts the name.
    """
    if request.fstype != AZNFS or request.wants_tunnel:
        return False
    listed = request.source.partition(":")[0] in snapshot.stand_ins
    return listed or snapshot.azfiles or aznfs_version(parse_options(request.options)) == "3"


def effective(settings: Sequence[Setting]) -> tuple[Setting, ...]:
    """Return the settings that later ones did not replace, the last first (conf_set_now).

    conf_remove_now takes a single one away, the last: without an argument of any section of the name, and
    before nfs-utils 2.8.3 with one, too.
    """
    remaining: dict[int, Setting] = {}
    alike: defaultdict[tuple[str, str], dict[int, None]] = defaultdict(dict)
    """The places of settings of the same section and name."""
    same: defaultdict[tuple[str, str, str | None], list[int]] = defaultdict(list)
    """The places of those with the same argument, too, also of such as were replaced."""
    for place, setting in enumerate(settings):
        key = (setting.section, setting.name.lower())
        rivals, own = alike[key], same[(*key, _lower(setting.argument))]
        if setting.alone or setting.argument is None:
            replaced = next(reversed(rivals), None)
        else:
            while own and own[-1] not in rivals:
                own.pop()
            replaced = own.pop() if own else None
        if replaced is not None:
            del remaining[replaced], rivals[replaced]
        remaining[place] = setting
        rivals[place] = None
        own.append(place)
    return tuple(reversed(remaining.values()))


def claim(request: Request, source: str, point: str) -> Request | None:
    """Return the request as it is for this mount; None when it is about another."""
    if request.wildcard:
        before, _, after = request.point.partition("*")
        key = point[len(before) : len(point) - len(after)]
        if not (key and "/" not in key and point == before + key + after):
            return None
        request = request._replace(
            source=request.source.replace("&", key),
            point=point,
            options=request.options.replace("&", key),
            wildcard=False,
        )
    return request if _place(mounted_source(request), request.point) == _place(source, point) else None


class _Settings:
    """Settings that count, the last first, by the keys by which mount.nfs looks them up."""

    def __init__(self, settings: Iterable[Setting], stand_ins: Mapping[str, str]) -> None:
        self.stand_ins = stand_ins
        self._sections: defaultdict[tuple[str, str | None], list[Setting]] = defaultdict(list)
        self._all: defaultdict[str, list[Setting]] = defaultdict(list)
        self._first: dict[tuple[str, str | None, str], Setting] = {}
        for setting in settings:
            argument = _lower(setting.argument)
            self._all[setting.section].append(setting)
            self._sections[setting.section, argument].append(setting)
            self._first.setdefault((setting.section, argument, setting.name.lower()), setting)

    def of(self, section: str, argument: str | None) -> Sequence[Setting]:
        """Return the settings of a section; without an argument those of all that have the name."""
        if argument is None:
            return self._all.get(section, ())
        return self._sections.get((section, argument.lower()), ())

    def find(self, section: str, argument: str | None, name: str) -> Setting | None:
        """Return the setting that conf_get_section finds."""
        return self._first.get((section, _lower(argument), name.lower()))

    def value(self, setting: Setting) -> str | None:
        """Return a setting's value; `$name` stands for one of [environment] with the same argument."""
        for _ in range(_DEEPEST):
            if not setting.value.startswith("$"):
                return setting.value
            environment = self.find("environment", setting.argument, setting.value[1:])
            if environment is None:
                return None
            setting = environment
        return None


@dataclass(slots=True, eq=False)
class _Merge:
    """The options so far; `strict` after `Sloppy=False`, which no later section can take back."""

    settings: _Settings
    given: tuple[Asked, ...]
    options: list[Asked] = field(init=False)
    names: set[str] = field(init=False)
    strict: bool = False

    def __post_init__(self) -> None:
        self.options = list(self.given)
        self.names = {asked.name for asked in self.given}

    def fill(self, section: str, argument: str | None) -> None:
        versioned = any(map(is_version, self.names))
        for setting in self.settings.of(section, argument):
            name = _plain(setting.name)
            if self._has(name) or (versioned and is_version(name)):
                continue
            versioned = versioned or is_version(name)
            # [NFSMount_Global_Options "x"] has no say, but its names are looked up without the "x".
            decider = self.settings.find(section, argument, setting.name)
            value = decider and self.settings.value(decider)
            text = self._option(setting.name, value) if value else ""
            if decider and text:
                key, separator, rest = text.partition("=")
                self.options.append(Asked(key, rest if separator else None, decider.file, decider.line))
                self.names.add(key)

    def _has(self, name: str) -> bool:
        """Return whether the option, its negation or its opposite is there already."""
        negated = name.removeprefix("no")
        return not self.names.isdisjoint({name, "no" + name, negated, _OPPOSITE.get(name, name)})

    def _option(self, name: str, value: str) -> str:
        """Return a setting as an option, "" where it does not become one."""
        if _plain(name) == "sloppy":
            self.strict = self.strict or value.lower() == "false"
            return "" if self.strict else as_option(name, value)
        return as_option(name, value)


def _merged(request: Request, settings: _Settings) -> tuple[Asked, ...]:
    if request.fstype in SMB_TYPES:
        return _given(request)
    return tuple(asked for asked in _filled(request, settings) if not asked.name.startswith("default"))


def _filled(request: Request, settings: _Settings) -> Sequence[Asked]:
    """Return the options of a line and of nfsmount.conf, also the defaults that mount.nfs keeps to itself."""
    merge = _Merge(settings, _given(request))
    for section, argument in _sections(request, settings.stand_ins):
        merge.fill(section, argument)
    return merge.options


def _sections(request: Request, stand_ins: Mapping[str, str]) -> tuple[tuple[str, str | None], ...]:
    """Return the names and arguments of the sections for a mount, in their order of precedence."""
    # mount.nfs cuts at the first colon, so that an IPv6 address in brackets is "[" and its first group.
    host = mounted_source(request, stand_ins).partition(":")[0]
    return ("mountpoint", clean_path(request.point)), ("server", host), (GLOBAL, None)


def _plain(name: str) -> str:
    return ALIASES.get(name.lower()) or name.lower()


def _given(request: Request) -> tuple[Asked, ...]:
    return tuple(
        Asked(name, value, request.file, line)
        for (name, value), line in zip(request.pairs, request.lines, strict=True)
    )


def is_version(name: str) -> bool:
    """Whether an option names a version."""
    return name in _VERSIONS or name.startswith("v4.")


def _lower(text: str | None) -> str | None:
    """Return an argument as it compares: in lower case, and None unlike an empty text."""
    return None if text is None else text.lower()


def _converted(value: str) -> str:
    """Return a number with k, m or g at its end in full, as C counts (mountopts_convert).

    Anything that ends with one of the letters is taken for a number: "org" becomes 0.
    """
    factor = _FACTORS.get(value[-1:].lower())
    if factor is None:
        return value
    # As strtol(3) with any base, which ends at the bounds of a long; the product wraps.
    base = 16 if value.startswith("0x") else 8 if value.startswith("0") else 10
    match = _DIGITS[base].match(value[:-1])
    number = int(match[1][:_MOST_DIGITS] or "0", base) if match else 0
    number = max(-_LONG, min(_LONG - 1, number)) * factor
    return str((number + _LONG) % (2 * _LONG) - _LONG)


def _place(source: str, point: str) -> tuple[str, str]:
    """Return source and mount point as they compare: people write trailing slashes, the kernel does not."""
    return source.rstrip("/"), point.rstrip("/")
