"""Which sections nfstuned's own drop-in of nfsmount.conf should have, and which not.

As in an fstab, all mounts of one server get one number, or none is changed (core.fstabplan). A section only
fills in what nobody says: where a mount or the administrator's own nfsmount.conf says another number, there
is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nfstuned.core.persistlimits import limited
from nfstuned.core.persistmembers import Uses
from nfstuned.core.persistverdicts import Fate, Verdict, verdicts
from nfstuned.model.change import SectionChange
from nfstuned.model.facts import Network
from nfstuned.model.system import NfsUtils
from nfstuned.model.work import Result

_UNUSED = "nothing here uses it"


@dataclass(frozen=True, slots=True)
class Held:
    """What nfstuned's file has now."""

    sections: Mapping[str, int]
    prune: bool = False
    """Sections of servers that nothing uses go."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with the file; empty where it is as it should be and nothing was refused."""

    changes: tuple[SectionChange, ...]
    unused: tuple[str, ...]
    """The servers whose sections stay though nothing here uses them."""

    def sections(self, held: Held) -> dict[str, int]:
        """Return what the file has after the planned changes."""
        planned = {one.server: one.new for one in self.changes if one.result is Result.PLANNED}
        after = {**held.sections, **planned}
        return {name: number for name, number in after.items() if number is not None}


def plan_persist(found: Uses, network: Network, utils: NfsUtils | None, held: Held) -> Plan:
    """Return what is to be changed in nfstuned's file, and what is not, each with its reason.

    `network` has the answers about the names that are unsettled; `utils` is the installed mount.nfs.
    """
    facts = replace(found.facts, network=network)
    known = verdicts(found, facts)
    names = {one.name for one in known}
    unused = [name for name in held.sections if name not in names]
    kept = [name for name in held.sections if not (held.prune and name in unused)]
    settled = limited(known, kept, utils, facts.snapshot.settings)
    pruned = (Verdict(name, None, Fate.DROP, _UNUSED) for name in unused if held.prune)
    changes = _changes((*settled, *pruned), held.sections)
    gone = {one.server for one in changes if one.result is Result.PLANNED and one.new is None}
    return Plan(changes, tuple(name for name in unused if name not in gone))


def _changes(settled: Sequence[Verdict], held: Mapping[str, int]) -> tuple[SectionChange, ...]:
    found = (_change(one, held.get(one.name)) for one in settled)
    return tuple(sorted((one for one in found if one is not None), key=lambda one: one.server))


def _change(one: Verdict, old: int | None) -> SectionChange | None:
    """Return what becomes of a section; None where nothing does, and nothing has to be said."""
    if one.fate is Fate.DROP and old is not None:
        return SectionChange(one.name, old, None, Result.PLANNED, one.reason)
    if one.number is None or old == one.number:
        return None
    result = Result.PLANNED if one.fate is Fate.WRITE else one.result
    return SectionChange(one.name, old, one.number, result, one.reason)
