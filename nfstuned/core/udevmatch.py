"""Whether a text matches what a rule asks for, as udev compares (token_match_string(); fnmatch(3))."""

from __future__ import annotations

import re
from functools import lru_cache

from nfstuned.model.udev import UdevToken

_SUBSYSTEMS = ("subsystem", "bus", "class")
"""Names of one thing: SUBSYSTEM=="bus" matches each."""
_PIECE = re.compile(r"\\(.)|\[([!^]?)(\]?(?:\[:\w+:\]|\\.|[^\]\\])*)\]|([*?])|(.)", re.DOTALL)
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \t",
    "cntrl": "\0-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \t\n\r\f\v",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_MEMBER = re.compile(r"\[:(\w+):\]|(?:\\(.)|(.))(?:-(?:\\(.)|(.)))?", re.DOTALL)


def matches(token: UdevToken, text: str) -> bool:
    """Whether a match holds for a text.

    An alternative that is empty, as in "|x", is the empty text.
    """
    return _is_one_of(token, text) is (token.operator == "==")


def _is_one_of(token: UdevToken, text: str) -> bool:
    if token.key in {"SUBSYSTEM", "SUBSYSTEMS"} and token.value in _SUBSYSTEMS:
        return text in _SUBSYSTEMS
    write = _glob if any(sign in token.value for sign in "*?[") else re.escape
    flags = re.IGNORECASE if token.ignore_case else 0
    return any(re.fullmatch(write(each), text, flags) for each in token.value.split("|"))


@lru_cache(maxsize=64)
def _glob(pattern: str) -> str:
    """Return a shell pattern as a regular expression; a bracket that does not end stands for itself."""
    return "".join(_piece(piece) for piece in _PIECE.finditer(pattern))


def _piece(piece: re.Match[str]) -> str:
    quoted, negated, inside, wild, plain = piece.groups()
    if wild:
        return "(?s:.)" + ("*" if wild == "*" else "")
    if inside:
        members = "".join(_members(each) for each in _MEMBER.finditer(inside))
        nothing, anything = "(?!)", "(?s:.)"
        return f"[{'^' if negated else ''}{members}]" if members else (anything if negated else nothing)
    return re.escape(quoted or plain or piece[0])


def _members(each: re.Match[str]) -> str:
    """Return what stands in brackets: a class, a character or a range; a range from z to a holds nothing."""
    if each[1]:
        return _CLASSES.get(each[1], "")
    first, last = each[2] or each[3], each[4] or each[5]
    if last is None:
        return re.escape(first)
    return f"{re.escape(first)}-{re.escape(last)}" if first <= last else ""
