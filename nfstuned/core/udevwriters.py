"""Which udev rules write the read-ahead of an NFS superblock, in the order in which udev applies them.

Read from the rules alone: what a program says, what a file holds and what the host is stay unknown. A rule
that hangs on such may write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from nfstuned.core.udevdevice import ATTRIBUTE, Device
from nfstuned.model.udev import RuleWriter, UdevEvent, UdevRule
from nfstuned.parse.udevrules import parse_udev_rules

NFS_ADDED = UdevEvent()
NFSRAHEAD = "nfsrahead"
_ECHO = re.compile(r"""\becho\s+(?:-n\s+)?["']?([0-9]+)\b""")


@lru_cache(maxsize=2)
def find_writers(files: tuple[tuple[str, str], ...], event: UdevEvent = NFS_ADDED) -> tuple[RuleWriter, ...]:
    """Return the rules that write read_ahead_kb at an event, the last writer last.

    `files` are paths and texts in udev's order, without what is masked. Commands of RUN come after all rules.
    The last two results are kept: a contest asks again and again about the same files, at two events.
    """
    device = Device(event)
    written: list[RuleWriter] = []
    for file, text in files:
        for rule, certain, passed in _reached(device, parse_udev_rules(text).rules):
            found = RuleWriter(file, rule.line, "", None, certain=certain, passed=passed)
            written.extend(_writes(device, rule, found))
    return (*written, *device.runs)


def find_culprit(writers: tuple[RuleWriter, ...], kb: int, page_kb: int) -> RuleWriter | None:
    """Return the last of the rules that may be why `kb` stands there; None where none of them writes it."""
    return next((writer for writer in reversed(writers) if writer.may_write(kb, page_kb)), None)


def describe(writer: RuleWriter) -> str:
    """Return where a person changes what a rule writes."""
    program = (writer.program or "").split(" ")[0].rpartition("/")[2]
    return f"{writer.file}, set by [nfsrahead] of /etc/nfs.conf" if program == NFSRAHEAD else writer.file


def _reached(device: Device, rules: tuple[UdevRule, ...]) -> Iterator[tuple[UdevRule, bool, bool]]:
    """Yield the rules that may apply, whether they do, and whether a jump may pass over them.

    After udev_rules_apply_to_event() and its jumps.

    A jump that may be taken leaves two ways to what lies before its label, where the ways meet again.
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


def _writes(device: Device, rule: UdevRule, found: RuleWriter) -> Iterator[RuleWriter]:
    """Yield what a rule writes itself, and note what it leaves behind for later ones."""
    for token in rule.tokens:
        command = token.value if token.key in {"PROGRAM", "IMPORT"} else ""
        if _writes_itself(command):
            yield _command_writer(found, command)
        if token.is_match:
            continue
        if token.key == "RUN":
            writer = _command_writer(found, token.value) if _writes_itself(token.value) else None
            device.run(token, writer, certain=found.certain)
            continue
        if token.key == "ATTR" and device.is_attribute(token.attribute or ""):
            yield replace(found, value=token.value, program=device.program_of(token))
        device.assign(token, certain=found.certain)


def _command_writer(found: RuleWriter, command: str) -> RuleWriter:
    value = _ECHO.search(command)
    return replace(found, value=value[1] if value else "", program=command, certain=False)


def _writes_itself(command: str) -> bool:
    """Whether a command seems to write the attribute, as `sh -c 'echo 1024 > …/read_ahead_kb'` does."""
    return ATTRIBUTE in command and (">" in command or "tee " in command)
