"""The automounter's maps in files: auto.master(5), autofs(5); the grammar is what autofs 5.1.9 does.

read_one of modules/lookup_file.c cuts a map into its entries; expandsunent, parse_mount, parse_mapent and
sun_mount of modules/parse_sun.c take an entry apart. Maps that are programs, or that a server keeps, are only
named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Maker, Request
from nfstuned.model.requests import AutoMap, MapEntry, MapInclude
from nfstuned.parse.etc.fstab import SMB, TYPES
from nfstuned.parse.fields import quoted
from nfstuned.parse.options import parse_options

MASTER = "/etc/auto.master"
DIRECT = "/-"
_BLANK = (" ", "\t")
_KEY = r'(?:\\.|"[^"\n]*"|[^\s"\\])+'
_MAP = (
    r"(?:(?P<kind>file|program|exec|sss|yp|nis|nisplus|ldaps?|hesiod|userdir|multi|dir)"
    r"(?:,(?P<format>sun|hesiod|amd))?:[ \t]*)?(?P<name>(?:\\.|[^\s\\])+)"
)
_DEFINITION = r"-D[ \t]*([A-Za-z_][\w.-]*)=([\w.-]+)"
_WITH_NUMBER = r"(?:-t|-n|--timeout|--negative-timeout|--mode)(?:[ \t]*=[ \t]*|[ \t]+|(?=[0-9]))[0-9]+"
_DAEMONS = r"--\S*|-[gvdrws](?!\S)"
_PSEUDO = {"browse", "nobrowse", "nobind", "symlink", "strictexpire", "shared", "slave", "private", "strict"}
"""What automount keeps for itself; it does not reach mount(8)."""


def parse_master(text: str, file: str = MASTER) -> tuple[AutoMap | MapInclude | ParseError, ...]:
    """Return the maps and the included masters in their order; the first for a mount point counts."""
    return tuple(_master_item(item) if isinstance(item, MapEntry) else item for item in _items(text, file))


def parse_map(text: str, file: str) -> tuple[MapEntry | MapInclude | ParseError, ...]:
    """Return the entries of a map and what it includes, in their order; the first entry of a key counts."""
    return tuple(_items(text, file))


def _items(text: str, file: str) -> Iterator[MapEntry | MapInclude | ParseError]:
    # An indented line goes on with the entry or the comment before it, which spoils an entry.
    swallowing = False
    previous: MapEntry | None = None
    for number, line in _joined_lines(text):
        if swallowing and line.startswith(_BLANK):
            if line.strip() and previous:
                yield ParseError(file, number, f"an indented line spoils the entry before it: {quoted(line)}")
                previous = None
            continue
        if previous:
            yield previous
            previous = None
        content = line.strip()
        swallowing = bool(content)
        if not content or content.startswith("#"):
            continue
        item = _item(content, file, number)
        if isinstance(item, MapEntry):
            previous = item
        else:
            yield item
    if previous:
        yield previous


def _joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line and its number; a backslash at its end joins it with the next, and both ends vanish."""
    start, held = 1, ""
    for number, line in enumerate(text.split("\n"), 1):
        whole = held + line
        if (len(whole) - len(whole.rstrip("\\"))) % 2:
            held = whole[:-1]
            continue
        yield start, whole
        start, held = number + 1, ""
    yield start, held


def _item(content: str, file: str, number: int) -> MapEntry | MapInclude | ParseError:
    key = re.match(_KEY, content)
    if key is None or content[key.end() :][:1].strip():
        return ParseError(file, number, f"a quote that does not close: {quoted(content)}")
    rest = content[key.end() :].strip()
    if content.startswith("+"):
        kind, separator, name = key[0][1:].partition(":")
        return MapInclude(kind, name, file, number) if separator else MapInclude("", kind, file, number)
    if not rest:
        return ParseError(file, number, f"nothing follows the key {quoted(key[0])}")
    return MapEntry(unquote(key[0]), rest, file, number)


def _master_item(entry: MapEntry) -> AutoMap | ParseError:
    point = entry.key.rstrip("/") or "/"
    match = re.match(_MAP, entry.text)
    if match is None or not point.startswith("/"):
        return ParseError(entry.file, entry.line, f"no mount point and map: {quoted(entry.key)}")
    kind, name = match["kind"] or "", match["name"]
    if name in ("-hosts", "-null"):
        kind = name[1:]
    options = entry.text[match.end() :]
    variables = dict(re.findall(_DEFINITION, options))
    for pattern in (_DEFINITION, _WITH_NUMBER, _DAEMONS):
        options = re.sub(pattern, " ", options)
    mount = [o for word in options.split() for o in word.removeprefix("-").split(",") if o not in _PSEUDO]
    kept = ",".join(option for option in mount if option and not option.startswith("timeout="))
    name = unquote(name)
    return AutoMap(point, kind, match["format"] or "", name, kept, entry.file, entry.line, variables)


def unquote(text: str) -> str:
    """Return a key, a name or a location without its quotes and backslashes (dequote in lib/parse_subs.c)."""
    return (
        re.sub(r'\\(.)|"([^"]*)"?', r"\1\2", text, flags=re.DOTALL) if "\\" in text or '"' in text else text
    )


WILDCARD = "*"
_KEY_MARK = "&"
_PIECE = r'(?s)(?P<plain>\\.|"[^"]*"?)|(?P<key>&)|\$(?P<brace>\{[^}]*\}?|\w+)|(?P<colon>:)|(?P<space>\s)'
_WORD = r'(?s)(?:\\.|"[^"]*"?|[^\s"\\]|\\)+'
_WEIGHT = r"\([0-9]+\)$"
_OWN = (
    r"(?s)(?:fstype=.*|strict|nonstrict|(?:no)?browse|timeout=.*|(?:no-)?use-weight-only|bg|nofg"
    r"|(?:no)?symlink|nobind)$"
)
"""Options that automount keeps for itself (sun_mount, and mount_mount of modules/mount_nfs.c)."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A mount of an entry: where below the entry, with which options, and from where."""

    offset: str
    options: tuple[str, ...]
    locations: tuple[str, ...]

    @property
    def without_server(self) -> str | None:
        """The first location that lacks a host; None where each has its hosts, or is local (":/dev/sdb1")."""
        for location in self.locations:
            hosts, separator, _ = unquote(location).partition(":/")
            if not location.startswith(":") and not (separator and all(hosts.split(","))):
                return location
        return None

    def sources(self, options: str) -> Iterator[tuple[str, str, str]]:
        """Yield the sources of network mounts, the options that reach mount(8), and the type."""
        pairs = parse_options(options)
        fstype = pairs.get("fstype") or "nfs"
        if fstype not in TYPES:
            return
        written = (name if value is None else f"{name}={value}" for name, value in pairs.pairs)
        words = ",".join(written).split(",")
        mount_options = ",".join(word for word in words if not re.match(_OWN, word))
        for location in self.locations:
            hosts, _, path = unquote(location).partition(":/")
            if not hosts and path.startswith("/") and fstype in SMB:
                yield f"/{path}", mount_options, fstype
            for host in hosts.split(",") if hosts else ():
                yield f"{re.sub(_WEIGHT, '', host)}:/{path}", mount_options, fstype


def mount_requests(
    entry: MapEntry, auto: AutoMap, variables: Mapping[str, str]
) -> tuple[Request | ParseError, ...]:
    """Return the network mounts of an entry, a request for each server that may serve it.

    `variables` are the host's, such as `$HOST`; a variable that is not known stays as it is written.
    """
    direct = auto.point == DIRECT
    if direct != entry.key.startswith("/"):
        kind = "a direct" if direct else "an indirect"
        return (ParseError(entry.file, entry.line, f"not a key of {kind} map: {quoted(entry.key)}"),)
    wildcard = not direct and entry.key == WILDCARD
    key = _KEY_MARK if wildcard else re.sub(r"(\s)", r"\\\1", entry.key)
    words = re.findall(_WORD, _expand(entry.text, key, {**variables, **auto.variables}))
    base = entry.key if direct else f"{auto.point}/{entry.key}"
    requests: list[Request | ParseError] = []
    for part in _parts(words):
        bad = part.without_server
        if bad is not None or not part.locations:
            what = "no location" if bad is None else f"a location without a server: {quoted(bad)}"
            return (ParseError(entry.file, entry.line, f"{what}, in the entry of {quoted(entry.key)}"),)
        point = (base + part.offset).rstrip("/")
        options = ",".join(option for option in (auto.options, *part.options) if option)
        requests += [
            Request(source, point, mount_options, entry.file, entry.line, wildcard, fstype, Maker.AUTOFS)
            for source, mount_options, fstype in part.sources(options)
        ]
    return tuple(requests)


def _expand(text: str, key: str, variables: Mapping[str, str]) -> str:
    """Put in the key and the variables; the colons of a location behind the first `:/` become slashes."""
    in_path = False

    def replace(match: re.Match[str]) -> str:
        nonlocal in_path
        if match["key"]:
            return key
        if match["brace"]:
            return variables.get(match["brace"].strip("{}"), match[0])
        if match["space"]:
            in_path = False
        if match["colon"]:
            slash, in_path = in_path, in_path or text[match.end() :].startswith("/")
            return "/" if slash else ":"
        return match[0]

    return re.sub(_PIECE, replace, text)


def _parts(words: list[str]) -> Iterator[_Part]:
    """Yield the mounts of an entry: options, then a location, or offsets with locations each."""
    place, common = _options(words, 0)
    while True:
        offset = ""
        if place < len(words) and unquote(words[place]).startswith("/"):
            offset = unquote(words[place]).rstrip("/")
            place += 1
        place, own = _options(words, place)
        start = place
        while place < len(words) and not unquote(words[place]).startswith("/"):
            place += 1
        yield _Part(offset, (*common, *own), tuple(words[start:place]))
        if place >= len(words):
            return


def _options(words: list[str], place: int) -> tuple[int, tuple[str, ...]]:
    """Return where the options end that begin at `place`, and the options."""
    start = place
    while place < len(words) and words[place].startswith("-"):
        place += 1
    return place, tuple(unquote(word[1:]) for word in words[start:place])
