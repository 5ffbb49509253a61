"""The udev rules that write the read-ahead of an NFS superblock, and the masks of the distributions' rules.

They are read from the rules alone: the output of programs, the content of files and the host stay unknown. A
rule that depends on them may write. While nfstuned.service runs, a file of the same name in
/run/udev/rules.d, without any rule, hides each distribution's rule for all NFS mounts (udev(7)).
Administrators' own settings stay in force.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from nfstuned.core.udev.device import ATTRIBUTE, Device, is_refused_value, redirects_nothing, start_mistake
from nfstuned.model.mounts import NFSRAHEAD, Setting
from nfstuned.model.udev import MASKED_NAMES, NFS_RULES, RuleWriter, UdevEvent, UdevFile, UdevRule, UdevToken
from nfstuned.parse.udev_rules import parse_udev_rules

if TYPE_CHECKING:
    from nfstuned.model.facts import Facts


_PACKAGED = ("/usr/lib/udev/rules.d/", "/lib/udev/rules.d/")
_VENDORS = "/usr/"
_ADDED = (UdevToken("ACTION", None, "==", "add"), UdevToken("SUBSYSTEM", None, "==", "bdi"))


class Mask(NamedTuple):
    """The name of a rules file, and why it is left in force; "" where it is masked."""

    name: str
    left: str = ""


def choose_masks(files: Iterable[UdevFile], settings: Iterable[Setting]) -> tuple[Mask, ...]:
    """Return the mask of each name, given the files that count without nfstuned's masks.

    nfs-utils may be installed later than nfstuned: its name is masked even where there is no such file.
    """
    by_name = {file.path.rpartition("/")[2]: file for file in files}
    setting = set_by_administrator(settings)
    masks: list[Mask] = []
    for name in MASKED_NAMES:
        file = by_name.get(name)
        if file is None and (name != NFS_RULES or setting is not None):
            continue
        if name == NFS_RULES and setting is not None:
            left = f"{setting.file}:{setting.line} sets {setting.name}={setting.value} below [nfsrahead]"
        else:
            left = "" if file is None or is_default(file) else f"{file.path} is not the distribution's own"
        masks.append(Mask(name, left))
    return tuple(masks)


def set_by_administrator(settings: Iterable[Setting]) -> Setting | None:
    """Return the last line below [nfsrahead] that is not a vendor's, or None."""
    lines = [
        setting
        for setting in settings
        if setting.section == NFSRAHEAD and not setting.file.startswith(_VENDORS)
    ]
    return lines[-1] if lines else None


def is_default(file: UdevFile) -> bool:
    """Whether a file is a distribution's, with its one known rule and nothing else."""
    return file.path.startswith(_PACKAGED) and is_copy(file)


def is_copy(file: UdevFile) -> bool:
    """Whether a file in any folder has only the rule of the distribution's file of its name.

    An administrator's copy keeps the rule in force where the service would mask it.
    """
    name = file.path.rpartition("/")[2]
    if name not in MASKED_NAMES:
        return False
    parsed = parse_udev_rules(file.text)
    if len(parsed.rules) != 1 or parsed.defects:
        return False
    rule = parsed.rules[0]
    programs = [token.value for token in rule.tokens if token.key == "PROGRAM"]
    if name == NFS_RULES:
        value, asks = "%c", any(program.split(" ")[0].endswith("/nfsrahead") for program in programs)
    else:  # amazon-ec2-utils
        value, asks = "15360", any(program.endswith(" /proc/fs/nfsfs/volumes") for program in programs)
    # Such a rule only writes the value to bdis that are added, if its program lets it.
    known = {*_ADDED, UdevToken("ATTR", "read_ahead_kb", "=", value)}
    others = [token for token in rule.tokens if token not in known]
    plain = rule.goto is None and rule.label is None and known <= set(rule.tokens)
    return asks and plain and all(token.is_match and token.key in {"KERNEL", "PROGRAM"} for token in others)


NFS_ADDED = UdevEvent()
_PATH = r"(?:/[\w./+-]*/)?"
_PIECE = r"[^;&|()<>`\n]*"
"""A part of one command of a shell."""
_TO = rf"(?:>>?|\|\s*{_PATH}tee\b){_PIECE}"
_TARGET = rf"(?:>|\btee\b){_PIECE}(?:{ATTRIBUTE}|\$)"
"""A redirection or tee to the attribute, or to a variable."""
_ECHO = re.compile(rf"""\becho\s+(?:-n\s+)?["']?([0-9]+)["']?\s*{_TO}(?:{ATTRIBUTE}|\$\w+["']?\s*;)""")
"""A command that writes a number to the attribute, or in a loop to a variable."""
_ALWAYS = re.compile(
    rf"""{_PATH}(?:ba|da|k)?sh\s+-\w*c\s+["']?\s*"""
    rf"(?:{_PATH}(?:echo|sleep|true)\b[^;&|\n]*(?:;|&&)\s*)*{_PIECE}{_TO}{ATTRIBUTE}"
)
"""A shell's command that writes the attribute of every device: before that it prints or waits at most."""


_WRITTEN = re.compile(
    rf"""(?m)^(?!.*\bqueue/)[^#\n]*\b(?:echo|printf)\s+(?:-n\s+)?["']?([0-9]+)["']?\s*{_TO}\$\S*{ATTRIBUTE}"""
)
"""A line that writes a number to the attribute of a variable's device, and not of a disk's queue."""
_ASKS_FOR_TYPE = re.compile(r"(?i)nfs|mount|mtab|fs_?type|connections|\bstat\b|/dev/fuse")
"""The words of a script that looks at file systems, by the kernel's lists or a program."""


@lru_cache(maxsize=4)
def find_writers(files: tuple[tuple[str, str], ...], event: UdevEvent = NFS_ADDED) -> tuple[RuleWriter, ...]:
    """Return the rules that write read_ahead_kb at an event, the last writer last.

    `files` are paths and texts in udev's order, without masked files. Commands of RUN come after all rules.
    The last four results are cached: the service looks for a value's writer in the same files, at two events.
    """
    device = Device(event)
    written: list[RuleWriter] = []
    for file, text in files:
        for rule, certain, passed in reached(device, parse_udev_rules(text).rules):
            writer = RuleWriter(file, rule.line, "", None, certain=certain, passed=passed)
            written.extend(_writes(device, rule, writer))
    return (*written, *device.runs)


def find_culprit(writers: tuple[RuleWriter, ...], kb: int, page_kb: int) -> RuleWriter | None:
    """Return the last rule that may have written `kb`; None where no rule writes it."""
    return next((writer for writer in reversed(writers) if writer.may_write(kb, page_kb)), None)


def describe(writer: RuleWriter) -> str:
    """Return a writer's rules file for people; with nfsrahead, also the section that has its value."""
    program = (writer.program or "").split(" ")[0].rpartition("/")[2]
    return f"{writer.file}, set by [nfsrahead] of /etc/nfs.conf" if program == NFSRAHEAD else writer.file


def reached(device: Device, rules: tuple[UdevRule, ...]) -> Iterator[tuple[UdevRule, bool, bool]]:
    """Yield the rules that may apply, whether they do, and whether a jump may pass over them.

    After udev_rules_apply_to_event() and its jumps. A jump that may be taken leaves two ways up to its label.
    """
    jumped: set[str] = set()
    falls = True
    for rule in rules:
        if rule.label in jumped:
            jumped.discard(rule.label)
            falls = True
        if not falls:
            continue
        applies = device.judge(rule)
        if applies is False:
            continue
        yield rule, applies is True and not jumped, bool(jumped)
        if rule.goto is not None:
            falls = not applies
            jumped.add(rule.goto)


def _writes(device: Device, rule: UdevRule, base: RuleWriter) -> Iterator[RuleWriter]:
    """Yield a rule's own writes, and note its effect on later rules."""
    for token in rule.tokens:
        writer = None
        if token.key in {"PROGRAM", "IMPORT", "RUN"} and _writes_itself(token.value):
            value = _ECHO.search(token.value)
            number = value[1] if value else ""
            writer = base._replace(value=number, program=token.value, certain=False)
        if writer is not None and token.key != "RUN":
            yield writer
        if token.is_match:
            continue
        if token.key == "RUN":
            device.run(token, writer, certain=base.certain)
            continue
        if token.key == "ATTR" and device.is_attribute(token.attribute or ""):
            if is_refused_value(token.value):
                continue
            yield base._replace(value=token.value, program=device.program_of(token))
        device.assign(token, certain=base.certain)


def _writes_itself(command: str) -> bool:
    """Whether a command seems to write the attribute, as `sh -c 'echo 1024 > …/read_ahead_kb'` does."""
    return aims_at_attribute(command) and not (start_mistake(command) or redirects_nothing(command))


def aims_at_attribute(command: str) -> bool:
    """Whether a command was meant to write the attribute, or to a variable where it names the attribute."""
    return ATTRIBUTE in command and re.search(_TARGET, command) is not None


_ROWS = "/nfsfs/volumes"
"""The kernel's list of NFS superblocks: a program that reads it is assumed to find them."""
_STARTS = {("PROGRAM", None), ("RUN", None), ("RUN", "program"), ("IMPORT", "program")}
"""The keys that run a program, with their attribute."""
_STATIC = {"ACTION", "SUBSYSTEM", "KERNEL", "DEVPATH"}
_BDIS = re.compile(r"\bbdi\b")
_BEHIND = re.compile(r"\b(?:ENV|TAGS?|RUN|RESULT|IMPORT)\b")
_RESULT = re.compile(r"%c|\$result")


def rule_writers(facts: Facts, event: UdevEvent = NFS_ADDED) -> tuple[RuleWriter, ...]:
    """Return the rules that may write the read-ahead of a new superblock, in their order."""
    return file_writers(_counting(facts), event)


def _counting(facts: Facts) -> tuple[UdevFile, ...]:
    """Return the rules files that count once the service runs, where it starts at boot and does not run yet.

    Where it runs, its masks are among the files, or could not be made.
    """
    daemon = facts.system.daemon
    if not (daemon.masks_rules and daemon.enabled and not daemon.active):
        return facts.udev
    administrators = set_by_administrator(facts.writers)
    return tuple(
        file
        for file in facts.udev
        if not is_default(file) or (file.path.endswith("/" + NFS_RULES) and administrators is not None)
    )


def in_force(facts: Facts) -> tuple[RuleWriter, ...]:
    """Return the rule writers that no later rule overrules for every NFS superblock."""
    return final_writers(facts.udev, rule_writers(facts))


def final_writers(files: Iterable[UdevFile], writers: Sequence[RuleWriter]) -> tuple[RuleWriter, ...]:
    """Return the writers from the last on that writes for every NFS superblock."""
    known = tuple(files)
    last = max((at for at, writer in enumerate(writers) if reaches_all(known, writer)), default=0)
    return tuple(writers[last:])


def file_writers(files: Iterable[UdevFile], event: UdevEvent = NFS_ADDED) -> tuple[RuleWriter, ...]:
    """Return the rules of files that may write the read-ahead of a new superblock, in their order."""
    everything = tuple((file.path, file.text) for file in files if file.text)
    about = tuple((path, text) for path, text in everything if ATTRIBUTE in text)
    # Reading all rules of a host takes its time. Files that are not about a read-ahead matter where a rule
    # about it looks at results of earlier rules, or runs commands in the end.
    looks_back = any(
        _BEHIND.search(text) or ("PROGRAM" not in text and _RESULT.search(text)) for _, text in about
    )
    return find_writers(everything if looks_back else about, event)


class StartedScript(NamedTuple):
    """A script that writes the read-ahead, and the rule that starts it for every bdi."""

    file: str
    line: int
    script: str
    values: tuple[str, ...]


def started_scripts(files: Iterable[UdevFile]) -> Iterator[StartedScript]:
    """Yield the scripts that rules start for every new bdi, and that seem not to ask for its file system.

    Whether a script's own conditions hold is not known: its values are those that may be written.
    """
    for file in files:
        if not file.scripts:
            continue
        rules = parse_udev_rules(file.text).rules
        disks = {rule.line for rule, sure, _ in reached(Device(UdevEvent(kernel="8:0")), rules) if sure}
        for rule, certain, _ in reached(Device(NFS_ADDED), rules):
            if not certain or rule.line not in disks:
                continue
            commands = [token.value for token in rule.tokens if token.key == "RUN"]
            for script, text in file.scripts:
                values = () if _ASKS_FOR_TYPE.search(text) else _WRITTEN.findall(text)
                if values and any(script in re.split(r"[\s']+", command) for command in commands):
                    yield StartedScript(file.path, rule.line, script, tuple(dict.fromkeys(values)))


def runs_unknown(files: Iterable[UdevFile]) -> bool:
    """Whether a file about bdis runs a program for a new superblock, with an unknown effect."""
    about = (file.text for file in files if _BDIS.search(file.text))
    return any(
        _is_unknown(token)
        for text in about
        for rule, *_ in reached(Device(NFS_ADDED), parse_udev_rules(text).rules)
        for token in rule.tokens
    )


def _is_unknown(token: UdevToken) -> bool:
    """Whether a token runs a program, or has systemd start a unit (systemd.device(5))."""
    if token.key == "ENV":
        return token.attribute == "SYSTEMD_WANTS" and not token.is_match
    if (token.key, token.attribute) not in _STARTS:
        return False
    known = _ROWS in token.value or token.value.split(" ")[0].endswith("/" + NFSRAHEAD)
    return not known and start_mistake(token.value) is None


def reaches_all(files: Iterable[UdevFile], writer: RuleWriter) -> bool:
    """Whether a rule writes for every NFS superblock of the host's own namespaces.

    It does where its conditions are static, or a program reads the kernel's list of superblocks, and
    nfs-utils' rule does. Where another program's answer decides, or a jump on it, that is not known: False.
    """
    known = tuple(files)
    programs = [token for token in _asked(known, writer) if token.key == "PROGRAM"]
    asks = is_nfsrahead(writer) or (bool(programs) and all(finds_nfs(token) for token in programs))
    asked = {"PROGRAM", "RESULT"} if asks else set()
    return unsure(known, writer) <= asked | ({"RUN"} if _ROWS in (writer.program or "") else set())


def finds_nfs(program: UdevToken) -> bool:
    """Whether a program asks the kernel's list of NFS superblocks."""
    return _ROWS in program.value and program.operator == "=="


def unsure(files: Iterable[UdevFile], writer: RuleWriter) -> set[str]:
    """Return the keys of a rule that only the host can answer.

    GOTO stands for a jump that may pass over it, RUN for a command that asks something before it writes.
    """
    if writer.certain:
        return set()
    keys = {token.key for token in _asked(files, writer)} - _STATIC
    command = writer.program or ""
    asks = _writes_itself(command) and _ALWAYS.match(command) is None
    return keys | ({"GOTO"} if writer.passed else set()) | ({"RUN"} if asks else set())


def _asked(files: Iterable[UdevFile], writer: RuleWriter) -> list[UdevToken]:
    """Return the matches of the rule that writes."""
    text = next(file.text for file in files if file.path == writer.file)
    return [token for token in _rules_by_line(text)[writer.line].tokens if token.is_match]


@lru_cache(maxsize=8)
def _rules_by_line(text: str) -> dict[int, UdevRule]:
    """Return the rules of a file by their first lines."""
    return {rule.line: rule for rule in parse_udev_rules(text).rules}


def is_nfsrahead(writer: RuleWriter) -> bool:
    """Whether nfs-utils' program decides the value."""
    return (writer.program or "").split(" ")[0].endswith("/" + NFSRAHEAD)
