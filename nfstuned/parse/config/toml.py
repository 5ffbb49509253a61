"""TOML (https://toml.io/en/v1.0.0) with the lines that its keys stand on, for messages people can act on."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from nfstuned.errors import ConfigError
from nfstuned.parse.fields import MASK, holds_secret, mask_secrets

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Path = tuple[str | int, ...]
"""Where a value stands: ("policy", 0, "match", "server"). Entries count from 0 here, from 1 for people."""

_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_KEYS = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = rf"\s*(\[\[?)\s*({_KEYS})\s*\]"
_PAIR = rf"\s*({_KEYS})\s*="
_AT = r"(?s)(?P<fault>.*) \(at (?:line (?P<line>\d+), column \d+|end of document)\)"
_LONGEST = 80
MOST_CHARACTERS = 262_144
"""Of a file: thousands of [[policy]] entries."""
MOST_PARTS = 16
"""Names in a key with dots: tomllib's work grows with the square of their number."""
_DOTTED = rf"(?<![A-Za-z0-9_\-\"'])(?:{_KEY}[ \t]*\.[ \t]*){{{MOST_PARTS}}}"
_DEEPEST = 32
"""The configuration has six levels; who reads or prints a value goes through them by recursion."""
_TOO_NESTED = f"nested too deep: more than {_DEEPEST} tables and lists in each other"


@dataclass(frozen=True)
class Document:
    """A file: its text and the values in it."""

    file: str
    values: Mapping[str, object]
    text: str

    @cached_property
    def lines(self) -> Mapping[Path, int]:
        """The first line of each table and key; multi-line strings may seem to hold more of them.

        They are only looked for when there is a problem.
        """
        lines: dict[Path, int] = {}
        entries: dict[Path, int] = {}
        table: Path = ()
        for number, row in enumerate(self.text.split("\n"), 1):
            if header := re.match(_HEADER, row):
                table = _path((), header[2], entries)
                if header[1] == "[[":
                    entries[table] = entries.get(table, -1) + 1
                    table = (*table, entries[table])
                lines.setdefault(table, number)
            elif pair := re.match(_PAIR, row):
                lines.setdefault(_path(table, pair[1], entries), number)
        return lines

    def problem(self, path: Path, value: object, allowed: str) -> str:
        """Return a problem in one line: file, line, key, value and the allowed values."""
        above = (self.lines.get(path[:end]) for end in range(len(path), 0, -1))
        line = next((f"{number}:" for number in above if number), "")
        secret = holds_secret(json.dumps({key(path): value}, default=str))
        return f"{self.file}:{line} {key(path)}: {MASK if secret else shown(value)}: {allowed}"


def parse_toml(file: str, text: str) -> Document:
    """Return the document; raises ConfigError with the place where the text stops being TOML."""
    if len(text) > MOST_CHARACTERS:
        number = text.count("\n", 0, MOST_CHARACTERS) + 1
        raise ConfigError((f"{file}:{number}: more than {MOST_CHARACTERS} characters: shorten the file",))
    if dotted := re.search(_DOTTED, text):
        number = text.count("\n", 0, dotted.start()) + 1
        message = (
            f"more than {MOST_PARTS} names with dots between them: no key of nfstuned.toml(5) is so long"
        )
        raise ConfigError((f"{file}:{number}: {message}",))
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise ConfigError((f"{file}: {_TOO_NESTED}",)) from None
    except ValueError as error:
        match = re.fullmatch(_AT, str(error))
        # Python reads no number that is longer than thousands of digits, and does not say where it was.
        fault = match["fault"] if match else "a number has too many digits"
        rows = text.split("\n")
        number = int(match["line"]) if match and match["line"] else len(rows)
        row = rows[number - 1].strip()
        raise ConfigError((f"{file}:{number}: {shown(mask_secrets(row))}: not TOML: {fault}",)) from None
    if _deeper(values, _DEEPEST):
        raise ConfigError((f"{file}: {_TOO_NESTED}",))
    return Document(file, values, text)


def _deeper(value: object, levels: int) -> bool:
    """Return whether tables and lists lie in each other on more levels than these."""
    if not isinstance(value, (dict, list)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_deeper(part, levels - 1) for part in inner)


def key(path: Path) -> str:
    """Return a path as people write it: `policy[2].match.server`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            text += ("." if text else "") + (
                part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part)
            )
    return text


def shown(value: object) -> str:
    """Return a value on a single line, safe for a terminal, cut where it is long."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    if not text.isprintable():
        text = json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `did you mean "X"? ` with the word of `known` that is close to `word`; "" without."""
    close = get_close_matches(word, list(known), n=1)
    return f'did you mean "{close[0]}"? ' if close else ""


def _path(table: Path, keys: str, entries: Mapping[Path, int]) -> Path:
    """Return the path of a dotted key below a table, through the last entry of each array of tables."""
    path = table
    for part in re.findall(_KEY, keys):
        if path in entries:
            path = (*path, entries[path])
        path = (*path, part.strip("\"'"))
    return path
