"""The entries of an fstab: the number of connections that each should ask for, and who else writes the file.

All shares of one server get one number, or none is changed: the first mount of a server decides for all of
them, and Azure Files does not support shares of one account that differ (rule NFS205). Mounts that no edit
of fstab changes count like shares that stay as they are. Of a changed text every other byte stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nfstuned.core.mounts.requests import mounted_source
from nfstuned.core.mounts.targets import targets
from nfstuned.core.nconnect.server import (
    Member,
    Objection,
    Server,
    Users,
    as_target,
    group_by_ids,
    hard_objection,
    objection,
    server_ids,
    server_of,
    with_address_profile,
    with_answers,
    with_provider,
)
from nfstuned.core.nconnect.transport import allowed
from nfstuned.model.change import Change, ChangeKind
from nfstuned.model.facts import Facts, Target
from nfstuned.model.kernel import parse_options
from nfstuned.model.mounts import FSTAB, NFS_TYPES, UTAB, Maker, Request, Result, Snapshot, Superblock
from nfstuned.model.policy import Policy
from nfstuned.model.system import Network
from nfstuned.parse.etc.requests import parse_fstab
from nfstuned.parse.fields import clean_path, unit_name


@dataclass(frozen=True, slots=True)
class FstabEntry(Member):
    """An NFS line of an fstab: its text, and the mount that it makes."""

    text: str
    line: int
    """Its number, from 1 on."""
    in_ansible_block: bool = False
    decided_at: str = ""
    """`file:line` of the unit or the drop-in that decides its options instead."""

    @property
    def name(self) -> str:
        """Its name for people."""
        return f"{FSTAB}:{self.line}"

    @property
    def is_above(self) -> bool:
        """Whether it asks for more than its profile allows."""
        most = self.target.most_connections
        return self.asked is not None and most is not None and self.asked > most

    def objection(self, count: int, facts: Facts) -> Objection | None:
        """Return why it stays as it is; None where it may be changed."""
        request = self.target.request
        if self.decided_at:
            return Objection(f"{self.decided_at} decides the options of this mount: change it there")
        if self.in_ansible_block:
            return Objection("Ansible writes this block (blockinfile): change it in the playbook")
        if request is not None and is_of_cloud_init(request.options):
            return Objection(
                "cloud-init wrote this line and may write it again: change `mounts:` in the user data or "
                "in /etc/cloud/cloud.cfg.d"
            )
        objects = hard_objection if self.is_above else objection
        why = objects(self.target, facts) if count > 1 else None
        if why is None and not is_faithful(self.text, with_count(self.text, count), count):
            return Objection(
                "its options cannot be changed safely (is a quote not closed?): change it by hand"
            )
        return why

    def reason(self, server: Server[Member]) -> str:
        """Return why it gets the number of its server."""
        if self.is_above:
            return f"{self.target.profile.name} allows at most {self.target.most_connections}"
        return server.reason([self])


@dataclass(frozen=True, slots=True)
class FstabPlan:
    """A change for each entry that asks for another number than its server's, planned or not."""

    changes: tuple[Change, ...]
    """In the order of their lines."""
    counts: Mapping[int, int]
    """The numbers that planned changes write, by line."""


def fstab_users(text: str, snapshot: Snapshot, policy: Policy) -> Users[Member]:
    """Return the entries of an fstab, and then all other mounts of the host; nothing without any entry.

    The others are live, or mount units and autofs maps ask for them. A server that shows its provider by a
    live mount (Azure NetApp Files) has that provider for all its mounts.
    """
    facts = Facts(frozenset(), snapshot, policy, targets(snapshot, policy))
    entries = _entries(text, snapshot, policy)
    others = [
        Member(target, target.wanted.number("nconnect"))
        for target in (_others(entries, facts) if entries else ())
    ]
    members: tuple[Member, ...] = (*entries, *others)
    known = (replace(member, target=with_provider(member.target, facts)) for member in members)
    return Users(tuple(known), facts)


def plan_fstab(users: Users[Member], network: Network) -> FstabPlan:
    """Return the changes of the entries; `network` has the answers about unsettled names.

    Where no profile of a server names a number, only entries above their limit change.
    """
    facts = with_answers(users.facts, network)
    members = _with_profiles(users.members, facts)
    changes: dict[int, Change] = {}
    for sharing in group_by_ids((server_ids(member.target, facts), member) for member in members):
        entries = [member for member in sharing if isinstance(member, FstabEntry)]
        if all(entry.target.profile.nconnect is None for entry in entries):
            entries = [entry for entry in entries if entry.is_above]
        if entries:
            changes.update(_changes(server_of(sharing, allowed), entries, facts))
    counts = {
        line: change.new
        for line, change in changes.items()
        if change.result is Result.PLANNED and isinstance(change.new, int)
    }
    return FstabPlan(tuple(changes[line] for line in sorted(changes)), counts)


def _entries(text: str, snapshot: Snapshot, policy: Policy) -> tuple[FstabEntry, ...]:
    lines, blocks = text.split("\n"), ansible_lines(text)
    # Of each unit's requests systemd mounts the first: a drop-in's comes before its entry.
    deciders: dict[str, Request] = {}
    for earlier in filter(_is_for_systemd, snapshot.requests):
        deciders.setdefault(unit_name(earlier.point), earlier)
    entries = []
    for request in parse_fstab(text):
        if not isinstance(request, Request) or request.fstype not in NFS_TYPES or request.by_fuse:
            continue
        decider = deciders.get(unit_name(request.point), request)
        decided_at = "" if decider.file == request.file else f"{decider.file}:{decider.line}"
        target = as_target(decider if decided_at else request, snapshot, policy)
        asked = target.wanted.number("nconnect")
        place = (lines[request.line - 1], request.line, request.line in blocks, decided_at)
        entries.append(FstabEntry(target, asked, *place))
    return tuple(entries)


def _is_for_systemd(request: Request) -> bool:
    return request.file != UTAB and request.maker is not Maker.AUTOFS


def _others(entries: Sequence[FstabEntry], facts: Facts) -> Iterator[Target]:
    """Yield the mounts that no entry makes; the mount of a unit that overrides an entry is the entry's."""
    requests = [entry.target.request for entry in entries if entry.target.request is not None]
    own = {place for request in requests for place in _places(request, facts)}
    units = {unit_name(request.point) for request in requests}
    mounted = [mount for mount in facts.nfs if mount.live and _place(mount.source, mount.point) in own]
    blocks = [mount.superblock for mount in mounted if mount.superblock is not None]
    for target in facts.nfs:
        request = target.request
        if target.live is not None:
            other = _place(target.source, target.point) not in own and not _is_apart(target, blocks)
        else:
            of_entry = request is None or request.file == FSTAB or unit_name(request.point) in units
            other = request is not None and not (of_entry and _is_for_systemd(request))
        if other:
            yield target


def _is_apart(target: Target, blocks: Sequence[Superblock]) -> bool:
    """Return whether a live mount that no entry makes does not count.

    It is an entry's mount, seen at another place (mount --bind), or a mount in another network namespace, as
    of a container; the host's namespace is only known where an entry is mounted.
    """
    block = target.superblock
    if block is None or not blocks:
        return False
    bound = not target.asked and any(block.device == superblock.device for superblock in blocks)
    return bound or all(block.servers != superblock.servers for superblock in blocks)


def _places(request: Request, facts: Facts) -> tuple[tuple[str, str], ...]:
    """Return the sources and points that the kernel may show of an entry; AZNFS may mount an address."""
    sources = (mounted_source(request, facts.snapshot.stand_ins), mounted_source(request))
    return tuple(_place(source, request.point) for source in sources)


def _place(source: str, point: str) -> tuple[str, str]:
    return source.rstrip("/"), clean_path(point)


def _with_profiles(members: Sequence[Member], facts: Facts) -> Iterator[Member]:
    """Yield the members with the profiles of their addresses; an entry that is mounted has its mount's."""
    own = {
        _place(target.source, target.point): with_provider(target, facts).profile
        for target in facts.nfs
        if target.live is not None
    }
    for member in members:
        target, request = with_address_profile(member.target, facts), member.target.request
        if isinstance(member, FstabEntry) and request is not None:
            live = (own[place] for place in _places(request, facts) if place in own)
            target = replace(target, profile=next(live, target.profile))
        yield replace(member, target=target)


def _changes(
    server: Server[Member], entries: Sequence[FstabEntry], facts: Facts
) -> Iterator[tuple[int, Change]]:
    """Yield a change by its line for each entry that asks for another number than its server's."""
    count = server.nconnect or server.most
    # An entry that asks for nothing has one connection.
    wrong = [entry for entry in entries if (entry.asked if count > 1 else entry.asked or 1) != count]
    refused = {entry.line: entry.objection(count, facts) for entry in wrong}
    others = [member for member in server.members if not isinstance(member, FstabEntry)]
    objects = objection if server.is_named else hard_objection
    named = (
        *((f"{FSTAB}:{line}", refusal) for line, refusal in refused.items()),
        *((member.name, objects(member.target, facts)) for member in others if count > 1),
        *((member.name, _other_number(member.target, count)) for member in others),
    )
    stuck = next(
        (
            why._replace(reason=f"{name} has the same server and stays unchanged: {why.reason}")
            for name, why in named
            if why is not None
        ),
        None,
    )
    for entry in wrong:
        refusal = refused[entry.line] or stuck
        change = Change(
            kind=ChangeKind.FSTAB,
            target=entry.name,
            old=entry.asked,
            new=count,
            result=refusal.result if refusal else Result.PLANNED,
            reason=refusal.reason if refusal else entry.reason(server),
            place=entry.target.point,
        )
        yield entry.line, change


def _other_number(target: Target, count: int) -> Objection | None:
    """Return the other number that a mount asks for, which no edit of fstab changes.

    A mount that was made by hand, with options that are not known, has none.
    """
    asked = target.asked_nconnect
    if asked in {None, count}:
        return None
    return Objection(f"it asks for {f'nconnect={asked}' if 'nconnect' in target.wanted else 'no nconnect'}")


_TOOLS = r"(ansible|puppet|chef|salt(?:stack)?|cfengine|nixos)"
_NO = r"(?:not|formerly|no longer|once)"
_MADE = r"(?:managed|maintained|controlled|(?:auto-?)?generated)"
_GAP = rf"(?:(?!\b{_NO}\b|[.;!?] ).){{0,80}}?"
_MARKS = tuple(
    re.compile(rf"(?<!\bnot )(?<!\bformerly )(?<!\bno longer )(?<!\bonce )\b{mark}\b", re.IGNORECASE)
    for mark in (
        rf"{_TOOLS}[ -]managed\b(?! block)",
        rf"{_MADE}\b{_GAP}\b(?:by|via|with|using) (?:(?:the|our) )?{_TOOLS}",
        rf"do not edit\b.{{0,200}}?\b{_TOOLS}",
    )
)
"""The words of Ansible's ansible_managed, Puppet's parsed files, NixOS, and people; not of a former owner."""
_BEGIN, _END = "# BEGIN ANSIBLE MANAGED BLOCK", "# END ANSIBLE MANAGED BLOCK"
_BLANKS = re.compile(r"[\s#]+")
_SEEMS_ENTRY = re.compile(r"[^\s:/=]*[:/=]\S*\s+/\S*\s+\S+\s+\S+(?:\s+\d+){0,2}\s*")
"""A mount that somebody commented out."""
_CLOUD_INIT = ("cloudconfig", "cloud-init")


def owner(text: str) -> str:
    """Return the program that the comments call the owner of the whole file; "" where they name none."""
    matches = (match for block in _blocks(text) for mark in _MARKS if (match := mark.search(block)))
    first = next(matches, None)
    return first[1].lower() if first else ""


def _blocks(text: str) -> Iterator[str]:
    """Yield the comments that stand together, as one line each; blanks and `#` are one space."""
    lines: list[str] = []
    for line in (*text.split("\n"), ""):
        if line.lstrip(" \t").startswith("#") and not _SEEMS_ENTRY.fullmatch(line.lstrip(" \t#")):
            lines.append(line)
        elif lines:
            yield _BLANKS.sub(" ", " ".join(lines)).replace("HEADER: ", "")
            lines = []


def ansible_lines(text: str) -> frozenset[int]:
    """Return the lines, from 1 on, of the blocks that belong to Ansible's blockinfile."""
    numbers, inside = set(), False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith((_BEGIN, _END)):
            inside = line.startswith(_BEGIN)
        elif inside:
            numbers.add(number)
    return frozenset(numbers)


def is_of_cloud_init(options: str) -> bool:
    """Return whether cloud-init marked an entry as its own: it writes `comment=cloudconfig` (cc_mounts).

    An `x-` option that names it counts as well; those of systemd only order the mount after it.
    """
    for name, value in parse_options(options).pairs:
        comment = name == "comment" and value in _CLOUD_INIT
        own = name.lower().startswith("x-") and not name.startswith("x-systemd.")
        if comment or (own and any(word in f"{name}={value}" for word in _CLOUD_INIT)):
            return True
    return False


NAME = "nconnect"
_ENTRY = re.compile(r"([ \t]*[^ \t]+[ \t]+[^ \t]+[ \t]+[^ \t]+)(?:([ \t]+)([^ \t]+))?(.*)", re.DOTALL)
"""Source, mount point and type; the blank and the options, which can be missing; and all the rest."""
_PART = re.compile(r'((?:[^",]|"[^"]*(?:"|$))*)(,|$)')
"""An option and its comma: as parse_options splits them, but nothing is lost."""


def with_counts(text: str, counts: Mapping[int, int]) -> str:
    """Return an fstab in which the lines, counted from 1, ask for those numbers of connections."""
    lines = text.split("\n")
    for number, count in counts.items():
        lines[number - 1] = with_count(lines[number - 1], count)
    return "\n".join(lines)


def with_count(line: str, count: int) -> str:
    """Return an entry, without its line's end, that asks for `count` connections exactly once.

    A number that is there is changed in its place, and further ones are dropped; else it stands last, also
    after `defaults`, which people look for. Blanks, escapes, a CR and the fields after the options stay.
    """
    body = line.removesuffix("\r")
    end = line[len(body) :]
    entry = _ENTRY.fullmatch(body)
    if entry is None:
        return line
    head, blank, options, rest = entry.groups()
    return f"{head}{blank or ' '}{_with_option(options or '', f'{NAME}={count}')}{rest}{end}"


def is_faithful(old: str, new: str, count: int) -> bool:
    """Return whether mount(8) reads both lines as one entry, but for the number, which is there once."""
    before, after = _entry(old), _entry(new)
    if before is None or after is None:
        return False
    given = [value for name, value in parse_options(after.options).pairs if name == NAME]
    same = (before.source, before.point, before.fstype) == (after.source, after.point, after.fstype)
    return same and given == [str(count)] and _other_options(before) == _other_options(after)


def _with_option(options: str, word: str) -> str:
    parts, changed = [], False
    for match in _PART.finditer(options):
        part, comma = match.groups()
        if part.partition("=")[0] == NAME:
            if changed:
                continue
            part, changed = word, True
        parts.append(part + comma)
    text = "".join(parts)
    if changed:
        # A later number that was dropped leaves the comma before it.
        return text.removesuffix(",") if not options.endswith(",") else text
    return text + word if not text or text.endswith(",") else f"{text},{word}"


def _entry(line: str) -> Request | None:
    requests = parse_fstab(line)
    return requests[0] if len(requests) == 1 and isinstance(requests[0], Request) else None


def _other_options(request: Request) -> list[tuple[str, str | None]]:
    return [pair for pair in parse_options(request.options).pairs if pair[0] != NAME]
