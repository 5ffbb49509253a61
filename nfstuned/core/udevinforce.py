"""Which udev rules of a host have the last word about the read-ahead of its NFS superblocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from nfstuned.core.udevdevice import ATTRIBUTE
from nfstuned.core.udevmask import is_default, set_by_administrator
from nfstuned.core.udevwriters import NFS_ADDED, NFSRAHEAD, find_writers
from nfstuned.model.facts import Facts
from nfstuned.model.udev import NFS_RULES, RuleWriter, UdevEvent, UdevFile, UdevRule, UdevToken
from nfstuned.parse.udevrules import parse_udev_rules

_ROWS = "/nfsfs/volumes"
"""The kernel's list of NFS superblocks: a program that reads it is taken for one that finds them."""
_STATIC = {"ACTION", "SUBSYSTEM", "KERNEL", "DEVPATH"}
_BEHIND = re.compile(r"\b(?:ENV|TAGS?|RUN|RESULT|IMPORT)\b")
_SAID = re.compile(r"%c|\$result")


def rule_writers(facts: Facts, event: UdevEvent = NFS_ADDED) -> tuple[RuleWriter, ...]:
    """Return the rules that may write the read-ahead of a new superblock, the last one last."""
    return file_writers(_counting(facts), event)


def _counting(facts: Facts) -> tuple[UdevFile, ...]:
    """Return the rules files that count once the service runs, where it starts at boot and does not run yet.

    Where it runs, the files are what they are: a mask is among them, or could not be made.
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


def _that_matter(files: Iterable[UdevFile]) -> tuple[tuple[str, str], ...]:
    """Return paths and texts of the files that decide it: to read all of a host's rules takes its time.

    The others matter where a rule looks at what earlier ones left behind, or runs commands in the end.
    """
    everything = tuple((file.path, file.text) for file in files if file.text)
    about = tuple((path, text) for path, text in everything if ATTRIBUTE in text)
    return everything if any(_looks_back(text) for _, text in about) else about


def _looks_back(text: str) -> bool:
    return bool(_BEHIND.search(text)) or ("PROGRAM" not in text and bool(_SAID.search(text)))


def in_force(facts: Facts) -> tuple[RuleWriter, ...]:
    """Return those of them that no later rule overrules for every NFS superblock."""
    return last_words(facts.udev, rule_writers(facts))


def last_words(files: Iterable[UdevFile], writers: Sequence[RuleWriter]) -> tuple[RuleWriter, ...]:
    """Return the writers from the last on that writes for every NFS superblock."""
    known = tuple(files)
    last = max((at for at, writer in enumerate(writers) if reaches_all(known, writer)), default=0)
    return tuple(writers[last:])


def file_writers(files: Iterable[UdevFile], event: UdevEvent = NFS_ADDED) -> tuple[RuleWriter, ...]:
    """Return the rules of files that may write the read-ahead of a new superblock, the last one last."""
    return find_writers(_that_matter(files), event)


def reaches_all(files: Iterable[UdevFile], writer: RuleWriter) -> bool:
    """Whether a rule writes for every NFS superblock of the host's own namespaces.

    So does one that asks the kernel's list of them, and nfs-utils' own. Whether another program's answer, or
    a jump on one, lets a rule through is not known.
    """
    known = tuple(files)
    programs = [token for token in _asked(known, writer) if token.key == "PROGRAM"]
    asks = is_nfsrahead(writer) or (bool(programs) and all(_finds_nfs(token) for token in programs))
    return unsure(known, writer) <= ({"PROGRAM", "RESULT"} if asks else set())


def _finds_nfs(program: UdevToken) -> bool:
    return _ROWS in program.value and program.operator == "=="


def unsure(files: Iterable[UdevFile], writer: RuleWriter) -> set[str]:
    """Return the keys of a rule that only the host can answer; GOTO where a jump may pass over it."""
    if writer.certain:
        return set()
    keys = {token.key for token in _asked(files, writer)}
    return keys - _STATIC | ({"GOTO"} if writer.passed else set())


def _asked(files: Iterable[UdevFile], writer: RuleWriter) -> list[UdevToken]:
    """Return the matches of the rule that writes."""
    text = next(file.text for file in files if file.path == writer.file)
    rule = next(rule for rule in _rules_of(text) if rule.line == writer.line)
    return [token for token in rule.tokens if token.is_match]


@lru_cache(maxsize=8)
def _rules_of(text: str) -> tuple[UdevRule, ...]:
    return parse_udev_rules(text).rules


def is_nfsrahead(writer: RuleWriter) -> bool:
    """Whether nfs-utils' program decides the value."""
    return (writer.program or "").split(" ")[0].endswith("/" + NFSRAHEAD)
