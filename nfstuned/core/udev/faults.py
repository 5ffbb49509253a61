"""Udev rules about a bdi's read-ahead with another effect than their author meant.

The vendor's rule has four lines, and is copied from a web page: most mistakes are at the ends of its lines.
Their effects were compared with udevadm of systemd 252. A complete rule may still never act on an NFS mount,
because its conditions never hold, or because the kernel refuses its value.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from typing import NamedTuple

from nfstuned.core.udev.device import (
    ATTRIBUTE,
    Device,
    is_refused_value,
    matches,
    redirects_nothing,
    start_mistake,
)
from nfstuned.core.udev.writers import NFS_ADDED, aims_at_attribute, finds_nfs, reached
from nfstuned.model.kernel import decimal
from nfstuned.model.mounts import NFSRAHEAD
from nfstuned.model.udev import UdevDefect, UdevRule, UdevToken
from nfstuned.parse.udev_keys import check_token, split_tokens, uses_result
from nfstuned.parse.udev_rules import JoinedLine, join_lines, parse_udev_rules, physical_lines

_ABOUT = re.compile(r"\bbdi\b|\bread_ahead_kb\b")
_FLATTENED = re.compile(r"\\\s*(?:,\s*)?[A-Z]+(?:\{[^}]{0,255}\})?\s*[-+:=!]=?")
_EATEN = re.compile(r"""-v\s*(?!O?[FR]S=)\w+=(?:''|\\"\\"|)(?:\s|$)|\(\s*==""")
"""A variable that a shell has emptied; awk's own separators may be empty on purpose."""
_KNOWN_PROGRAM = re.compile(r"(?i)(?<![a-z.-])(?:[gm]?awk|(?:ba)?sh|grep)(?![a-z])")
_FIELD = re.compile(r"(?<!\$)\$[0-9]")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.?)*(?:"|\Z)', re.DOTALL)
"""An open quotation goes to the end of the text: searching that from each mark in it would take hours."""
_ASKED = re.compile(rf"\{{{ATTRIBUTE}\}}\s*[=!]=")
_WRITTEN = re.compile(rf'\{{(?:bdi/|queue/)?{ATTRIBUTE}\}}\s*=\s*"([0-9]+)"')
_AMOUNT = re.compile(r"\s*([0-9]{1,9})\s*([kKmM]?)(?:[iI]?[bB])?\s*")
_ACTIONS = ("add", "remove", "change", "move", "online", "offline", "bind", "unbind")
"""The events of the kernel (kobject_actions in lib/kobject_uevent.c)."""
_DISK_FOLDERS = ("bdi", "queue")
"""The folders of a disk's read_ahead_kb; a bdi's own is in the folder of its uevent."""
_LOOKS_BACK = re.compile(r"\b(?:RESULT|ENV)\b|%c|\$result")
_NO_EFFECT = "The line has no effect"


class BrokenRule(NamedTuple):
    """A rule that its author meant, and the reason why udev reads another rule."""

    line: int
    defect: str
    """A few words: "space after the backslash"."""
    message: str
    last: int = 0
    """The last line of the rule that its author meant."""
    kb: int | None = None
    """The value that it should write to an NFS mount, in KiB; None where that is not known."""
    repair: str = ""
    """The smallest change with which it acts, "/usr/bin/awk instead of <path>/awk"; "" for a larger."""
    sign: str = ""
    """The dollar sign of a program, "$4" or "$", that should be doubled: the rule works all the same."""

    @property
    def works(self) -> bool:
        """Whether it acts as its author meant it all the same, and udev only complains."""
        return bool(self.sign)


class _Reason(NamedTuple):
    """Why a rule that udev reads never acts."""

    defect: str
    why: str
    repair: str = ""
    """The right text, and the text that it replaces; "" where the right one is not known."""


class _Piece(NamedTuple):
    """A rule for udev, perhaps only a part of the rule that its author meant."""

    first: int
    last: int
    text: str
    defects: tuple[UdevDefect, ...]
    asks_only: bool
    """It assigns nothing: nobody writes such a rule, only such a part of a rule."""
    everywhere: str | None
    """The value that it writes to every bdi."""
    tokens: tuple[UdevToken, ...] = ()
    """Its tokens, even where udev passes it over because it has no effect."""
    absent: Container[str] = ()
    """Programs that are not there."""
    reasons: tuple[_Reason, ...] = ()
    """Why it never acts on an NFS mount for which it was meant."""

    @property
    def dropped(self) -> UdevDefect | None:
        return next((defect for defect in self.defects if defect.dropped), None)

    def as_meant(self, *, asked: bool) -> UdevRule:
        """Return a rule as its author meant it, without the conditions that keep it from acting."""
        label = next((token.value for token in self.tokens if token.key == "LABEL"), None)
        goto = next((token.value for token in self.tokens if token.key == "GOTO"), None)
        events = goto is not None and all(token.key in {"ACTION", "GOTO", "LABEL"} for token in self.tokens)
        tokens = tuple(
            token
            for token in self.tokens
            if token.is_match
            and not (asked and (token.key in {"ACTION", "PROGRAM"} or _is_value(token)))
            and not (events and token.key == "ACTION")
        )
        # A jump that depends on the event alone leaves both ways open.
        doubt = (UdevToken("TEST", None, "==", "/"),) if events else ()
        return UdevRule(self.first, self.last, tokens + doubt, label, goto)

    def find_reasons(self, late: frozenset[int] | None) -> Iterator[_Reason]:
        """Yield why a rule that is about a read-ahead never acts on an NFS mount."""
        assigned = [token for token in self.tokens if not token.is_match and _is_value(token)]
        commands = [token for token in self.tokens if token.key == "RUN" and aims_at_attribute(token.value)]
        # Questions about the read-ahead with an amount, which their author meant as assignments.
        asked = [
            token
            for token in self.tokens
            if _is_value(token)
            and token.operator == "=="
            and (_AMOUNT.fullmatch(token.value) or uses_result(token.value))
        ]
        if not assigned and not commands and asked and self._does_nothing_else():
            written = f'ATTR{{{asked[0].attribute}}}=="{asked[0].value}"'
            yield _Reason("== for =", f"{written} compares the value, and only = writes it")
            assigned = asked
        if not assigned and not commands:
            return
        yield from self._of_values(assigned)
        yield from self._of_programs(commands if not assigned else [])
        actions = [token for token in self.tokens if token.key == "ACTION"]
        reachable = [action for action in _ACTIONS if all(matches(token, action) for token in actions)]
        if not reachable:
            names = " and ".join(f'"{token.value}"' for token in actions)
            yield _Reason("unknown action", f"the kernel has no event {names}")
        elif late is not None and ("add" not in reachable or self.first in late):
            yield _Reason(
                "no rule for add", "it waits for another event than add, the only event of a new mount"
            )

    def _of_values(self, assigned: list[UdevToken]) -> Iterator[_Reason]:
        """Yield why a rule's values arrive nowhere: all of them are refused, or none has a file."""
        if assigned and all(is_refused_value(token.value) for token in assigned):
            value = assigned[-1].value
            why = f'the kernel accepts a plain number of KiB, and refuses "{value}"'
            yield _Reason("value with a unit" if _AMOUNT.fullmatch(value) else "value that is no number", why)
        lost = [token.attribute or "" for token in assigned if not _is_on_bdi(token)]
        # A rule for bdis alone: disks have folders bdi and queue of their own.
        subsystems = [token for token in self.tokens if token.operator == "==" and token.key == "SUBSYSTEM"]
        for_bdis = any(matches(token, "bdi") for token in subsystems)
        for_disks = any(matches(token, "block") for token in subsystems)
        if lost and len(lost) == len(assigned) and for_bdis and not for_disks:
            yield _Reason("attribute that no bdi has", f"a bdi has no {lost[-1]}, but {ATTRIBUTE}")

    def _of_programs(self, commands: list[UdevToken]) -> Iterator[_Reason]:
        """Yield why a program that a rule needs cannot start, or writes nothing."""
        asked = [token for token in self.tokens if token.key == "PROGRAM" and token.operator == "=="]
        needed = [token.value for token in asked] or [token.value for token in commands]
        if not asked and any(not (start_mistake(each) or redirects_nothing(each)) for each in needed):
            return
        for command in needed:
            program = command.split(" ", 1)[0]
            mistake = start_mistake(command)
            place = command.partition(">")[0] + ">" if "<" in program else program
            written = re.match(r"\S*<[^<>]*>\S*|\S*", command)
            wrong = written[0] if written else program
            known = _KNOWN_PROGRAM.search(wrong)
            repair = f"/usr/bin/{known[0].lower()} instead of {wrong}" if known else ""
            if mistake == "a placeholder":
                why = f"{place} stands for a path: udev cannot start that"
                yield _Reason("placeholder for a path", why, repair)
            elif mistake:
                why = (
                    f"udev looks for a program without a path only in /usr/lib/udev: {program} is missing "
                    "there"
                )
                yield _Reason("program without a path", why, repair)
            elif program in self.absent:
                why, repair = (
                    f"there is no {program}",
                    f"the path of an existing program for {wrong.rpartition('/')[2]}",
                )
                yield _Reason("program that is not there", why, repair)
            elif not asked and redirects_nothing(command):
                yield _Reason("redirection without a shell", "udev uses no shell, so > redirects nothing")

    def _does_nothing_else(self) -> bool:
        """Whether a rule without an assignment has no other effect: it jumps nowhere and runs nothing.

        A program may write by itself, or answer a later rule, unless it only looks for NFS or in nfs.conf.
        """
        return all(
            token.is_match
            and token.key != "IMPORT"
            and (token.key != "PROGRAM" or finds_nfs(token) or NFSRAHEAD in token.value)
            for token in self.tokens
        )

    def continues_in(self, following: _Piece) -> bool:
        """Whether the next line was meant as a part of the same rule."""
        if following.first != self.last + 1:
            return False
        if self.text.rstrip().endswith((",", "\\")) or following.text.startswith(","):
            return True
        # A rule that is complete but for its mistake ends where the next names a subsystem of its own.
        if self.reasons and (
            any(token.key == "SUBSYSTEM" for token in following.tokens)
            or not any(_is_value(token) for token in following.tokens)
        ):
            return False
        # A rule that runs a program is complete where the next rule asks for the program's output.
        asked = self.dropped is None and _LOOKS_BACK.search(following.text)
        return self.asks_only and not asked

    def judge(self) -> Iterator[BrokenRule]:
        """Yield the mistake of a rule that is no part of another."""
        dropped = self.dropped
        if self.reasons:
            message = (
                f"this rule never acts on a new mount: {', and '.join(each.why for each in self.reasons)}"
            )
            repair = self.reasons[0].repair if len(self.reasons) == 1 and not _EATEN.search(self.text) else ""
            defects = ", ".join(each.defect for each in self.reasons)
            yield BrokenRule(self.first, defects, message, repair=repair)
        elif dropped is not None:
            if "EOF" in dropped.message:
                message = (
                    "the file's last line ends with a backslash: udev waits for more, and drops the rule"
                )
                yield BrokenRule(self.first, "backslash at the end of the file", message)
            elif _FLATTENED.search(_QUOTED.sub('""', self.text)):
                message = "a backslash in the middle of a line joins nothing: udev ignores the whole rule"
                yield BrokenRule(self.first, "flattened continuation", message)
            else:
                message = f'udev ignores this rule: "{dropped.message}"'
                yield BrokenRule(self.first, "rule ignored by udev", message)
        elif self.everywhere is not None:
            condition = " with the value it asks for" if _ASKED.search(self.text) else ""
            message = (
                f"this rule writes {self.everywhere} KiB to every device's bdi{condition}: nothing in it "
                "tests for NFS, and disks, FUSE and Lustre get the value as well"
            )
            yield BrokenRule(self.first, "unconditional bdi write", message)
        elif _EATEN.search(self.text):
            message = (
                "the shell that wrote this file replaced $kernel or $4 with nothing: the program fails at "
                "every device"
            )
            yield BrokenRule(self.first, "variables eaten by a shell", message)
        elif any("invalid substitution" in defect.message for defect in self.defects):
            field = _FIELD.search(self.text)
            sign = field[0] if field else "$"
            shown = sign if field else "a single $"
            message = (
                f"{shown} is no substitution of udev: udev complains whenever it reads the rule, and "
                "passes it on unchanged for now: a dollar sign for the program is written $$"
            )
            yield BrokenRule(self.first, f"{sign} for ${sign}" if field else shown, message, sign=sign)


def is_about_read_ahead(text: str) -> bool:
    """Whether a rules file is about bdis or read-aheads."""
    return _ABOUT.search(text) is not None


def find_broken(
    text: str,
    everywhere: Mapping[int, str],
    late: frozenset[int] | None = frozenset(),
    absent: Container[str] = (),
) -> Iterator[BrokenRule]:
    """Yield the broken rules of a file; `everywhere` has its rules' values for every bdi, by line.

    `late` has the lines that act only at other events than a new mount's. It is None where another rule of
    the host acts at a new mount's event, so that the rules for other events are right.
    """
    meant: list[_Piece] = []
    pieces = [piece._replace(absent=absent) for piece in _pieces(text, everywhere)]
    for piece in _explained(pieces, late):
        if meant and not meant[-1].continues_in(piece):
            yield from _judge(meant)
            meant = []
        meant.append(piece)
    yield from _judge(meant)


def _pieces(text: str, everywhere: Mapping[int, str]) -> Iterator[_Piece]:
    parsed = parse_udev_rules(text)
    asking = {
        rule.line
        for rule in parsed.rules
        if rule.goto is None and rule.label is None and all(token.is_match for token in rule.tokens)
    }
    reported: dict[tuple[int, int], list[UdevDefect]] = {}
    for defect in parsed.defects:
        reported.setdefault((defect.line, defect.last), []).append(defect)
    lines = physical_lines(text)
    for item in join_lines(text):
        first, last = (item.first, item.last) if isinstance(item, JoinedLine) else (item.line, item.last)
        source = item.text if isinstance(item, JoinedLine) else "".join(lines[first - 1 : last])
        defects = tuple(reported.get((first, last), ()))
        useless = any(defect.dropped and defect.message.startswith(_NO_EFFECT) for defect in defects)
        tokens: tuple[UdevToken, ...] = ()
        if useless or not any(defect.dropped for defect in defects):
            checked = (check_token(written)[0] for written in split_tokens(source))
            tokens = tuple(token for token in checked if token is not None)
        yield _Piece(first, last, source, defects, useless or first in asking, everywhere.get(first), tokens)


def _explained(pieces: list[_Piece], late: frozenset[int] | None) -> Iterator[_Piece]:
    """Yield the pieces, with the reasons why a rule that was meant for NFS never acts.

    Each rule is read as its author meant it, to see whether a new NFS mount would reach it: mistakes in rules
    for disks are not reported.
    """
    reasons = {piece.first: tuple(piece.find_reasons(late)) for piece in pieces}
    if not any(reasons.values()):
        yield from pieces
        return
    rules = [piece.as_meant(asked=bool(reasons[piece.first])) for piece in pieces if piece.tokens]
    for_nfs = {rule.line for rule, *_ in reached(Device(NFS_ADDED), tuple(rules))}
    yield from (
        piece._replace(reasons=reasons[piece.first]) if piece.first in for_nfs else piece for piece in pieces
    )


def _is_value(token: UdevToken) -> bool:
    """Whether a token is about a device's read-ahead, under the name that its author gave it."""
    name = (token.attribute or "").lower()
    return token.key == "ATTR" and "ahead" in name and ".." not in name and not name.startswith("[")


def _is_on_bdi(token: UdevToken) -> bool:
    """Whether a bdi may have the attribute."""
    parts = [part for part in (token.attribute or "").split("/") if part not in {"", "."}]
    return parts == [ATTRIBUTE] or not (len(parts) == 1 or parts[0] in _DISK_FOLDERS)


def _meant_kb(meant: list[_Piece]) -> int | None:
    """Return the KiB that a rule was meant to write, "15M" as 15360; None where its text has no value."""
    values = [token.value for piece in meant for token in piece.tokens if _is_value(token)]
    amount = _AMOUNT.fullmatch(values[-1]) if values else None
    if amount is None:
        written = _WRITTEN.findall(" ".join(piece.text for piece in meant))
        return decimal(written[-1]) if written else None
    return int(amount[1]) * (1024 if amount[2] in {"m", "M"} else 1)


def _judge(meant: list[_Piece]) -> Iterator[BrokenRule]:
    if not any(is_about_read_ahead(piece.text) for piece in meant):
        return
    last = meant[-1].last
    if len(meant) == 1:
        silent = meant[0].dropped is not None or bool(meant[0].reasons)
        kb = _meant_kb(meant) if silent else None
        yield from (rule._replace(last=last, kb=kb) for rule in meant[0].judge())
    elif any(piece.dropped or piece.asks_only or piece.everywhere is not None for piece in meant):
        yield _fallen_apart(meant)


def _fallen_apart(meant: list[_Piece]) -> BrokenRule:
    spaced = next((piece for piece in meant[:-1] if piece.text.rstrip().endswith("\\")), None)
    if spaced is not None:
        defect, why = "space after the backslash", f"a space after the backslash ends line {spaced.last}"
    else:
        defect, why = "missing backslash", f"line {meant[0].last} ends without a backslash"
    rest = next((piece for piece in meant if piece.everywhere is not None), None)
    writes = any(ATTRIBUTE in piece.text and not piece.dropped for piece in meant)
    effect = "none of them writes a read-ahead"
    if rest is not None:
        effect = f"the rest in line {rest.first} writes {rest.everywhere} KiB to every bdi, disks too"
    elif writes:
        effect = "the rest is tested at the events of other devices, too"
    message = f"{why}, so udev reads the parts of this rule as separate rules: {effect}"
    kb = None if writes else _meant_kb(meant)
    return BrokenRule(meant[0].first, defect, message, last=meant[-1].last, kb=kb)
