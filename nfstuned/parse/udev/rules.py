"""A udev rules file, read as systemd-udevd reads it (systemd: src/udev/udev-rules.c; udev(7)).

The code follows systemd 258. Where systemd 252 does otherwise, the function's docstring says so. The results
were compared with those of `udevadm test` of systemd 252.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nfstuned.model.udev import UdevDefect, UdevRule, UdevRules, UdevToken
from nfstuned.parse.udev.keys import check_token, is_builtin
from nfstuned.parse.udev.tokens import split_tokens

SPACE = " \t\n\r"
LIMIT = 16384
"""UDEV_LINE_SIZE: a line of so many bytes or more, with its continuations, is too long."""
_ENDS = r"(?:\r\n|\n\r|\n|\r)\0?|\0"
"""The ends of a line for read_line_full() of src/basic/fileio.c, which udev reads with."""


@dataclass(frozen=True, slots=True)
class JoinedLine:
    """A rule's text on a single line, without the space before each part."""

    first: int
    last: int
    text: str


class _Joiner:
    """The state of udev_rules_parse_file() between two lines."""

    def __init__(self) -> None:
        self.first = 0
        self._begun: str | None = None
        self._too_long = False

    @property
    def open(self) -> bool:
        return self._begun is not None

    def add(self, number: int, line: str) -> JoinedLine | UdevDefect | None:
        """Take a line; return the rule that ends with it, a defect in its place, or None."""
        if self._begun is None:
            self.first = number
        elif not self._too_long:
            self._too_long = _size(self._begun) + _size(line) >= LIMIT
            line = line if self._too_long else self._begun + line
        if line.endswith("\\"):
            if not self._too_long:
                self._begun = line[:-1]
            return None
        too_long, self._too_long, self._begun = self._too_long, False, None
        if too_long:
            return UdevDefect(self.first, number, "Line is too long, ignored.", dropped=True)
        return JoinedLine(self.first, number, line) if line else None


def join_lines(text: str) -> Iterator[JoinedLine | UdevDefect]:
    r"""Yield a file's rules, each on a single line, as udev_rules_parse_file() joins them.

    A backslash joins only where nothing follows it: after `\ ` with a space the rule ends. Comments between
    joined lines are passed over, an empty line ends the rule. A single physical line over the limit, be it a
    comment, costs the whole file. (systemd 252 keeps the rules above that line, without their GOTOs.)
    """
    physical = physical_lines(text)
    for number, line in enumerate(physical, 1):
        if _size(line) >= LIMIT:
            yield UdevDefect(number, number, "Line is too long, the file is ignored.", dropped=True)
            return
    joiner = _Joiner()
    for number, line in enumerate(physical, 1):
        stripped = line.lstrip(SPACE)
        joined = None if stripped.startswith("#") else joiner.add(number, stripped)
        if joined is not None:
            yield joined
    if joiner.open:
        message = "Unexpected EOF after line continuation, line ignored."
        yield UdevDefect(joiner.first, len(physical), message, dropped=True)


def physical_lines(text: str) -> list[str]:
    """Return the lines of a file; a form feed, or another end of a line in Python's sense, ends none."""
    lines = re.split(_ENDS, text)
    return lines if lines[-1] else lines[:-1]


def _size(text: str) -> int:
    """Return how many bytes a text has; a surrogate stands for a byte that is not UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


_ORDER = (
    *("ACTION==", "DEVPATH==", "KERNEL==", "SYMLINK==", "NAME==", "ENV==", "CONST==", "TAG==", "SUBSYSTEM=="),
    *(
        "DRIVER==",
        "ATTR==",
        "SYSCTL==",
        "KERNELS==",
        "SUBSYSTEMS==",
        "DRIVERS==",
        "ATTRS==",
        "TAGS==",
        "TEST==",
    ),
    *("PROGRAM==", "IMPORT{file}==", "IMPORT{program}==", "IMPORT{builtin}==", "IMPORT{db}=="),
    *("IMPORT{cmdline}==", "IMPORT{parent}==", "RESULT==", "OPTIONS=", "OWNER=", "GROUP=", "MODE=", "TAG="),
    *("SECLABEL=", "ENV=", "NAME=", "SYMLINK=", "ATTR=", "SYSCTL=", "RUN{builtin}=", "RUN="),
)
_RANK = {name: rank for rank, name in enumerate(_ORDER)}
"""The order of UdevRuleTokenType, in which a rule's tokens are evaluated."""
_JUMPS = {"GOTO", "LABEL"}
"""Keys that are no tokens of a rule: UdevRule.goto and UdevRule.label have their values."""
_ACTS = {"PROGRAM", "IMPORT"}
"""Keys whose matches do something. A rule that has only other matches has no effect, and udev drops it."""


def parse_udev_rules(text: str) -> UdevRules:
    """Return the rules and defects of a file, as udev_rules_parse_file() does."""
    rules: list[UdevRule] = []
    defects: list[UdevDefect] = []
    for line in join_lines(text):
        if isinstance(line, UdevDefect):
            defects.append(line)
            continue
        rule, messages = _rule(line)
        defects.extend(
            UdevDefect(line.first, line.last, message, dropped=rule is None) for message in messages
        )
        if rule is not None:
            rules.append(rule)
    resolved, unresolved = _resolve_gotos(rules)
    return UdevRules(resolved, (*defects, *unresolved))


def _rule(line: JoinedLine) -> tuple[UdevRule | None, list[str]]:
    """Return the rule, None where udev drops it, and udev's messages; see rule_add_line()."""
    messages: list[str] = []
    tokens: list[UdevToken] = []
    try:
        for written in split_tokens(line.text):
            token, more = check_token(written)
            messages.extend(more)
            if token is not None:
                tokens.append(token)
    except ValueError as error:
        return None, [*messages, str(error)]
    gotos = [token.value for token in tokens if token.key == "GOTO"]
    labels = [token.value for token in tokens if token.key == "LABEL"]
    messages.extend(f'Contains multiple GOTO keys, ignoring GOTO="{goto}".' for goto in gotos[1:])
    messages.extend(f'Contains multiple LABEL keys, ignoring LABEL="{label}".' for label in labels[:-1])
    if not any(_acts(token) for token in tokens):
        return None, [*messages, "The line has no effect, ignoring."]
    ordered = tuple(sorted((token for token in tokens if token.key not in _JUMPS), key=_rank))
    label, goto = labels[-1] if labels else None, gotos[0] if gotos else None
    return UdevRule(line.first, line.last, ordered, label, goto), messages


def _acts(token: UdevToken) -> bool:
    """Return whether a token does something: it assigns, or its key is in _ACTS."""
    return not token.is_match or token.key in _ACTS


def _rank(token: UdevToken) -> int:
    """Return a token's place in sort_tokens(), which keeps the order of equals."""
    name = token.key
    if name == "IMPORT":
        builtin = token.attribute == "program" and is_builtin(token.value)
        name = "IMPORT{builtin}" if builtin else f"IMPORT{{{token.attribute}}}"
    elif name == "RUN" and token.attribute == "builtin":
        name = "RUN{builtin}"
    return _RANK[name + ("==" if token.is_match else "=")]


def _resolve_gotos(rules: list[UdevRule]) -> tuple[tuple[UdevRule, ...], list[UdevDefect]]:
    """Drop GOTOs without a label further down, and rules left without effect; see rule_resolve_goto()."""
    kept: list[UdevRule] = []
    defects: list[UdevDefect] = []
    below: set[str] = set()
    for rule in reversed(rules):
        goto = rule.goto if rule.goto in below else None
        lost = rule.goto is not None and goto is None
        useless = lost and rule.label is None and not any(_acts(token) for token in rule.tokens)
        if lost:
            text = f'GOTO="{rule.goto}" has no matching label, ignoring.'
            defects.append(UdevDefect(rule.line, rule.last, text, dropped=useless))
        if not useless:
            kept.append(UdevRule(rule.line, rule.last, rule.tokens, rule.label, goto))
        if rule.label is not None:
            below.add(rule.label)
    return tuple(reversed(kept)), defects[::-1]
