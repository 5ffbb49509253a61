"""Which sections nfstuned's own drop-in of nfsmount.conf should have, which not, and why.

From 2.5.3 to 2.8.2 nfs-utils keeps one assignment of a name for all [ Server ] sections of all files, the
last one: a second section takes the number of the first away.

As in an fstab (core/nconnect/fstab.py), all mounts of one server get one number, or none is changed. A
section only fills in what nobody says: where a mount or the administrator's own nfsmount.conf says another
number, there is none.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from nfstuned.core.mounts.requests import options
from nfstuned.core.nconnect.against import Refusal, against
from nfstuned.core.nconnect.fstab import answered
from nfstuned.core.nconnect.groups import common
from nfstuned.core.nconnect.persist_members import SectionUse, Uses, by_conf, servers, unmatched
from nfstuned.model.change import Change, ChangeKind
from nfstuned.model.facts import Facts, Network
from nfstuned.model.kernel import decimal
from nfstuned.model.mounts import Result
from nfstuned.model.requests import Asked, Setting
from nfstuned.model.system import NfsUtils
from nfstuned.parse.etc.nfsmount import PERSISTED, parse_nfsmount

FOREIGN = (
    "it is not as nfstuned wrote it: move what was added to a file of another name in that folder, delete "
    "it, and run this again"
)
"""Why a file is not replaced that is none of these texts."""
_MARK = re.compile(r"# nfstuned wrote this, sha256 ([0-9a-f]{64})\n")
_HEAD = """\
# Do not edit it: `nfstuned apply --persist` refuses a file that is not as nfstuned wrote it.
# mount.nfs asks for these numbers of connections where neither the options of a mount nor a section of its
# mount point say one: nfsmount.conf(5). Say another one for a server in a file of another name: nfstuned
# then takes its section out.
"""


def with_sections(sections: Mapping[str, int]) -> str:
    """Return the file's whole text, with one section for each server's name."""
    parts = [f'\n[ Server "{name}" ]\nnconnect={count}\n' for name, count in sorted(sections.items())]
    body = _HEAD + "".join(parts)
    return f"# nfstuned wrote this, sha256 {_hash(body)}\n{body}"


def sections(text: str) -> dict[str, int] | None:
    """Return the sections of a text that nfstuned wrote, perhaps another version of it; None of any other."""
    mark = _MARK.match(text)
    if mark is None or mark[1] != _hash(text[mark.end() :]):
        return None
    numbers: dict[str, int] = {}
    for item in parse_nfsmount(text, PERSISTED):
        count = decimal(item.value) if isinstance(item, Setting) else None
        if not isinstance(item, Setting) or item.argument is None or count is None:
            return None
        numbers[item.argument] = count
    return numbers


def _hash(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "surrogateescape")).hexdigest()


class Fate(Enum):
    """What should become of a section."""

    WRITE = "it should be there"
    KEEP = "none is written, and one that is there stays"
    DROP = "there should be none"


@dataclass(frozen=True, slots=True)
class SectionVerdict:
    """What should become of the section of one name."""

    name: str
    number: int | None
    """What its mounts should ask for; None where nothing has to be said of a section that is not there."""
    fate: Fate
    reason: str
    result: Result = Result.SKIPPED
    """What comes of a section that is not written: FAILED where nothing tells whether it should be."""
    names: int = 1
    """How many names of its server need a section."""
    needed: bool = True
    """A mount of its server would ask for nothing without it."""


def verdicts(uses: Uses, facts: Facts) -> tuple[SectionVerdict, ...]:
    """Return one for each name under which a server is mounted; `facts` have the resolver's answers."""
    return tuple(verdict for server in servers(uses, facts) for verdict in _of_server(server, facts))


def _of_server(server: tuple[SectionUse, ...], facts: Facts) -> Iterator[SectionVerdict]:
    names = sorted({use.name for use in server if not use.unnamed})
    if all(use.target.profile.nconnect is None for use in server):
        profile = server[0].target.profile.name
        for name in names:
            yield SectionVerdict(name, None, Fate.DROP, f"its profile {profile} names no nconnect")
        return
    targets = [use.target for use in server]
    count = common(targets, (target.profile.nconnect for target in targets), (use.number for use in server))
    deciders = {name: by_conf(name, facts.snapshot.settings) for name in names}
    refused = _refused(server, count, deciders, facts)
    if refused is not None:
        for name in names or [server[0].target.endpoint.host]:
            yield _as_others_decide(replace(refused, name=name), deciders.get(name))
        return
    missing = sum(1 for option in deciders.values() if option is None)
    needed = any(use.asked is None for use in server)
    for name, asked in deciders.items():
        if asked is None:
            yield SectionVerdict(name, count, Fate.WRITE, _why(server, count), names=missing, needed=needed)
        else:
            yield SectionVerdict(name, None, Fate.DROP, f"{asked.origin} says it already")


def _refused(
    server: tuple[SectionUse, ...], count: int, deciders: Mapping[str, Asked | None], facts: Facts
) -> SectionVerdict | None:
    """Return why no name of a server gets a section, as a verdict about any of them; None where each may."""
    for use in server:
        refusal = _against(use, facts)
        if refusal is not None:
            fate = Fate.DROP if refusal.result is Result.SKIPPED else Fate.KEEP
            return SectionVerdict("", count, fate, _of_one(use, refusal.reason, server), refusal.result)
    for asked in deciders.values():
        if asked is not None and options([asked]).number("nconnect") != count:
            return SectionVerdict("", count, Fate.DROP, f"{asked.origin} says {asked.text}: that counts")
    for use in server:
        reason = unmatched(use, facts) if use.asked is None else _contrary(use.asked, use.number, count)
        if reason:
            return SectionVerdict("", count, Fate.KEEP, _of_one(use, reason, server))
    return None


def _as_others_decide(refused: SectionVerdict, asked: Asked | None) -> SectionVerdict:
    """Let no section stay that would count before what another file says to mounts without a number."""
    if refused.fate is not Fate.KEEP or asked is None:
        return refused
    reason = f"{refused.reason}; {asked.origin} decides for mounts that ask for none"
    return replace(refused, fate=Fate.DROP, reason=reason)


def _against(use: SectionUse, facts: Facts) -> Refusal | None:
    """Return what is against several connections, as the mount is and as it will be made again."""
    refusal = against(use.target, facts)
    if refusal is None and use.target.live is not None and use.target.request is not None:
        return against(replace(use.target, live=None), facts)
    return refusal


def _contrary(asked: Asked, number: int | None, count: int) -> str:
    """Return that a mount asks for another number than all of its server should; "" where it does not."""
    if number == count:
        return ""
    asks = f"{asked.origin} asks for {asked.text}"
    return f"{asks}, and all mounts of a server should ask for one number, here {count}"


def _of_one(use: SectionUse, reason: str, server: Sequence[SectionUse]) -> str:
    """Say which mount it is where there are several."""
    alone = len(server) == 1 or reason.startswith(use.subject)
    return reason if alone else f"{use.subject}: {reason}"


def _why(server: Sequence[SectionUse], count: int) -> str:
    named = (use.target.profile for use in server if use.target.profile.nconnect == count)
    profile = next(named, None)
    if profile is not None:
        return f"{profile.name} asks for nconnect={count}"
    other = next((use for use in server if use.number == count), None)
    if other is not None:
        return f"as {other.subject}, which is of the same server"
    return f"its profiles allow nconnect={count}"


_IN_OPTIONS = "put nconnect into the options of the mounts instead"
_INSTALL = "install nfs-common (Debian, Ubuntu), nfs-utils (RHEL) or nfs-client (SUSE) first"


def limited(
    known: Sequence[SectionVerdict], held: Sequence[str], utils: NfsUtils | None, settings: Sequence[Setting]
) -> tuple[SectionVerdict, ...]:
    """Return the verdicts as the installed mount.nfs lets them be.

    `held` are the names that the file has, without those that are to go; `settings` all that others wrote.
    """
    if utils is None:
        return _undecided(known, f"there is no mount.nfs here: {_INSTALL}")
    if not utils.drop_ins and utils.version is None:
        return _undecided(known, "/sbin/mount.nfs does not tell its version, as a script in its place")
    if not utils.drop_ins:
        why = f"{utils.name} does not read /etc/nfsmount.conf.d: nfs-utils 2.5.3 does"
        return _only_section("", known, held, why)
    if utils.keeps_sections_apart:
        return tuple(known)
    return _single_section(
        known, held, f"{utils.name} has one nconnect for all [ Server ] sections", settings
    )


def _undecided(known: Sequence[SectionVerdict], reason: str) -> tuple[SectionVerdict, ...]:
    """Return the verdicts where nothing tells what mount.nfs would do: no section is written, none goes."""
    return tuple(
        replace(verdict, fate=Fate.KEEP, reason=reason, result=Result.FAILED)
        if verdict.fate is Fate.WRITE
        else verdict
        for verdict in known
    )


def _single_section(
    known: Sequence[SectionVerdict], held: Sequence[str], why: str, settings: Sequence[Setting]
) -> tuple[SectionVerdict, ...]:
    """Let there be a single section: the first that is there already, else the first that should be."""
    for setting in settings:
        if setting.section == "server" and setting.name.lower() == "nconnect":
            reason = f"{why}, and {setting.file}:{setting.line} has it for {setting.argument}"
            return _only_section("", known, held, f"{reason}: {_IN_OPTIONS}")
    names = {verdict.name for verdict in known}
    there = {verdict.name for verdict in known if verdict.fate is not Fate.DROP and verdict.names == 1}
    may = [name for name in held if name in there or name not in names]
    may.sort(key=lambda name: name not in names)
    spare_last = sorted(known, key=lambda verdict: not verdict.needed)
    may += [verdict.name for verdict in spare_last if verdict.fate is Fate.WRITE and verdict.names == 1]
    if not may:
        two = f"{why}, and this server is mounted by several names"
        return _only_section("", known, held, f"{two}: {_IN_OPTIONS}")
    has = f"{why}, and {may[0]} has it"
    if may[0] not in names:
        return _only_section(may[0], known, held, f"{has}, which nothing uses here: --prune takes it out")
    return _only_section(may[0], known, held, f"{has}: {_IN_OPTIONS}")


def _only_section(
    kept: str, known: Sequence[SectionVerdict], held: Sequence[str], reason: str
) -> tuple[SectionVerdict, ...]:
    """Let there be no section but that of `kept`; what was against another before stays the reason."""
    names = {verdict.name for verdict in known}
    verdicts: list[SectionVerdict] = []
    for verdict in known:
        gone = verdict.fate is Fate.DROP or (verdict.fate is Fate.KEEP and verdict.name not in held)
        if verdict.name == kept or gone:
            verdicts.append(verdict)
        else:
            # Where each mount asks for it by itself, nobody lacks the section.
            number = verdict.number if verdict.needed else None
            verdicts.append(replace(verdict, fate=Fate.DROP, reason=reason, number=number))
    unused = (name for name in held if name not in names | {kept})
    return (*verdicts, *(SectionVerdict(name, None, Fate.DROP, reason) for name in unused))


_UNUSED = "nothing here uses it"


@dataclass(frozen=True, slots=True)
class Held:
    """What nfstuned's file has now."""

    sections: Mapping[str, int]
    prune: bool = False
    """Sections of servers that nothing uses go."""


@dataclass(frozen=True, slots=True)
class PersistPlan:
    """What to do with the file; empty where it is as it should be and nothing was refused."""

    changes: tuple[Change, ...]
    unused: tuple[str, ...]
    """The servers whose sections stay though nothing here uses them."""

    def sections(self, held: Held) -> dict[str, int]:
        """Return what the file has after the planned changes."""
        planned = {change.target: change.new for change in self.changes if change.result is Result.PLANNED}
        after = {**held.sections, **planned}
        return {name: number for name, number in after.items() if isinstance(number, int)}


def plan_persist(uses: Uses, network: Network, utils: NfsUtils | None, held: Held) -> PersistPlan:
    """Return what is to be changed in nfstuned's file, and what is not, each with its reason.

    `network` has the answers about the names that are unsettled; `utils` is the installed mount.nfs.
    """
    facts = answered(uses.facts, network)
    known = verdicts(uses, facts)
    names = {verdict.name for verdict in known}
    unused = [name for name in held.sections if name not in names]
    kept = [name for name in held.sections if not (held.prune and name in unused)]
    settled = limited(known, kept, utils, facts.snapshot.settings)
    pruned = (SectionVerdict(name, None, Fate.DROP, _UNUSED) for name in unused if held.prune)
    all_changes = (_change(verdict, held.sections.get(verdict.name)) for verdict in (*settled, *pruned))
    changes = tuple(sorted((change for change in all_changes if change), key=lambda change: change.target))
    gone = {change.target for change in changes if change.result is Result.PLANNED and change.new is None}
    return PersistPlan(changes, tuple(name for name in unused if name not in gone))


def _change(verdict: SectionVerdict, old: int | None) -> Change | None:
    """Return what becomes of a section; None where nothing does, and nothing has to be said."""
    name, reason = verdict.name, verdict.reason
    if verdict.fate is Fate.DROP and old is not None:
        return Change(ChangeKind.PERSIST, name, old, None, Result.PLANNED, reason)
    if verdict.number is None or old == verdict.number:
        return None
    result = Result.PLANNED if verdict.fate is Fate.WRITE else verdict.result
    return Change(ChangeKind.PERSIST, name, old, verdict.number, result, reason)
