"""The sections of nfstuned's own drop-in of nfsmount.conf: which servers get one, which do not, and why.

mount.nfs finds a [ Server ] section by the text of the source up to its first colon. So one server has a
section for each name by which it is mounted, and two servers with a name in common share a section.

From 2.5.3 to 2.8.2 nfs-utils keeps one assignment of a name for all [ Server ] sections of all files, the
last one: a second section takes the number of the first away.

As in an fstab (core/nconnect/fstab.py), all mounts of one server get one number, or none is changed. A
section only fills in a missing number: where a mount or the administrator's own nfsmount.conf has another
number, there is no section.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from nfstuned.core.mounts.requests import asked_options, last_asked, mounted_source, requested, wants_stand_in
from nfstuned.core.mounts.targets import made_by, targets
from nfstuned.core.nconnect.server import (
    Id,
    Member,
    Server,
    Users,
    as_target,
    group_by_ids,
    objection,
    server_ids,
    server_of,
    with_address_profile,
    with_answers,
    with_provider,
)
from nfstuned.core.nconnect.transport import addresses, allowed
from nfstuned.core.policy.endpoint import as_address, has_stand_in, section_name, section_obstacle
from nfstuned.model.change import Change, ChangeKind
from nfstuned.model.facts import Facts, Target
from nfstuned.model.kernel import decimal
from nfstuned.model.mounts import PERSISTED, Asked, Maker, Request, Result, Setting, Snapshot
from nfstuned.model.policy import Policy
from nfstuned.model.system import Network, NfsUtils
from nfstuned.parse.etc.settings import parse_nfsmount

MOUNTPOINT = "mountpoint"
FOREIGN = (
    "it is not as nfstuned wrote it: move the additions to a file of another name in that folder, delete "
    "it, and run this again"
)
"""Why a file with any other text is not replaced."""
_MARK = re.compile(r"# nfstuned wrote this, sha256 ([0-9a-f]{64})\n")
_HEAD = """\
# Do not edit it: `nfstuned nconnect persist` refuses a file that is not as nfstuned wrote it.
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


@dataclass(frozen=True, slots=True)
class SectionUse(Member):
    """A mount, as it will be made the next time without nfstuned's file.

    With a request its options are those that the request asks for now; else those of the live mount.
    """

    section: str
    """The name that mount.nfs looks for, in lower case: its case does not matter there."""
    decider: Asked | None
    """The option that decides its nconnect; None where a section of its server would."""
    stood_in: bool = False
    """mount.aznfs mounts an address of its own instead of its server's name."""

    @property
    def unnamed(self) -> str:
        """Why there is no section of its name; "" where there may be one."""
        if not self.stood_in:
            return section_obstacle(self.section)
        return (
            f"mount.aznfs mounts {self.target.endpoint.host} by an address of its own, which no section "
            "can name: put nconnect into the options of the mount"
        )

    def mismatch(self, facts: Facts) -> str:
        """Return why a section of its server's name would or should not count for the mount; "" for none."""
        places, request = addresses(self.target, facts), self.target.request
        by_number = request is not None and request.maker is Maker.AUTOFS and as_address(self.section) is None
        if by_number and len(places) > 1:
            return f"automount(8) mounts {self.section}, which has {len(places)} addresses, by one of them"
        return self.unnamed


def section_uses(snapshot: Snapshot, policy: Policy) -> Users[SectionUse]:
    """Return the mounts of a host or an image with named servers, without nfstuned's file.

    They are live, or files ask for them, or they stand for a server that the policy names.
    """
    settings = tuple(setting for setting in snapshot.settings if setting.file != PERSISTED)
    known = replace(snapshot, settings=settings)
    facts = Facts(frozenset(), known, policy, targets(known, policy))
    mounts = (*facts.nfs, *_configured(known, policy))
    uses = (_use(with_provider(target, facts), known) for target in mounts)
    return Users(tuple(use for use in uses if use is not None), facts)


def _use(target: Target, snapshot: Snapshot) -> SectionUse | None:
    """Return a mount as it will be made; None where its server is not known before it is."""
    request = target.request
    likely = request or Request(target.source, target.point, "", "", fstype=target.fstype)
    name = section_name(mounted_source(likely, snapshot.stand_ins))
    # In an autofs wildcard `&` is its key: it is then a part of the server's name.
    if not name or (likely.wildcard and "&" in name):
        return None
    asked = requested(likely, snapshot.settings, snapshot.stand_ins)
    # No file has the options of a mount that was made by hand: its present options stay the guess.
    future = target if request is None else replace(target, asked=asked)
    stood_in = has_stand_in(target) or wants_stand_in(likely, snapshot)
    return SectionUse(
        future, asked_options(asked).number("nconnect"), name, last_asked(asked, "nconnect"), stood_in
    )


def _configured(snapshot: Snapshot, policy: Policy) -> Iterator[Target]:
    """Yield a mount of each server that a policy names, and not only some of its exports or mount points."""
    for assignment in policy.assignments:
        match = assignment.match
        if match.export or match.mount_point:
            continue
        for pattern in match.server:
            name = pattern.lower().rstrip(".")
            if section_obstacle(name):
                continue
            request = Request(f"{name}:/", "/", "", assignment.origin)
            target = as_target(request, snapshot, policy)
            if target.profile.nconnect is not None:
                yield replace(target, subject=assignment.origin, request=None)


class Fate(Enum):
    """The future of a section."""

    WRITE = "it should be there"
    KEEP = "none is written, and an existing section stays"
    DROP = "it should not be there"


@dataclass(frozen=True, slots=True)
class SectionVerdict:
    """The future of the section of one name, and why."""

    name: str
    number: int | None
    """The number that its mounts should ask for; None where an absent section needs no word."""
    fate: Fate
    reason: str
    result: Result = Result.SKIPPED
    """The result for a section that is not written: FAILED where it is open whether it should be."""
    names: int = 1
    """How many names of its server need a section."""
    needed: bool = True
    """A mount of its server would ask for nothing without it."""

    def change(self, old: int | None) -> Change | None:
        """Return the change of a section; None where nothing changes, and nothing has to be reported."""
        name, reason = self.name, self.reason
        if self.fate is Fate.DROP and old is not None:
            return Change(ChangeKind.PERSIST, name, old, None, Result.PLANNED, reason)
        if self.number is None or old == self.number:
            return None
        result = Result.PLANNED if self.fate is Fate.WRITE else self.result
        return Change(ChangeKind.PERSIST, name, old, self.number, result, reason)


def verdicts(users: Users[SectionUse], facts: Facts) -> tuple[SectionVerdict, ...]:
    """Return a verdict for each name of a server; `facts` have the resolver's answers."""
    things: list[tuple[frozenset[Id], SectionUse]] = []
    for user in users.members:
        use = replace(user, target=with_address_profile(user.target, facts))
        section = frozenset[Id]() if use.unnamed else frozenset[Id]({(use.section, "section")})
        things.append((server_ids(use.target, facts) | section, use))
    servers = (server_of(sharing, allowed) for sharing in group_by_ids(things))
    return tuple(verdict for server in servers for verdict in _of_server(server, facts))


def _of_server(server: Server[SectionUse], facts: Facts) -> Iterator[SectionVerdict]:
    first, names = server.members[0], sorted({use.section for use in server.members if not use.unnamed})
    count = server.nconnect
    if count is None or not server.is_named:
        for name in names:
            reason = f"its profile {first.target.profile.name} names no nconnect"
            yield SectionVerdict(name, None, Fate.DROP, reason)
        return
    # The setting that decides the nconnect of a server's mounts that ask for none themselves.
    settings = [setting for setting in facts.snapshot.settings if setting.section != MOUNTPOINT]
    likely = {name: requested(Request(f"{name}:/", "/", "", ""), settings) for name in names}
    deciders = {name: last_asked(asked, "nconnect") for name, asked in likely.items()}
    refused = _refused(server, count, deciders, facts)
    if refused is not None:
        for name in names or [first.target.endpoint.host]:
            yield _as_others_decide(replace(refused, name=name), deciders.get(name))
        return
    asking = [use.target for use in server.members if use.decider is None]
    if asking and all(target.by_program for target in asking):
        for name in names:
            yield SectionVerdict(name, count, Fate.KEEP, made_by(asking))
        return
    absent = sum(1 for option in deciders.values() if option is None)
    needed = any(use.decider is None for use in server.members)
    for name, asked in deciders.items():
        if asked is None:
            reason = server.reason(server.members)
            yield SectionVerdict(name, count, Fate.WRITE, reason, names=absent, needed=needed)
        else:
            yield SectionVerdict(name, None, Fate.DROP, f"{asked.origin} has it already")


def _refused(
    server: Server[SectionUse], count: int, deciders: Mapping[str, Asked | None], facts: Facts
) -> SectionVerdict | None:
    """Return why no name of a server gets a section, as a verdict about any of them; None where each may."""
    for use in server.members:
        target = use.target
        why = objection(target, facts)
        if why is None and target.live is not None and target.request is not None:
            why = objection(replace(target, live=None), facts)  # as it will be made again
        if why is not None:
            fate = Fate.DROP if why.result is Result.SKIPPED else Fate.KEEP
            return SectionVerdict("", count, fate, _of_one(use, why.reason, server), why.result)
    for asked in deciders.values():
        if asked is not None and asked_options([asked]).number("nconnect") != count:
            return SectionVerdict(
                "", count, Fate.DROP, f"{asked.origin} has {asked.text}, which takes precedence"
            )
    for use in server.members:
        reason = use.mismatch(facts) if use.decider is None else ""
        if use.decider is not None and use.asked != count:
            reason = (
                f"{use.decider.origin} asks for {use.decider.text}, and all mounts of a server should ask "
                f"for one number, here {count}"
            )
        if reason:
            return SectionVerdict("", count, Fate.KEEP, _of_one(use, reason, server))
    return None


def _as_others_decide(refused: SectionVerdict, asked: Asked | None) -> SectionVerdict:
    """Let no section stay that would count before another file's number for mounts that ask for none."""
    if refused.fate is not Fate.KEEP or asked is None:
        return refused
    reason = f"{refused.reason}; {asked.origin} decides for mounts without a number"
    return replace(refused, fate=Fate.DROP, reason=reason)


def _of_one(use: SectionUse, reason: str, server: Server[SectionUse]) -> str:
    """Return a reason with the name of its mount where there are several."""
    alone = len(server.members) == 1 or reason.startswith(use.name)
    return reason if alone else f"{use.name}: {reason}"


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
        return _undecided(known, "/sbin/mount.nfs shows no version: is it a script?")
    if not utils.drop_ins:
        why = f"{utils.name} does not read /etc/nfsmount.conf.d: update nfs-utils to 2.5.3 or later"
        return _only_section("", known, held, why)
    if utils.keeps_sections_apart:
        return tuple(known)
    return _single_section(
        known, held, f"{utils.name} uses one nconnect for all [ Server ] sections", settings
    )


def _undecided(known: Sequence[SectionVerdict], reason: str) -> tuple[SectionVerdict, ...]:
    """Return the verdicts where the behaviour of mount.nfs is not known: no section is written, none goes."""
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
    only: str, known: Sequence[SectionVerdict], held: Sequence[str], reason: str
) -> tuple[SectionVerdict, ...]:
    """Let there be no section but `only`; an earlier reason against another section stays."""
    names = {verdict.name for verdict in known}
    verdicts: list[SectionVerdict] = []
    for verdict in known:
        gone = verdict.fate is Fate.DROP or (verdict.fate is Fate.KEEP and verdict.name not in held)
        if verdict.name == only or gone:
            verdicts.append(verdict)
        else:
            # Where each mount asks for the number itself, no mount lacks the section.
            number = verdict.number if verdict.needed else None
            verdicts.append(replace(verdict, fate=Fate.DROP, reason=reason, number=number))
    unused = (name for name in held if name not in names | {only})
    return (*verdicts, *(SectionVerdict(name, None, Fate.DROP, reason) for name in unused))


_UNUSED = "nothing here uses it"


@dataclass(frozen=True, slots=True)
class DropIn:
    """The present sections of nfstuned's file."""

    sections: Mapping[str, int]
    prune: bool = False
    """Sections of servers that nothing uses go."""


@dataclass(frozen=True, slots=True)
class PersistPlan:
    """The changes of the file; empty where it is as it should be and nothing was refused."""

    changes: tuple[Change, ...]
    unused: tuple[str, ...]
    """The servers with sections that stay though nothing here uses them."""

    def sections(self, held: DropIn) -> dict[str, int]:
        """Return the file's sections after the planned changes."""
        planned = {change.target: change.new for change in self.changes if change.result is Result.PLANNED}
        after = {**held.sections, **planned}
        return {name: number for name, number in after.items() if isinstance(number, int)}


def plan_persist(
    users: Users[SectionUse], network: Network, utils: NfsUtils | None, held: DropIn
) -> PersistPlan:
    """Return the sections to change in nfstuned's file, and those that are left, each with its reason.

    `network` has the answers about the names that are unsettled; `utils` is the installed mount.nfs.
    """
    facts = with_answers(users.facts, network)
    known = verdicts(users, facts)
    names = {verdict.name for verdict in known}
    unused = [name for name in held.sections if name not in names]
    staying = [name for name in held.sections if not (held.prune and name in unused)]
    settled = limited(known, staying, utils, facts.snapshot.settings)
    pruned = (SectionVerdict(name, None, Fate.DROP, _UNUSED) for name in unused if held.prune)
    all_changes = (verdict.change(held.sections.get(verdict.name)) for verdict in (*settled, *pruned))
    changes = tuple(sorted((change for change in all_changes if change), key=lambda change: change.target))
    gone = {change.target for change in changes if change.result is Result.PLANNED and change.new is None}
    return PersistPlan(changes, tuple(name for name in unused if name not in gone))
