"""The automounter's maps in files: auto.master(5), autofs(5), with the grammar of autofs 5.1.9.

read_one of modules/lookup_file.c cuts a map into its entries; expandsunent, parse_mount, parse_mapent and
sun_mount of modules/parse_sun.c take an entry apart; lib/master_tok.l parses a line of a master map, and
read_config of lib/defaults.c reads autofs.conf. Maps that are programs, or kept by a server, are only named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import NamedTuple

from nfstuned.errors import MapError, ParseError
from nfstuned.model.kernel import parse_options
from nfstuned.model.mounts import AutoMap, Maker, MapEntry, MapInclude, Request
from nfstuned.parse.etc.requests import TYPES, mounted_type
from nfstuned.parse.fields import quoted

MASTER = "auto.master"
AUTOFS = "autofs"
_HOSTS = "hosts"
DIRECT = "/-"
_BLANK = (" ", "\t")
_KEY = r'(?:\\.|"[^"\n]*"|[^\s"\\])+'
_MULTI = r"multi(?:,(?:sun|hesiod))?(?::[ \t]*|[ \t]+)"
_MULTI_SEPARATOR = r"(?:^|[ \t])--[ \t]+"
_TYPE = (
    r"(?P<kind>file|program|exec|sss|yp|nis|nisplus|ldaps?|hesiod|userdir|hosts|dir)"
    r"(?:,(?P<format>sun|hesiod|amd))?"
)
_TYPE_AND_COLON = rf"{_TYPE} *: *"
_MAP = rf"(?:{_TYPE}(?::[ \t]*|[ \t]+))?(?P<name>(?:\\.|[^\s\\])+)"
_LDAP = r"(?i)//|(?:[^/\s]*:)?(?:cn|nismapname|automountmapname|ou|dc|o|c|l)="
"""The name of a map in LDAP's syntax, where no type stands before it."""
_DEFINITION = r"-D[ \t]*([A-Za-z_][\w.-]*)=([\w.-]+)"
_WITH_NUMBER = r"(?:-t|-n|--timeout|--negative-timeout|--mode)(?:[ \t]*=[ \t]*|[ \t]+|(?=[0-9]))[0-9]+"
_DAEMON_OPTION = r"--\S*|-[gvdrws](?!\S)"
_PSEUDO = {"browse", "nobrowse", "nobind", "symlink", "strictexpire", "shared", "slave", "private", "strict"}
"""Options of a master map's line that automount keeps for itself; they do not reach mount(8)."""


def parse_master(text: str, file: str) -> tuple[AutoMap | MapInclude | ParseError, ...]:
    """Return the maps and the included masters in their order; the first for a mount point counts."""
    return tuple(_master_item(item) if isinstance(item, MapEntry) else item for item in _items(text, file))


def parse_map(text: str, file: str) -> tuple[MapEntry | MapInclude | ParseError, ...]:
    """Return the entries and the includes of a map in their order; the first entry of a key counts."""
    return tuple(_items(text, file))


def _items(text: str, file: str) -> Iterator[MapEntry | MapInclude | ParseError]:
    # An indented line continues the entry or the comment before it; an entry is spoiled by it.
    swallowing = False
    previous: MapEntry | None = None
    for number, line in _joined_lines(text):
        if swallowing and line.startswith(_BLANK):
            if line.strip() and previous:
                yield MapError(file, number, f"an indented line spoils the entry before it: {quoted(line)}")
                previous = None
            continue
        if previous:
            yield previous
            previous = None
        content = line.strip()
        swallowing = bool(content)
        if not content or content.startswith("#"):
            continue
        # automount(8) takes a carriage return at a line's end for a part of it.
        item = _item(content, "\r" if line.endswith("\r") else "", file, number)
        if isinstance(item, MapEntry):
            previous = item
        else:
            yield item
    if previous:
        yield previous


def _joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line and its number; a backslash before a line break joins lines, and both are dropped."""
    start = 1
    held: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if (len(line) - len(line.rstrip("\\"))) % 2:
            held.append(line[:-1])
            continue
        yield start, "".join([*held, line])
        start, held = number + 1, []
    yield start, "".join(held)


def _item(content: str, carriage_return: str, file: str, number: int) -> MapEntry | MapInclude | ParseError:
    key = re.match(_KEY, content, re.ASCII)
    if key is None or content[key.end() :][:1].strip():
        why = "a backslash at the end" if content.endswith("\\") else "a quote that does not close"
        return MapError(file, number, f"{why}: {quoted(content)}")
    rest = content[key.end() :].strip()
    if content.startswith("+"):
        return map_named(key[0][1:], file, number)
    if not rest:
        return MapError(file, number, f"nothing follows the key {quoted(key[0])}")
    # automount(8) takes several slashes for a single one (sanitize_path in lib/parse_subs.c).
    return MapEntry(re.sub("//+", "/", unquote(key[0])), rest + carriage_return, file, number)


def _master_item(entry: MapEntry) -> AutoMap | ParseError:
    multi = re.match(_MULTI, entry.text)
    if multi is None:
        return _master_map(entry, entry.text)
    parts: list[AutoMap] = []
    for text in re.split(_MULTI_SEPARATOR, entry.text[multi.end() :]):
        part = _master_map(entry, text)
        if isinstance(part, ParseError):
            return part
        parts.append(part)
    point = entry.key.rstrip("/") or "/"
    return AutoMap(point, "multi", "", "", "", entry.file, entry.line, parts=tuple(parts))


def _master_map(entry: MapEntry, text: str) -> AutoMap | ParseError:
    """Return the map that a line of a master map, or a part of it, names."""
    point = entry.key.rstrip("/") or "/"
    match = re.match(_MAP, text)
    if match is None or not point.startswith("/"):
        return MapError(entry.file, entry.line, f"no map, or no absolute mount point: {quoted(entry.key)}")
    kind, name = match["kind"] or "", match["name"]
    options = text[match.end() :]
    if name in ("-hosts", "-null"):
        kind = name[1:]
    elif options == "\r":
        return _cr_error(name + options, entry.file, entry.line)
    elif not kind and re.match(_LDAP, name):
        kind = "ldap"
    variables = dict(re.findall(_DEFINITION, options))
    for pattern in (_DEFINITION, _WITH_NUMBER, _DAEMON_OPTION):
        options = re.sub(pattern, " ", options)
    words = [o for word in options.split() for o in word.removeprefix("-").split(",") if o not in _PSEUDO]
    passed_on = ",".join(option for option in words if option and not option.startswith("timeout="))
    name = unquote(name)
    return AutoMap(point, kind, match["format"] or "", name, passed_on, entry.file, entry.line, variables)


def unquote(text: str) -> str:
    """Return a key, a name or a location without its quotes and backslashes (dequote in lib/parse_subs.c)."""
    return (
        re.sub(r'\\(.)|"([^"]*)"?', r"\1\2", text, flags=re.DOTALL) if "\\" in text or '"' in text else text
    )


CONF = "autofs.conf"
OLD_CONFS = ("/etc/conf.d/autofs", "/etc/sysconfig/autofs", "/etc/default/autofs")
"""The files of the settings before autofs 5.1, one for each distribution; they override autofs.conf."""
_MASTER_SETTING = "master_map_name"


def parse_master_name(text: str, file: str) -> MapInclude | ParseError | None:
    """Return the master map that autofs.conf, or a file of OLD_CONFS, names; its last such line counts."""
    named: MapInclude | ParseError | None = None
    section = "autofs"  # OLD_CONFS have no sections
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("["):
            section = line.lstrip("[ \t").partition("]")[0].strip(" \t").lower()
        name, separator, rest = line.partition("=")
        value = rest.lstrip('" \t').partition("#")[0].rstrip('" \t')
        if section == "autofs" and separator and value and name.rstrip(" \t").lower() == _MASTER_SETTING:
            named = _cr_error(value, file, number) if value.endswith("\r") else map_named(value, file, number)
    return named


def _cr_error(name: str, file: str, line: int) -> ParseError:
    message = "the line ends with a carriage return, which automount(8) reads as a part of the map's name"
    return MapError(file, line, f"{message}: {quoted(name)}")


def map_named(text: str, file: str, line: int) -> MapInclude:
    """Return the map that a name stands for: a path, `kind:name`, or a name for nsswitch.conf(5)."""
    match = re.match(_TYPE_AND_COLON, text)
    if match is not None:
        return MapInclude(match["kind"], text[match.end() :], file, line)
    return MapInclude("ldap" if re.match(_LDAP, text) else "", text, file, line)


WILDCARD = "*"
MOST_CHARACTERS = 16_384
"""The longest entry that automount(8) reads (MAPENT_MAX_LEN), here with its key and variables put in."""
MOST_REPLICAS = 32
"""The most servers of a location: each becomes a request with the whole path."""
_KEY_MARK = "&"
_PIECE = r'(?s)(?P<plain>\\.|"[^"]*"?)|(?P<key>&)|\$(?P<variable>\{[^}]*\}?|\w+)|(?P<colon>:)|(?P<space>\s)'
_WORD = r'(?s)(?:\\.|"[^"]*"?|[^\s"\\]|\\)+'
_WEIGHT = r"\([0-9]+\)$"
_OWN = (
    r"(?s)(?:fstype=.*|strict|nonstrict|(?:no)?browse|timeout=.*|(?:no-)?use-weight-only|bg|nofg"
    r"|(?:no)?symlink|nobind)$"
)
"""Options of an entry that automount keeps for itself (sun_mount, and mount_mount in mount_nfs.c)."""
_OPTION_WORDS = re.compile(r"(?:[^:/]*,)?(?:r[ow]|hard|soft|intr|nolock|[a-z_]\w*=[^:/]*)(?:,[^:/]*)?")
"""Words that are options and no server."""


class _Part(NamedTuple):
    """A mount of an entry: where below the entry, with which options, and from where."""

    offset: str
    options: tuple[str, ...]
    locations: tuple[str, ...]

    def problem(self, text: str) -> str:
        """Return why a location names no host; "" where each does, or is local (":/dev/sdb1").

        `text` is the entry that it was split from, and may hold secrets.
        """
        for location in self.locations:
            plain = unquote(location)
            hosts, separator, _ = plain.partition(":/")
            if plain.startswith(":") or (separator and all(hosts.split(","))):
                continue
            noun = "a server" if separator or ":" not in location else "a slash after its colon"
            why = f"a location without {noun}: {quoted(location, text)}"
            if _OPTION_WORDS.fullmatch(location):
                right = quoted(f"-{location}", text)
                why += f" (options begin with a dash, and stand before the location: {right})"
            return why
        if self.locations:
            return ""
        if not self.offset:
            return "no location"
        # automount takes a word that begins with a slash for a folder of an entry with several mounts.
        folder, location = quoted(self.offset, text), quoted(f":{self.offset}", text)
        return f"no location behind the folder {folder} (if that is meant as the location, write {location})"

    def type_and_options(self, options: str) -> tuple[str, str]:
        """Return the type, and the options that reach mount(8) or the map that is mounted."""
        pairs = parse_options(options)
        # automount splits at every comma, also within quotes.
        words = ",".join(pairs.texts).split(",")
        passed_on = ",".join(word for word in words if not re.match(_OWN, word))
        return pairs.get("fstype") or "nfs", passed_on

    def sources(self) -> Iterator[str]:
        """Yield the sources that may be on a network."""
        for location in self.locations:
            hosts, _, path = unquote(location).partition(":/")
            if not hosts and path.startswith("/"):
                yield f"/{path}"
            for host in hosts.split(",") if hosts else ():
                yield f"{re.sub(_WEIGHT, '', host)}:/{path}"


def mount_requests(
    entry: MapEntry, auto: AutoMap, variables: Mapping[str, str]
) -> tuple[Request | AutoMap | ParseError, ...]:
    """Return the network mounts of an entry, a request for each server that may serve it.

    For `-fstype=autofs` they are the map that is mounted there. A faulty part makes the whole entry a
    ParseError. `variables` are the host's, such as `$HOST`; a variable that is not known stays as it is
    written.
    """
    direct = auto.point == DIRECT
    if direct != entry.key.startswith("/"):
        name = entry.key.rstrip("/").rpartition("/")[2]
        kind = (
            "the key of a direct map (/-) is the whole path"
            if direct
            else f"below {auto.point} it is a name: write {quoted(name)}, or mount the map on /-"
        )
        hint = (
            "; is the line from fstab? write /POINT -fstype=TYPE,OPTIONS SOURCE" if ":/" in entry.key else ""
        )
        return (MapError(entry.file, entry.line, f"{quoted(entry.key)} is not a key: {kind}{hint}"),)
    wildcard = not direct and entry.key == WILDCARD
    # The key of a wildcard is not known: & stays.
    key = _KEY_MARK if wildcard else re.sub(r"(\s)", r"\\\1", entry.key)
    values = {**variables, **auto.variables}
    # The length after the key and the variables are put in.
    longest = max(map(len, values.values()), default=0)
    text = entry.text
    if len(text) + text.count(_KEY_MARK) * len(key) + text.count("$") * longest > MOST_CHARACTERS:
        message = f"the entry of {quoted(entry.key)} may have more than {MOST_CHARACTERS} characters, which "
        return (MapError(entry.file, entry.line, message + "automount(8) does not read: shorten it"),)
    if re.sub(r"\\.", "", entry.text).count('"') % 2:
        message = f"a quote that does not close, in the entry of {quoted(entry.key)}"
        return (MapError(entry.file, entry.line, message),)
    words = re.findall(_WORD, _expand(entry.text, key, values), re.ASCII)
    base = entry.key if direct else f"{auto.point}/{entry.key}"
    requests: list[Request | AutoMap | ParseError] = []
    for part in _parts(list(takewhile(lambda word: not word.startswith("#"), words))):
        fstype, options = part.type_and_options(",".join(filter(None, (auto.options, *part.options))))
        point = (base + part.offset).rstrip("/")
        if fstype == AUTOFS:
            requests += _mounted_map(part, point, options, replace(auto, file=entry.file, line=entry.line))
            continue
        if problem := part.problem(entry.text):
            return (MapError(entry.file, entry.line, f"{problem}, in the entry of {quoted(entry.key)}"),)
        if any(location.count(",") >= MOST_REPLICAS for location in part.locations):
            message = f"more than {MOST_REPLICAS} servers for a location of {quoted(entry.key)}: remove some"
            return (MapError(entry.file, entry.line, message),)
        for source in part.sources():
            meant = mounted_type(fstype, source)
            if meant in TYPES:
                named = None if meant == fstype else fstype
                request = Request(source, point, options, entry.file, entry.line, wildcard, meant)
                inherited = f"{auto.file}:{auto.line}" if auto.options else ""
                requests.append(request._replace(maker=Maker.AUTOFS, named=named, inherited=inherited))
    return tuple(requests)


def _mounted_map(part: _Part, point: str, options: str, parent: AutoMap) -> Iterator[AutoMap]:
    """Yield the map that is mounted at a key (mount_autofs.c): its first location is the name.

    It inherits the variables of the map that has the entry; with the option hosts there is no map.
    """
    words = options.split(",")
    if _HOSTS not in words and part.locations:
        text = unquote(part.locations[0]).removeprefix(":")
        match = re.match(_TYPE_AND_COLON, text)
        kind, form = (match["kind"], match["format"] or "") if match else ("", "")
        name = text[match.end() if match else 0 :]
        yield replace(parent, point=point, kind=kind, format=form, name=name, options=options)


def _expand(text: str, key: str, variables: Mapping[str, str]) -> str:
    """Put in the key and the variables; the colons of a location behind the first `:/` become slashes."""
    in_path = False

    def expanded(match: re.Match[str]) -> str:
        nonlocal in_path
        if match["key"]:
            return key
        if match["variable"]:
            return variables.get(match["variable"].strip("{}"), match[0])
        if match["space"]:
            in_path = False
        if match["colon"]:
            slash, in_path = in_path, in_path or text.startswith("/", match.end())
            return "/" if slash else ":"
        return match[0]

    return re.sub(_PIECE, expanded, text)


def _parts(words: list[str]) -> Iterator[_Part]:
    """Yield the mounts of an entry: options and locations, or several offsets with options and locations."""
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
