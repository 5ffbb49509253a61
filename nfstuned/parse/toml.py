"""The text of a TOML file: its values, the lines of its keys, and its problems in one line each."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from nfstuned.model.policy import ConfigError
from nfstuned.parse.fields import MASK, holds_secret

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Path = tuple[str | int, ...]
"""Where a value stands: ("policy", 0, "match", "server"). Entries count from 0 here, from 1 for people."""

_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_KEYS = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = rf"\s*(\[\[?)\s*({_KEYS})\s*\]"
_PAIR = rf"\s*({_KEYS})\s*[=:](?P<value>.*)"
"""A key and its value; also with a colon, so that the problem of such a line names the key."""
_AT = r"(?s)(?P<fault>.*) \(at (?:line (?P<line>\d+), column \d+|end of document)\)"
_CONTINUATION = r"\s*([\"'\]{},\d#]|$)"
"""The beginning of a line that goes on with the value of an earlier line."""
_WORDS = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false"}
_REMEDIES = (
    ("\ufeff", "save the file without a byte order mark"),
    (r"Expected '\]", "a table stands in a line of its own, as in [daemon] or [[policy]]"),
    (r"Expected '=' after a key", "write it as key = value"),
    (
        r"Illegal character|invalid character '\\n'|Unterminated string|Expected [\"']",
        "close the text with the quote that opens it",
    ),
    (r"Unescaped '\\' in a string", r"write \\ for a backslash, or the text in single quotes"),
    (
        r"inline table|Invalid initial character for a key part",
        'an inline table stands in one line, as in { server = "nas", export = "/vol1" }',
    ),
    (r"Unclosed array", 'a list has commas between its values and ends with a bracket, as in ["a", "b"]'),
    (r"Invalid statement", "a line is a [table], key = value, or a comment that begins with #"),
)
"""Faults of tomllib, or bytes of the line, and the remedy for each."""
_OPENINGS = (
    ("Unterminated string|'''", "\"\"\"|'''"),
    ('Expected "\'"', r"""[=:,\[{]\s*'[^']*$"""),
    ("Unclosed array", r"""[=:]\s*\[(?:[^]"'#]|"[^"]*"|'[^']*')*(?:#.*)?$"""),
)
"""Faults that are found below the line with the opening quotes or bracket, and the look of this line."""
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

        A key with dots makes tables. They are looked for when a problem or a number needs its place.
        """
        lines: dict[Path, int] = {}
        for number, path in _statements(self.text.split("\n")):
            for end in range(len(path), 0, -1):
                lines.setdefault(path[:end], number)
        return lines

    def place(self, path: Path) -> str:
        """Return `file:line` of a key, or of the table around it; the file where no line is known."""
        above = (self.lines.get(path[:end]) for end in range(len(path), 0, -1))
        line = next((f":{number}" for number in above if number), "")
        return f"{self.file}{line}"

    def problem(self, path: Path, value: object, allowed: str) -> str:
        """Return a problem in one line: file, line, key, value and the allowed values."""
        text = MASK if _is_secret(path, value) else shown(value)
        return f"{self.place(path)}: {key(path)}: {text}: {allowed}"


def _is_secret(path: Path, value: object) -> bool:
    return holds_secret(json.dumps({key(path): value}, default=str))


def _statements(rows: Iterable[str]) -> Iterator[tuple[int, Path]]:
    """Yield the line and the path of each table and key."""
    entries: dict[Path, int] = {}
    table: Path = ()
    for number, row in enumerate(rows, 1):
        if header := re.match(_HEADER, row):
            table = _path((), header[2], entries)
            if header[1] == "[[":
                entries[table] = entries.get(table, -1) + 1
                table = (*table, entries[table])
            yield number, table
        elif pair := re.match(_PAIR, row):
            yield number, _path(table, pair[1], entries)


def parse_toml(file: str, text: str, allowed: Callable[[Path], str] = lambda _: "") -> Document:
    """Return the document; raises ConfigError with the place where the text stops being TOML.

    `allowed` returns the allowed values of a key, in words.
    """
    if len(text) > MOST_CHARACTERS:
        number = text.count("\n", 0, MOST_CHARACTERS) + 1
        raise ConfigError((f"{file}:{number}: more than {MOST_CHARACTERS} characters: shorten the file",))
    if dotted := re.search(_DOTTED, text):
        number = text.count("\n", 0, dotted.start()) + 1
        message = (
            f"more than {MOST_PARTS} names with dots between them: no key of nfstuned.toml(5) is that long"
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
        number = int(match["line"]) if match and match["line"] else 0
        raise ConfigError((_syntax_problem(Document(file, {}, text), number, fault, allowed),)) from None
    if _deeper(values, _DEEPEST):
        raise ConfigError((f"{file}: {_TOO_NESTED}",))
    return Document(file, values, text)


def _syntax_problem(document: Document, line: int, fault: str, allowed: Callable[[Path], str]) -> str:
    """Return the problem where a text stops being TOML, with its remedy.

    `line` is 0 for the end of the text: then its last statement has no end.
    """
    rows = document.text.rstrip().split("\n")
    line = min(line or len(rows), len(rows))
    statements = list(_statements(rows[:line]))
    goes_on = bool(re.match(_CONTINUATION, rows[line - 1]))
    for mark, opening in _OPENINGS:
        if re.search(mark, fault):
            opened = [each for each in statements if re.search(opening, rows[each[0] - 1])]
            statements, goes_on = opened or statements, goes_on or bool(opened)
    number, path = max(statements, default=(0, ()))
    if number != line and not (number and goes_on):
        number, path = line, ()
    row = rows[number - 1]
    pair = re.match(_PAIR, row) if path else None
    value = row.strip() if pair is None else re.sub(r"\s#.*", "", pair["value"]).strip()
    known = allowed(path) if path else ""
    earlier = [
        document.lines[each] for each in (path, path[:-1]) if document.lines.get(each, number) < number
    ]
    remedy = next((words for mark, words in _REMEDIES if re.search(mark, fault + row)), "")
    if earlier and re.search("overwrite|twice|immutable", fault):
        remedy = f"line {earlier[0]} has it already: remove one of them"
    elif pair is not None and re.search("Invalid value|Expected newline", fault):
        number_asked = known.startswith("allowed: a number")
        remedy = "write a plain number" if number_asked else _value_remedy(value)
    secret = _is_secret(path, value) if path else holds_secret(value)
    seen = MASK if secret else shown(value)
    place = f"{document.file}:{number}:{f' {key(path)}:' if path else ''}"
    return (
        f"{place} {seen}: not TOML: {': '.join(filter(None, (fault, remedy)))}{f'; {known}' if known else ''}"
    )


def _value_remedy(value: str) -> str:
    """Return how to write a value that TOML does not have."""
    if value.lower() in _WORDS:
        return f"write {_WORDS[value.lower()]}"
    return (
        "write a text in straight quotes" if value and value[0] not in "=\"'" else "write one value after ="
    )


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
