"""Rules about a bdi's read-ahead that do not do what they mean, as udev reads them.

The vendor's rule stands on four lines, and is copied from a web page: most of what can go wrong is about the
ends of its lines. What udev does with each form was held against udevadm of systemd 252.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nfstuned.model.udev import UdevDefect, UdevRule
from nfstuned.parse.udev.rules import JoinedLine, join_lines, parse_udev_rules

_ABOUT = re.compile(r"\bbdi\b|\bread_ahead_kb\b")
_FLATTENED = re.compile(r"\\\s*,?\s*[A-Z]+(?:\{[^}]*\})?\s*[-+:=!]=?")
_EATEN = re.compile(r"""-v\s*(?!O?[FR]S=)\w+=(?:''|\\"\\"|)(?:\s|$)|\(\s*==""")
"""What was a variable is empty; awk's own separators may be that on purpose."""
_FIELD = re.compile(r"(?<!\$)\$[0-9]")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_ATTRIBUTE = "read_ahead_kb"
_ASKED = re.compile(rf"\{{{_ATTRIBUTE}\}}\s*[=!]=")
_LOOKS_BACK = re.compile(r"\b(?:RESULT|ENV)\b|%c|\$result")
_NO_EFFECT = "The line has no effect"


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule as its author meant it, and why it is another one for udev."""

    line: int
    defect: str
    """A few words: "space after the backslash"."""
    message: str


@dataclass(frozen=True, slots=True)
class _Piece:
    """What udev takes for one rule."""

    first: int
    last: int
    text: str
    said: tuple[UdevDefect, ...]
    asks_only: bool
    """Nothing in it assigns anything: no rule is written for that, only a part of one."""
    everywhere: str | None
    """The value that it writes to every bdi."""

    @property
    def dropped(self) -> UdevDefect | None:
        return next((defect for defect in self.said if defect.dropped), None)


def is_about_read_ahead(text: str) -> bool:
    """Whether a rules file is any of our business."""
    return _ABOUT.search(text) is not None


def find_broken(text: str, everywhere: Mapping[int, str]) -> Iterator[BrokenRule]:
    """Yield the broken rules of a file; `everywhere` has what its rules write to every bdi, by line."""
    meant: list[_Piece] = []
    for piece in _pieces(text, everywhere):
        if meant and not _continues(meant[-1], piece):
            yield from _judge(meant)
            meant = []
        meant.append(piece)
    yield from _judge(meant)


def _pieces(text: str, everywhere: Mapping[int, str]) -> Iterator[_Piece]:
    parsed = parse_udev_rules(text)
    asking = {rule.line for rule in parsed.rules if _asks_only(rule)}
    lines = text.splitlines()
    for item in join_lines(text):
        first, last = (item.first, item.last) if isinstance(item, JoinedLine) else (item.line, item.last)
        source = item.text if isinstance(item, JoinedLine) else "".join(lines[first - 1 : last])
        said = tuple(defect for defect in parsed.defects if (defect.line, defect.last) == (first, last))
        useless = any(defect.dropped and defect.message.startswith(_NO_EFFECT) for defect in said)
        yield _Piece(first, last, source, said, useless or first in asking, everywhere.get(first))


def _asks_only(rule: UdevRule) -> bool:
    return rule.goto is None and rule.label is None and all(token.is_match for token in rule.tokens)


def _continues(piece: _Piece, following: _Piece) -> bool:
    """Whether the next line was meant as a part of the same rule."""
    if following.first != piece.last + 1:
        return False
    if piece.text.rstrip().endswith((",", "\\")) or following.text.startswith(","):
        return True
    # One that runs a program is a whole rule where the next one asks what the program said.
    asked = piece.dropped is None and _LOOKS_BACK.search(following.text)
    return piece.asks_only and not asked


def _judge(meant: list[_Piece]) -> Iterator[BrokenRule]:
    if not any(is_about_read_ahead(piece.text) for piece in meant):
        return
    if len(meant) == 1:
        yield from _judge_one(meant[0])
    elif any(piece.dropped or piece.asks_only or piece.everywhere is not None for piece in meant):
        yield _fallen_apart(meant)


def _fallen_apart(meant: list[_Piece]) -> BrokenRule:
    spaced = next((piece for piece in meant[:-1] if piece.text.rstrip().endswith("\\")), None)
    if spaced is not None:
        defect, why = "space after the backslash", f"a space after the backslash ends line {spaced.last}"
    else:
        defect, why = "missing backslash", f"line {meant[0].last} ends without a backslash"
    message = f"{why}, so that udev takes the parts of this rule for rules of their own: {_effect(meant)}"
    return BrokenRule(meant[0].first, defect, message)


def _effect(meant: list[_Piece]) -> str:
    for piece in meant:
        if piece.everywhere is not None:
            return f"what is left in line {piece.first} writes {piece.everywhere} KiB to every bdi, disks too"
    if any(_ATTRIBUTE in piece.text and not piece.dropped for piece in meant):
        return "what is left of it is asked at the events of other devices, too"
    return "none of them writes a read-ahead"


def _judge_one(piece: _Piece) -> Iterator[BrokenRule]:
    dropped = piece.dropped
    if dropped is not None:
        if "EOF" in dropped.message:
            message = "the file's last line ends with a backslash: udev waits for more, and drops the rule"
            yield BrokenRule(piece.first, "backslash at the end of the file", message)
        elif _FLATTENED.search(_QUOTED.sub('""', piece.text)):
            message = "a backslash in the middle of a line joins nothing: udev passes the whole rule over"
            yield BrokenRule(piece.first, "flattened continuation", message)
        else:
            message = f'udev passes this rule over: "{dropped.message}"'
            yield BrokenRule(piece.first, "rule ignored by udev", message)
    elif piece.everywhere is not None:
        which = " that has the value it asks for" if _ASKED.search(piece.text) else ""
        message = (
            f"this rule writes {piece.everywhere} KiB to every device's bdi{which}: nothing in it asks for "
            "NFS, and disks, FUSE and Lustre get the value as well"
        )
        yield BrokenRule(piece.first, "unconditional bdi write", message)
    elif _EATEN.search(piece.text):
        message = "the shell that wrote this file has eaten $kernel or $4: the program fails at every device"
        yield BrokenRule(piece.first, "variables eaten by a shell", message)
    elif any("invalid substitution" in defect.message for defect in piece.said):
        field = _FIELD.search(piece.text)
        sign = field[0] if field else "a single $"
        message = (
            f"{sign} is no substitution of udev, which complains whenever it reads the rule, and passes it "
            "on as it is for now: a dollar sign of the program is written $$"
        )
        yield BrokenRule(piece.first, f"{sign} for ${sign}" if field else sign, message)
