"""The text of an fstab (fstab(5)), and who else writes it; of a change every other byte stays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from nfstuned.model.kernel import parse_options
from nfstuned.model.mounts import Request
from nfstuned.parse.etc.fstab import parse_fstab

_TOOLS = r"(ansible|puppet|chef|salt(?:stack)?|cfengine|nixos)"
_NO = r"(?:not|formerly|no longer|once)"
_MADE = r"(?:managed|maintained|controlled|(?:auto-?)?generated)"
_BETWEEN = rf"(?:(?!\b{_NO}\b|[.;!?] ).){{0,80}}?"
_MARKS = tuple(
    re.compile(rf"(?<!\bnot )(?<!\bformerly )(?<!\bno longer )(?<!\bonce )\b{mark}\b", re.IGNORECASE)
    for mark in (
        rf"{_TOOLS}[ -]managed\b(?! block)",
        rf"{_MADE}\b{_BETWEEN}\b(?:by|via|with|using) (?:(?:the|our) )?{_TOOLS}",
        rf"do not edit\b.{{0,200}}?\b{_TOOLS}",
    )
)
"""As Ansible's ansible_managed, Puppet's parsed files and NixOS word it, and people; not what was once so."""
_BEGIN, _END = "# BEGIN ANSIBLE MANAGED BLOCK", "# END ANSIBLE MANAGED BLOCK"
_BLANKS = re.compile(r"[\s#]+")
_SEEMS_ENTRY = re.compile(r"[^\s:/=]*[:/=]\S*\s+/\S*\s+\S+\s+\S+(?:\s+\d+){0,2}\s*")
"""A mount that somebody commented out."""
_CLOUD_INIT = ("cloudconfig", "cloud-init")


def owner(text: str) -> str:
    """Return the program that the comments call the owner of the whole file; "" where they name none."""
    matches = (match for block in _blocks(text) for mark in _MARKS if (match := mark.search(block)))
    first = next(matches, None)
    return first[1].lower() if first else ""


def _blocks(text: str) -> Iterator[str]:
    """Yield the comments that stand together, as one line each; blanks and `#` are one space."""
    lines: list[str] = []
    for line in (*text.split("\n"), ""):
        if line.lstrip(" \t").startswith("#") and not _SEEMS_ENTRY.fullmatch(line.lstrip(" \t#")):
            lines.append(line)
        elif lines:
            yield _BLANKS.sub(" ", " ".join(lines)).replace("HEADER: ", "")
            lines = []


def ansible_lines(text: str) -> frozenset[int]:
    """Return the lines, from 1 on, of the blocks that Ansible's blockinfile keeps as its own."""
    numbers, inside = set(), False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith((_BEGIN, _END)):
            inside = line.startswith(_BEGIN)
        elif inside:
            numbers.add(number)
    return frozenset(numbers)


def is_cloud_inits(options: str) -> bool:
    """Return whether cloud-init marked an entry as its own: it writes `comment=cloudconfig` (cc_mounts).

    An `x-` option that names it counts as well; those of systemd only order the mount after it.
    """
    return any(_is_mark(name, value or "") for name, value in parse_options(options).pairs)


def _is_mark(name: str, value: str) -> bool:
    if name == "comment":
        return value in _CLOUD_INIT
    own = name.lower().startswith("x-") and not name.startswith("x-systemd.")
    return own and any(word in f"{name}={value}" for word in _CLOUD_INIT)


NAME = "nconnect"
_ENTRY = re.compile(r"([ \t]*[^ \t]+[ \t]+[^ \t]+[ \t]+[^ \t]+)(?:([ \t]+)([^ \t]+))?(.*)", re.DOTALL)
"""Source, mount point and type; the blank and the options, which can be missing; and all the rest."""
_PART = re.compile(r'((?:[^",]|"[^"]*(?:"|$))*)(,|$)')
"""An option, and what ends it: as parse_options splits them, but nothing is lost."""


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
    for match in _PART.finditer(options):
        part, comma = match.groups()
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
    requests = parse_fstab(line)
    return requests[0] if len(requests) == 1 and isinstance(requests[0], Request) else None


def _others(request: Request) -> list[tuple[str, str | None]]:
    return [pair for pair in parse_options(request.options).pairs if pair[0] != NAME]
