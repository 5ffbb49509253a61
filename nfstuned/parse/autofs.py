"""The automounter's maps in files: auto.master(5), autofs(5); the grammar is what autofs 5.1.9 does.

read_one of modules/lookup_file.c finds the entries, nfstuned.parse.autofsentry takes one apart. Maps that are
programs, or that a server keeps, are only named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nfstuned.errors import ParseError
from nfstuned.model.intent import AutoMap, MapEntry, MapInclude
from nfstuned.parse.fields import quoted

MASTER = "/etc/auto.master"
DIRECT = "/-"
_BLANK = (" ", "\t")
_KEY = re.compile(r'(?:\\.|"[^"\n]*"|[^\s"\\])+')
_MAP = re.compile(
    r"(?:(?P<kind>file|program|exec|sss|yp|nis|nisplus|ldaps?|hesiod|userdir|multi|dir)"
    r"(?:,(?P<format>sun|hesiod|amd))?:[ \t]*)?(?P<name>(?:\\.|[^\s\\])+)"
)
_DEFINITION = re.compile(r"-D[ \t]*([A-Za-z_][\w.-]*)=([\w.-]+)")
_WITH_NUMBER = re.compile(
    r"(?:-t|-n|--timeout|--negative-timeout|--mode)(?:[ \t]*=[ \t]*|[ \t]+|(?=[0-9]))[0-9]+"
)
_DAEMONS = re.compile(r"--\S*|-[gvdrws](?!\S)")
_PSEUDO = {"browse", "nobrowse", "nobind", "symlink", "strictexpire", "shared", "slave", "private", "strict"}
"""What automount keeps for itself; it does not reach mount(8)."""


def parse_master(text: str, file: str = MASTER) -> tuple[AutoMap | MapInclude | ParseError, ...]:
    """Return the maps and the included masters in their order; of several for one point the first counts."""
    return tuple(_master_item(item) if isinstance(item, MapEntry) else item for item in _items(text, file))


def parse_map(text: str, file: str) -> tuple[MapEntry | MapInclude | ParseError, ...]:
    """Return the entries of a map and what it includes; of several for one key the first counts."""
    return tuple(_items(text, file))


def _items(text: str, file: str) -> Iterator[MapEntry | MapInclude | ParseError]:
    swallowing = (
        False  # an indented line goes on with the entry or the comment before it, which spoils an entry
    )
    previous: MapEntry | None = None
    for number, line in _lines(text):
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


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line after backslashes joined it with the next; nothing is left of the two characters."""
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
    key = _KEY.match(content)
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
    found = _MAP.match(entry.text)
    if found is None or not point.startswith("/"):
        return ParseError(entry.file, entry.line, f"no mount point and map: {quoted(entry.key)}")
    kind, name = found["kind"] or "", found["name"]
    if name in ("-hosts", "-null"):
        kind = name[1:]
    options = entry.text[found.end() :]
    variables = dict(_DEFINITION.findall(options))
    for pattern in (_DEFINITION, _WITH_NUMBER, _DAEMONS):
        options = pattern.sub(" ", options)
    mount = [o for word in options.split() for o in word.removeprefix("-").split(",") if o not in _PSEUDO]
    kept = ",".join(option for option in mount if option and not option.startswith("timeout="))
    name = unquote(name)
    return AutoMap(point, kind, found["format"] or "", name, kept, entry.file, entry.line, variables)


def unquote(text: str) -> str:
    """Return a key, a name or a location without its quotes and backslashes (dequote in lib/parse_subs.c)."""
    return (
        re.sub(r'\\(.)|"([^"]*)"?', r"\1\2", text, flags=re.DOTALL) if "\\" in text or '"' in text else text
    )
