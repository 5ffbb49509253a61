"""A device in the view of rules during one of its events, and their matches (udev-rules.c of systemd).

Answers are True, False, or None where the rules alone do not decide. Compared with udevadm test of 252.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import chain

from nfstuned.model.udev import RuleWriter, UdevEvent, UdevRule, UdevToken
from nfstuned.parse.udev_keys import is_literal, uses_result

_SUBSYSTEMS = ("subsystem", "bus", "class")
"""Names of one thing: SUBSYSTEM=="bus" matches each."""
_PIECE = re.compile(r"\\(.)|\[([!^]?)(\]?(?:\[:\w+:\]|\\.|[^\]\\])*)\]|([*?])|(.)", re.DOTALL)
_PIECE_OUTSIDE = re.compile(r"\\(.)|(?!)([!^]?)()|([*?])|(.)", re.DOTALL)
_END = re.compile(r"\\.|(\])", re.DOTALL)
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
    """Whether a match holds for a text. An empty alternative, as in "|x", is the empty text."""
    if token.key in {"SUBSYSTEM", "SUBSYSTEMS"} and token.value in _SUBSYSTEMS:
        alike = text in _SUBSYSTEMS
    else:
        glob = any(sign in token.value for sign in "*?[")
        flags = re.IGNORECASE if token.ignore_case else 0
        patterns = (_glob(each) if glob else (len(each), re.escape(each)) for each in token.value.split("|"))
        # A pattern that needs a longer text is not compiled.
        alike = any(n <= len(text) and re.fullmatch(written, text, flags) for n, written in patterns)
    return alike is (token.operator == "==")


@lru_cache(maxsize=64)
def _glob(pattern: str) -> tuple[int, str]:
    """Return the least length of a match of a shell pattern, and the pattern as a regular expression.

    A bracket that does not end stands for itself. The part between two stars is searched once (as in Python's
    fnmatch.translate): many stars would otherwise take longer than anybody waits.
    """
    segments, least = [""], 0
    # Behind the last closing bracket, each opening bracket stands for itself.
    ends = [end.end() for end in _END.finditer(pattern) if end[1]]
    closed = ends[-1] if ends else 0
    for piece in chain(_PIECE.finditer(pattern, 0, closed), _PIECE_OUTSIDE.finditer(pattern, closed)):
        if piece[4] == "*":
            segments.append("")
        else:
            segments[-1] += _piece(piece)
            least += 1
    first, *middle = segments
    if not middle:
        return least, first
    last = middle.pop()
    found = (f"(?=(?P<s{n}>(?s:.)*?{part}))(?P=s{n})" for n, part in enumerate(filter(None, middle)))
    return least, f"{first}{''.join(found)}(?s:.)*{last}"


def _piece(piece: re.Match[str]) -> str:
    quoted, negated, inside, wild, plain = piece.groups()
    if wild:
        return "(?s:.)"
    if inside:
        members = "".join(_members(each) for each in _MEMBER.finditer(inside))
        nothing, anything = "(?!)", "(?s:.)"
        return f"[{'^' if negated else ''}{members}]" if members else (anything if negated else nothing)
    return re.escape(quoted or plain or piece[0])


def _members(each: re.Match[str]) -> str:
    """Return a member of brackets: a class, a character or a range; a range from z to a is empty."""
    if each[1]:
        return _CLASSES.get(each[1], "")
    first, last = each[2] or each[3], each[4] or each[5]
    if last is None:
        return re.escape(first)
    return f"{re.escape(first)}-{re.escape(last)}" if first <= last else ""


ATTRIBUTE = "read_ahead_kb"
_ATTRIBUTES = {"uevent", "power", "min_bytes", "max_bytes", "strict_limit", "stable_pages_required"} | {
    f"{limit}_ratio{fine}" for limit in ("min", "max") for fine in ("", "_fine")
}
"""Other attributes of bdis in some kernel; an attribute without a file matches neither == nor !=."""
_OWN = ("ACTION", "DEVPATH", "SUBSYSTEM")
_NUMBER = re.compile(r"\+?[0-9]{1,20}\n*")
_PLACEHOLDER = re.compile(r"[^\s'\"]*<[^<>]*>|/path/to/|/(?:path_to|absolute[_-]path)/|\$+(?:[({]|[A-Z])")
"""A place for a path, or a variable of a shell, which udev does not replace: its own are in small letters."""
_ELSEWHERE = {
    *("awk", "gawk", "mawk", "nawk", "sh", "bash", "dash", "ksh", "zsh", "busybox", "env", "test", "grep"),
    *("egrep", "sed", "cut", "tr", "head", "tail", "cat", "echo", "printf", "expr", "stat", "findmnt"),
    *("mountpoint", "logger", "sleep", "timeout", "sudo", "blockdev", "python", "python3", "perl"),
    "nfsrahead",
}
"""Programs that packages put into /usr/bin, /usr/sbin or /usr/libexec, never into /usr/lib/udev."""


def is_refused_value(value: str) -> bool:
    """Whether the kernel takes no such read_ahead_kb.

    It wants a decimal number (kstrtoul() in read_ahead_kb_store() of mm/backing-dev.c). udev removes newlines
    from the end of a value. The result of a substitution is not known.
    """
    return is_literal(value) and _NUMBER.fullmatch(value) is None


def start_mistake(command: str) -> str | None:
    """Return why udev cannot start a command, "a placeholder" or "no path"; None where it may.

    udev starts programs without a shell, and looks in /usr/lib/udev alone for one without a path
    (udev_event_spawn() of src/udev/udev-spawn.c).
    """
    if _PLACEHOLDER.match(command):
        return "a placeholder"
    return "no path" if command.split(" ", 1)[0] in _ELSEWHERE else None


def redirects_nothing(command: str) -> bool:
    """Whether a command's > is an argument of a program that only prints: no shell is there to read it."""
    program = command.split(" ", 1)[0].rpartition("/")[2]
    return program in {"echo", "printf"} and ">" in command


_KERNELS = {"SEQNUM", "SYNTH_UUID", "USEC_INITIALIZED", "TAGS", "CURRENT_TAGS"}
"""Properties with values that only the event itself knows."""


class Device:
    """The device, and the results of earlier rules: properties, tags, the last program's output."""

    def __init__(self, event: UdevEvent) -> None:
        self._event = event
        self._facts = {
            "ACTION": event.action,
            "DEVPATH": event.devpath,
            "KERNEL": event.kernel,
            "SUBSYSTEM": event.subsystem,
            "NAME": "",
            "DRIVER": "",
            # A virtual device has no parents: these keys match it alone.
            "KERNELS": event.kernel,
            "SUBSYSTEMS": event.subsystem,
            "DRIVERS": "",
        }
        self._properties: dict[str, str | None] = {
            **dict.fromkeys(_KERNELS),
            **{name: self._facts[name] for name in _OWN},
        }
        self._kb = event.read_ahead_kb
        self._imported = False
        self._tagged = False
        self._program: str | None = None
        self._runs: dict[str, RuleWriter] = {}
        self._runs_are_final = False
        self._judges: Mapping[str, Callable[[UdevToken], bool | None]] = {
            **dict.fromkeys(("SYMLINK", "TAG", "TAGS"), self._has),
            **dict.fromkeys(("ATTR", "ATTRS"), self._attribute),
            "ENV": self._property,
            "TEST": self._test,
            "PROGRAM": self._run_program,
            "RESULT": self._result,
            "IMPORT": self._import,
        }

    @property
    def runs(self) -> tuple[RuleWriter, ...]:
        """The writers among the commands that run after all rules."""
        return tuple(self._runs.values())

    def judge(self, rule: UdevRule) -> bool | None:
        """Return whether all matches of a rule hold; its programs have run then."""
        answer: bool | None = True
        for token in rule.tokens:
            if not token.is_match:
                break
            held = self._holds(token)
            if held is False:
                return False
            if held is None:
                answer = None
        return answer

    def is_attribute(self, name: str) -> bool:
        """Whether an ATTR of that name writes the device's read_ahead_kb."""
        if name.startswith("["):
            where, _, name = name[1:].partition("]")
            if where != f"{self._event.subsystem}/{self._event.kernel}":
                return False
        return [part for part in name.split("/") if part not in {"", "."}] == [ATTRIBUTE]

    def program_of(self, token: UdevToken) -> str | None:
        """Return the command with the output in a value; %c is the last program's, of any rule."""
        return self._program if uses_result(token.value) else None

    def assign(self, token: UdevToken, *, certain: bool) -> None:
        """Note the effect of an assignment on later rules."""
        if token.key == "TAG":
            self._tagged = True
        elif token.key == "ENV":
            known = certain and token.operator == "=" and is_literal(token.value)
            self._properties[token.attribute or ""] = token.value if known else None
        elif token.key == "ATTR" and self.is_attribute(token.attribute or ""):
            # The kernel takes whole pages of it, or refuses it.
            self._kb = None

    def run(self, token: UdevToken, writer: RuleWriter | None, *, certain: bool) -> None:
        """Add a command that runs in the end; = drops the earlier commands, := ends the list."""
        if self._runs_are_final:
            return
        if certain and token.operator != "+=":
            self._runs.clear()
        self._runs_are_final = certain and token.operator == ":="
        if writer is not None:
            self._runs[token.value] = writer

    def _holds(self, token: UdevToken) -> bool | None:
        if token.key in self._facts:
            return matches(token, self._facts[token.key])
        judge = self._judges.get(token.key)
        return judge(token) if judge else None

    def _has(self, token: UdevToken) -> bool | None:
        """Judge TAG and SYMLINK, which a bdi does not have: only devices with a node get links.

        udev inverts == for `?*`, so that a device without tags matches.
        """
        if self._tagged and token.key != "SYMLINK":
            return None
        return (token.operator == "!=") is not (token.value == "?*")

    def _test(self, token: UdevToken) -> bool | None:
        return token.operator == "==" if token.value == ATTRIBUTE and not token.attribute else None

    def _run_program(self, token: UdevToken) -> bool | None:
        self._program = None  # udev forgets the earlier program's output even where this program fails
        if start_mistake(token.value):
            return token.operator == "!="
        self._program = token.value
        return None

    def _result(self, token: UdevToken) -> bool | None:
        return matches(token, "") if self._program is None else None

    def _import(self, token: UdevToken) -> bool | None:
        if token.attribute == "parent":
            return token.operator == "!="
        if token.attribute in {"db", "cmdline"}:
            self._properties[token.value] = None
        else:
            self._imported = True
            self._properties = {name: self._properties[name] for name in (*_OWN, *_KERNELS)}
        return None

    def _property(self, token: UdevToken) -> bool | None:
        name = token.attribute or ""
        value = self._properties.get(name, None if self._imported else "")
        return None if value is None else matches(token, value)

    def _attribute(self, token: UdevToken) -> bool | None:
        name = token.attribute or ""
        if name == "subsystem":
            return matches(token, self._event.subsystem)
        if self._kb is not None and self.is_attribute(name):
            return matches(token, self._kb)
        elsewhere = name.startswith("[") or ".." in name or not is_literal(name)
        first = name.lstrip("./").partition("/")[0]
        known = first in _ATTRIBUTES or first in {ATTRIBUTE, "subsystem"}
        return None if elsewhere or known else False
