"""udev rules files: their order and masks, and their rules, read as systemd-udevd reads them.

Source: systemd, src/udev/udev-rules.c; udev(7).

The code follows systemd 258. The docstrings name the differences of systemd 252. The results
were compared with those of `udevadm test` of systemd 252.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nfstuned.model.kernel import Mount
from nfstuned.model.mounts import Setting
from nfstuned.model.udev import MASKED_NAMES, UdevDefect, UdevFile, UdevRule, UdevRules, UdevToken, is_mask
from nfstuned.parse.etc.requests import Intent
from nfstuned.parse.etc.settings import NFS_CONF, MountConf
from nfstuned.parse.proc.mounts import NFS, SMB, parse_mountinfo
from nfstuned.parse.tree import FileTree
from nfstuned.parse.udev_keys import check_token, is_builtin, split_tokens

SPACE = " \t\n\r"
LIMIT = 16384
"""UDEV_LINE_SIZE: a line of so many bytes or more, with its continuations, is too long."""
_ENDS = r"(?:\r\n|\n\r|\n|\r)\0?|\0"
"""The ends of a line for read_line_full() of src/basic/fileio.c, which udev reads with."""


class JoinedLine(NamedTuple):
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
"""Keys with matches that do something. A rule with only other matches has no effect, and udev drops it."""


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
    resolved: list[UdevRule] = []
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
            resolved.append(UdevRule(rule.line, rule.last, rule.tokens, rule.label, goto))
        if rule.label is not None:
            below.add(rule.label)
    return tuple(reversed(resolved)), defects[::-1]


FOLDERS = (
    "etc/udev/rules.d",
    "run/udev/rules.d",
    "usr/local/lib/udev/rules.d",
    "usr/lib/udev/rules.d",
    "lib/udev/rules.d",
)
"""The first folder's file of a name hides the others; /lib counts where it is not /usr/lib itself."""
_LIB, _USR_LIB = FOLDERS[-1], FOLDERS[-2]
_EMPTY = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO})
"""The errors of a link to nowhere, and of a file that is not regular."""


_PROGRAM = r"(/(?:usr/)?(?:s?bin|lib|libexec)/[^\s$%]+)"
"""A program in a folder of the distribution's."""
_STARTED = r"(?:/(?:usr/)?bin/(?:ba|da|k)?sh (?:-c ')?)?(/(?:usr|opt|etc|s?bin|lib)/[^\s'$%]+)"
"""A program, perhaps a script, or the script that a shell is given; Root leaves a network's folders out."""
_LARGEST_SCRIPT = 16_384


def rule_texts(root: FileTree) -> tuple[tuple[str, str], ...]:
    """Return the path and the text of each file, sorted by name whatever its folder.

    A file that masks others (an empty file, or a link to /dev/null) is left out, as is a file that udev
    cannot read.
    """
    texts = (("/" + paths[0], root.read_or_empty(paths[0])) for paths in rule_paths(root))
    return tuple((path, text) for path, text in texts if text)


def rule_paths(root: FileTree) -> list[list[str]]:
    """Return the paths of each name, sorted by name; the first path of a name counts."""
    files: dict[str, list[str]] = {}
    for folder in FOLDERS:
        for name in root.names(folder):
            if is_rules_file(name):
                files.setdefault(name, []).append(f"{folder}/{name}")
    return [files[name] for name in sorted(files, key=lambda name: name.encode("utf-8", "surrogateescape"))]


def read_ignored_files(root: FileTree) -> tuple[UdevFile, ...]:
    """Return the files in udev's folders that udev does not read, because of their names."""
    folders = FOLDERS[:-1] if root.same(_LIB, _USR_LIB) else FOLDERS
    paths = (
        f"{folder}/{name}" for folder in folders for name in root.names(folder) if not is_rules_file(name)
    )
    return tuple(UdevFile("/" + path, text) for path in paths if (text := root.read_or_empty(path)))


def is_rules_file(name: str) -> bool:
    """Whether udev reads a file of this name."""
    return name.endswith(".rules") and not name.startswith(".")


def read_rule_files(root: FileTree) -> tuple[UdevFile, ...]:
    """Return the files in udev's order; a file without a text hides others, or was not read."""
    merged, programs = root.same(_LIB, _USR_LIB), root.names("usr/bin")
    files: list[UdevFile] = []
    for paths in rule_paths(root):
        apart = [path for path in paths if not (merged and path.startswith(_LIB))] or paths
        text, unread = "", False
        try:
            text = root.read(apart[0])
        except OSError as error:
            unread = error.errno not in _EMPTY
        hides = tuple("/" + path for path in apart[1:])
        if text or hides or unread:
            others = not apart[0].startswith(FOLDERS[3:])
            rules = parse_udev_rules(text).rules if others and re.search("ahead|bdi", text) else ()
            own = _programs(rules, _PROGRAM, {"PROGRAM", "RUN"}) if "ahead" in text else ()
            absent = tuple(name for name in own if not root.executable(name[1:]))
            started = _programs(rules, _STARTED, {"RUN"}) if "bdi" in text else ()
            scripts = tuple((path, script) for path in started if (script := _read_script(root, path[1:])))
            files.append(UdevFile("/" + apart[0], text, hides, unread, absent if programs else (), scripts))
    return tuple(files)


def _programs(rules: Iterable[UdevRule], pattern: str, keys: set[str]) -> tuple[str, ...]:
    """Return the paths at the beginnings of the commands of rules, each once."""
    tokens = (token for rule in rules for token in rule.tokens if token.key in keys)
    matches = (re.match(pattern, token.value) for token in tokens)
    return tuple(dict.fromkeys(match[1] for match in matches if match))


def _read_script(root: FileTree, name: str) -> str:
    """Return a script's text; "" for another program, a large script, and a file that is not read."""
    try:
        start = root.read_start(name, _LARGEST_SCRIPT)
    except OSError:
        return ""
    short = start.startswith(b"#!") and len(start) < _LARGEST_SCRIPT
    return start.decode("utf-8", "surrogateescape") if short else ""


class MaskGrounds(NamedTuple):
    """The rules files, and administrators' settings in nfs.conf."""

    files: tuple[UdevFile, ...]
    """Of each name the file that would count without nfstuned's mask."""
    settings: tuple[Setting, ...]
    """nfs.conf's and its drop-ins'."""


def read_mask_grounds(root: FileTree) -> MaskGrounds:
    """Return the grounds to choose masks by. Raises OSError: an unread file is not taken for absent.

    Nothing below a network mount is read: a dead server must not hold up the service's start.
    """
    with root.faults.block() as faults:
        files = tuple(file for name in MASKED_NAMES if (file := _unmasked_file(root, name)))
        table = root.read(f"{root.view}/mountinfo")
        mounts = (*parse_mountinfo(table, family=NFS), *parse_mountinfo(table, family=SMB))
        collected = Intent()
        points = [mount.point for mount in mounts if isinstance(mount, Mount)]
        MountConf(root, points, collected, NFS_CONF).read()
        unread = [*collected.faults, *(f"{fault.file}: {fault.message}" for fault in faults.values())]
    if unread:
        raise OSError(errno.EIO, "; ".join(dict.fromkeys(unread)))
    return MaskGrounds(files, tuple(collected.settings))


def _unmasked_file(root: FileTree, name: str) -> UdevFile | None:
    """Return the file of this name that would count without nfstuned's mask. Raises OSError."""
    for path in (f"{folder}/{name}" for folder in FOLDERS):
        if not root.demand_existence(path):
            continue
        try:
            text = root.read(path)
        except OSError as error:
            if error.errno not in _EMPTY - {errno.ENOTDIR}:
                raise
            return UdevFile(f"/{path}", "")
        if not is_mask(text):
            return UdevFile(f"/{path}", text)
    return None
