"""Who else writes an fstab: programs that mark the whole file, or single entries, as their own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nfstuned.parse.options import parse_options

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
_ENTRY = re.compile(r"[^\s:/=]*[:/=]\S*\s+/\S*\s+\S+\s+\S+(?:\s+\d+){0,2}\s*")
"""A mount that somebody commented out."""
_CLOUD_INIT = ("cloudconfig", "cloud-init")


def owner(text: str) -> str:
    """Return the program that the comments call the owner of the whole file; "" where they name none."""
    found = (match for block in _blocks(text) for mark in _MARKS if (match := mark.search(block)))
    first = next(found, None)
    return first[1].lower() if first else ""


def _blocks(text: str) -> Iterator[str]:
    """Yield the comments that stand together, as one line each; blanks and `#` are one space."""
    lines: list[str] = []
    for line in (*text.split("\n"), ""):
        if line.lstrip(" \t").startswith("#") and not _ENTRY.fullmatch(line.lstrip(" \t#")):
            lines.append(line)
        elif lines:
            yield _BLANKS.sub(" ", " ".join(lines)).replace("HEADER: ", "")
            lines = []


def ansible_lines(text: str) -> frozenset[int]:
    """Return the lines, from 1 on, of the blocks that Ansible's blockinfile keeps as its own."""
    found, inside = set(), False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith((_BEGIN, _END)):
            inside = line.startswith(_BEGIN)
        elif inside:
            found.add(number)
    return frozenset(found)


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
