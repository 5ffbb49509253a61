"""What stands for something else in the values of udev rules: `$kernel`, `%k`, `%c{1}` (udev(7))."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NAMES = (
    "devnode|tempnode|attr|sysfs|env|kernel|number|driver|devpath|id|major|minor|"
    "result|parent|name|links|root|sys"
)
_LETTERS = {"c": "result", "s": "attr", "E": "env", "k": "kernel", "p": "devpath"}
_SIGN = re.compile(rf"\$\$|%%|\$({_NAMES})|%([NsEkndpbMmcPDLrS])|[$%]")
_BRACES = re.compile(r"\{([^}]{1,1023})\}")
_NUMBER = re.compile(r"[0-9]+\+?")
_INVALID = "invalid substitution type"


def find_mistake(value: str) -> tuple[int, str] | None:
    """Return where the first wrong substitution is, counted from 1, and what is wrong; None without one.

    As udev_check_format() of systemd's src/udev/udev-format.c judges it when rules are read. Applying them is
    more lenient: there a `$4` stays what it is.
    """
    for name, inside, start, end in _substitutions(value):
        if name is None:
            return start + 1, _INVALID
        if name in {"attr", "sysfs", "env"} and not inside:
            return end + 1, "attribute value missing"
        if name == "result" and inside and not _NUMBER.fullmatch(inside):
            return end + 1, "attribute value not a valid number"
    return None


def uses_result(value: str) -> bool:
    """Whether a value takes in what a program said."""
    return any(name == "result" for name, *_ in _substitutions(value))


def is_literal(value: str) -> bool:
    """Whether a value stands for itself."""
    return "%" not in value and "$" not in value


def _substitutions(value: str) -> Iterator[tuple[str | None, str, int, int]]:
    """Yield each one's name (None: there is none like it), what is in its braces, its start and its end."""
    at = 0
    while sign := _SIGN.search(value, at):
        at = sign.end()
        if sign[0] in {"$$", "%%"}:
            continue
        name, inside = sign[1] or _LETTERS.get(sign[2], sign[2]), ""
        if name and value.startswith("{", at):
            braces = _BRACES.match(value, at)
            name, inside, at = (name, braces[1], braces.end()) if braces else (None, "", at)
        yield name, inside, sign.start(), at
