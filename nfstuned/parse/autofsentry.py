"""One entry of an automounter's file map to the mounts that it asks for (autofs(5), sun format).

As in autofs 5.1.9: expandsunent, parse_mount, parse_mapent and sun_mount of modules/parse_sun.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nfstuned.errors import ParseError
from nfstuned.model.intent import AutoMap, MapEntry
from nfstuned.model.work import Maker, Request
from nfstuned.parse.autofs import DIRECT, unquote
from nfstuned.parse.fields import quoted
from nfstuned.parse.fstab import SMB, TYPES
from nfstuned.parse.options import parse_options

WILDCARD = "*"
_KEY_MARK = "&"
_PIECE = re.compile(
    r'(?P<plain>\\.|"[^"]*"?)|(?P<key>&)|\$(?P<brace>\{[^}]*\}?|\w+)|(?P<colon>:)|(?P<space>\s)', re.DOTALL
)
_WORD = re.compile(r'(?:\\.|"[^"]*"?|[^\s"\\]|\\)+', re.DOTALL)
_WEIGHT = re.compile(r"\([0-9]+\)$")
_OWN = re.compile(
    r"(?:fstype=.*|strict|nonstrict|(?:no)?browse|timeout=.*|(?:no-)?use-weight-only|bg|nofg"
    r"|(?:no)?symlink|nobind)$",
    re.DOTALL,
)
"""Options that automount keeps for itself (sun_mount, and mount_mount of modules/mount_nfs.c)."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One mount of an entry: where below the entry, with which options, and from where."""

    offset: str
    options: tuple[str, ...]
    locations: tuple[str, ...]


def mount_requests(
    entry: MapEntry, auto: AutoMap, variables: Mapping[str, str]
) -> tuple[Request | ParseError, ...]:
    """Return the network mounts of an entry, one for each server that may serve it.

    `variables` are the host's, `$HOST` for one; a variable that is not known stays as it is written.
    """
    direct = auto.point == DIRECT
    if direct != entry.key.startswith("/"):
        kind = "a direct" if direct else "an indirect"
        return (ParseError(entry.file, entry.line, f"not a key of {kind} map: {quoted(entry.key)}"),)
    wildcard = not direct and entry.key == WILDCARD
    key = _KEY_MARK if wildcard else re.sub(r"(\s)", r"\\\1", entry.key)
    words = _WORD.findall(_expand(entry.text, key, {**variables, **auto.variables}))
    base = entry.key if direct else f"{auto.point}/{entry.key}"
    found: list[Request | ParseError] = []
    for part in _parts(words):
        bad = next((location for location in part.locations if not _located(location)), None)
        if bad is not None or not part.locations:
            what = "no location" if bad is None else f"a location without a server: {quoted(bad)}"
            return (ParseError(entry.file, entry.line, f"{what}, in the entry of {quoted(entry.key)}"),)
        point = (base + part.offset).rstrip("/")
        options = ",".join(option for option in (auto.options, *part.options) if option)
        found += [
            Request(source, point, asked, entry.file, entry.line, wildcard, fstype, Maker.AUTOFS)
            for source, asked, fstype in _sources(part.locations, options)
        ]
    return tuple(found)


def _expand(text: str, key: str, variables: Mapping[str, str]) -> str:
    """Put in the key and the variables; a colon behind the one before the path becomes a slash."""
    seen = False

    def replace(match: re.Match[str]) -> str:
        nonlocal seen
        if match["key"]:
            return key
        if match["brace"]:
            return variables.get(match["brace"].strip("{}"), match[0])
        if match["space"]:
            seen = False
        if match["colon"]:
            slash, seen = seen, seen or text[match.end() :].startswith("/")
            return "/" if slash else ":"
        return match[0]

    return _PIECE.sub(replace, text)


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
    start = place
    while place < len(words) and words[place].startswith("-"):
        place += 1
    return place, tuple(unquote(word[1:]) for word in words[start:place])


def _located(location: str) -> bool:
    hosts, separator, _ = unquote(location).partition(":/")
    return location.startswith(":") or (bool(separator) and all(hosts.split(",")))


def _sources(locations: tuple[str, ...], options: str) -> Iterator[tuple[str, str, str]]:
    """Yield the sources of network mounts, the options that reach mount(8), and the type."""
    pairs = parse_options(options)
    fstype = pairs.get("fstype") or "nfs"
    if fstype not in TYPES:
        return
    asked = ",".join(name if value is None else f"{name}={value}" for name, value in pairs.pairs)
    asked = ",".join(option for option in asked.split(",") if not _OWN.match(option))
    for location in locations:
        hosts, _, path = unquote(location).partition(":/")
        if not hosts and path.startswith("/") and fstype in SMB:
            yield f"/{path}", asked, fstype
        for host in hosts.split(",") if hosts else ():
            yield f"{_WEIGHT.sub('', host)}:/{path}", asked, fstype
