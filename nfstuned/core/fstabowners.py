"""Who else writes an fstab: programs that mark the whole file, or single entries, as their own."""

from __future__ import annotations

import re

from nfstuned.parse.options import parse_options

_TOOLS = r"(ansible|puppet|chef|salt(?:stack)?|cfengine|nixos)"
_MARKS = (
    re.compile(rf"\b{_TOOLS}\b[ -]managed\b(?! block)", re.IGNORECASE),
    re.compile(
        rf"\b(?:managed|maintained|controlled|(?:auto-?)?generated)\b.{{0,80}}?\bby {_TOOLS}\b", re.IGNORECASE
    ),
    re.compile(rf"\bdo not edit\b.{{0,200}}?\b{_TOOLS}\b", re.IGNORECASE),
)
"""As Ansible's ansible_managed, Puppet's parsed files and NixOS word it; blanks and `#` are one space."""
_BEGIN, _END = "# BEGIN ANSIBLE MANAGED BLOCK", "# END ANSIBLE MANAGED BLOCK"
_BLANKS = re.compile(r"[\s#]+")
_CLOUD_INIT = ("cloudconfig", "cloud-init")


def owner(text: str) -> str:
    """Return the program that the comments call the owner of the whole file; "" where they name none."""
    comments = " ".join(line for line in text.split("\n") if line.lstrip(" \t").startswith("#"))
    plain = _BLANKS.sub(" ", comments).replace("HEADER: ", "")
    found = next((match for mark in _MARKS if (match := mark.search(plain))), None)
    return found[1].lower() if found else ""


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
