"""The text of an fstab, changed in the options of single lines; every other byte stays (fstab(5))."""

from __future__ import annotations

import re
from collections.abc import Mapping

from nfstuned.model.work import Request
from nfstuned.parse.fstab import parse_fstab
from nfstuned.parse.options import parse_options

NAME = "nconnect"
_ENTRY = re.compile(r"([ \t]*[^ \t]+[ \t]+[^ \t]+[ \t]+[^ \t]+)(?:([ \t]+)([^ \t]+))?(.*)", re.DOTALL)
"""Source, mount point and type; the blank and the options, which can be missing; and all the rest."""
_PART = re.compile(r'((?:[^",]|"[^"]*(?:"|$))*)(,|$)')
"""One option, and what ends it: as parse.options splits them, but nothing is lost."""


def with_counts(text: str, counts: Mapping[int, int]) -> str:
    """Return an fstab in which the lines, counted from 1, ask for those numbers of connections."""
    lines = text.split("\n")
    for number, count in counts.items():
        lines[number - 1] = with_count(lines[number - 1], count)
    return "\n".join(lines)


def with_count(line: str, count: int) -> str:
    """Return an entry, without its line's end, that asks for `count` connections exactly once.

    A number that is there is changed in its place, further ones are dropped; else it stands last, also behind
    `defaults`, which people look for. Blanks, escapes, a CR and what follows the options stay.
    """
    body = line.removesuffix("\r")
    end = line[len(body) :]
    entry = _ENTRY.fullmatch(body)
    if entry is None:
        return line
    head, blank, options, rest = entry.groups()
    return f"{head}{blank or ' '}{_merged(options or '', f'{NAME}={count}')}{rest}{end}"


def is_faithful(old: str, new: str, count: int) -> bool:
    """Return whether mount(8) reads both lines as one entry, but for the number, which is there once."""
    before, after = _entry(old), _entry(new)
    if before is None or after is None:
        return False
    given = [value for name, value in parse_options(after.options).pairs if name == NAME]
    same = (before.source, before.point, before.fstype) == (after.source, after.point, after.fstype)
    return same and given == [str(count)] and _others(before) == _others(after)


def _merged(options: str, word: str) -> str:
    parts, changed = [], False
    for found in _PART.finditer(options):
        part, comma = found.groups()
        if part.partition("=")[0] == NAME:
            if changed:
                continue
            part, changed = word, True
        parts.append(part + comma)
    text = "".join(parts)
    if changed:
        # A later number that was dropped leaves the comma before it.
        return text.removesuffix(",") if not options.endswith(",") else text
    return text + word if not text or text.endswith(",") else f"{text},{word}"


def _entry(line: str) -> Request | None:
    found = parse_fstab(line)
    return found[0] if len(found) == 1 and isinstance(found[0], Request) else None


def _others(request: Request) -> list[tuple[str, str | None]]:
    return [pair for pair in parse_options(request.options).pairs if pair[0] != NAME]
