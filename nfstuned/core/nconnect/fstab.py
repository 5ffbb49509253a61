"""Which entries of an fstab should ask for how many connections, and which are left alone, and why.

All shares of one server get one number, or none is changed: the first mount of a server decides for all of
them, and Azure Files does not support shares of one account that differ (rule NFS205). Mounts that no edit
of fstab changes count like shares that stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nfstuned.core.mounts.requests import mounted_source
from nfstuned.core.mounts.targets import targets
from nfstuned.core.nconnect.against import Refusal, against, contrary
from nfstuned.core.nconnect.fstab_text import ansible_lines, is_cloud_inits, is_faithful, with_count
from nfstuned.core.nconnect.groups import Id, addresses, common, limit, protocol, united, version
from nfstuned.core.policy.decision import choose
from nfstuned.core.policy.endpoint import GENERIC, as_address
from nfstuned.core.policy.match import matcher
from nfstuned.model.change import Change, ChangeKind
from nfstuned.model.facts import NFS_TYPES, Answer, Facts, Network, Target
from nfstuned.model.kernel import Options
from nfstuned.model.mounts import FSTAB, UTAB, Maker, Request, Result, Snapshot, Superblock
from nfstuned.model.policy import Policy
from nfstuned.parse.etc.fstab import parse_fstab
from nfstuned.parse.etc.units import unit_name
from nfstuned.parse.fields import clean_path


@dataclass(frozen=True, slots=True)
class FstabEntry:
    """An NFS line of an fstab: its text, and the mount that comes of it."""

    target: Target
    text: str
    line: int
    """Its number, from 1 on."""
    ansibles: bool = False
    """It stands in a block of Ansible's."""
    elsewhere: str = ""
    """`file:line` of the unit or the drop-in that decides its options in its place."""

    @property
    def asked(self) -> int | None:
        """The number that it asks for, with what nfsmount.conf adds; None where nothing says one."""
        return self.target.wanted.number("nconnect")

    @property
    def host(self) -> str:
        """The server, behind tunnels."""
        return self.target.endpoint.host


@dataclass(frozen=True, slots=True)
class Mounts:
    """The mounts that a text of fstab asks for, and beside them all others of the host."""

    entries: tuple[FstabEntry, ...]
    others: tuple[Target, ...]
    """Live ones, and those that mount units and autofs maps ask for."""
    facts: Facts


@dataclass(frozen=True, slots=True)
class ServerUsers:
    """What shares connections, whatever its version, and who uses it."""

    entries: tuple[FstabEntry, ...]
    others: tuple[Target, ...]


def mounts(text: str, snapshot: Snapshot, policy: Policy) -> Mounts:
    """Return what an fstab asks for, and what else there is; what is no entry is not among them.

    A server that says by a live mount what it is (Azure NetApp Files) is that for all its mounts.
    """
    facts = Facts(frozenset(), snapshot, policy, targets(snapshot, policy))
    providers = shown_providers(facts)
    entries = tuple(
        replace(entry, target=with_provider(entry.target, providers, policy))
        for entry in _entries(text, snapshot, policy)
    )
    return Mounts(
        entries, tuple(with_provider(other, providers, policy) for other in _others(entries, facts)), facts
    )


def shown_providers(facts: Facts) -> Mapping[str, str]:
    """Return the providers that live mounts show, by host."""
    return {
        target.endpoint.host: target.endpoint.provider
        for target in facts.nfs
        if target.live is not None and target.endpoint.provider != GENERIC
    }


def unsettled(known: Mounts) -> tuple[str, ...]:
    """Return the names whose addresses tell which mounts have one server, whether it is private, and more.

    Where the policy goes by addresses, they also tell the profile.
    """
    named = any(entry.target.profile.nconnect is not None for entry in known.entries)
    if not (named or matcher(known.facts.policy).by_address):
        return ()
    unknown = (target.endpoint.host for target in known.others if target.endpoint.address is None)
    names = (*(entry.host for entry in known.entries), *unknown)
    # Of a wildcard of autofs the key stands for a server that nobody knows before.
    asked = (name for name in names if name and "&" not in name and as_address(name) is None)
    return tuple(dict.fromkeys(asked))


def servers(known: Mounts, facts: Facts) -> Sequence[ServerUsers]:
    """Return the servers of the entries, with all who use them; `facts` have the resolver's answers.

    Two entries that have a name or an address in common have the same server.
    """
    users: list[tuple[frozenset[Id], FstabEntry | Target]] = [
        *((ids(entry.target, facts), entry) for entry in known.entries),
        *((ids(target, facts), target) for target in known.others),
    ]
    groups = (
        ServerUsers(
            tuple(user for user in group if isinstance(user, FstabEntry)),
            tuple(user for user in group if isinstance(user, Target)),
        )
        for group in united(users)
    )
    return [server for server in groups if server.entries]


def ids(target: Target, facts: Facts) -> frozenset[Id]:
    """Return the names and addresses of a mount's server, each with the port and the protocol.

    A mount whose version alone allows no nconnect has its version there too: it shares no connections with
    the other versions, which may have more.
    """
    names = {target.endpoint.host, *addresses(target, facts)} - {""}
    number, kind = version(target), protocol(target)
    if number in target.profile.nconnect_not_for:
        kind = f"{kind} {number}"
    return frozenset((name, target.endpoint.port, kind) for name in names)


def _entries(text: str, snapshot: Snapshot, policy: Policy) -> Iterator[FstabEntry]:
    lines, blocks = text.split("\n"), ansible_lines(text)
    # Of each unit's requests systemd mounts the first: a drop-in's comes before its entry.
    decides: dict[str, Request] = {}
    for systemds in filter(_is_systemds, snapshot.requests):
        decides.setdefault(unit_name(systemds.point), systemds)
    for request in parse_fstab(text):
        if not isinstance(request, Request) or request.fstype not in NFS_TYPES:
            continue
        decider = decides.get(unit_name(request.point), request)
        elsewhere = "" if decider.file == request.file else f"{decider.file}:{decider.line}"
        target = as_target(decider if elsewhere else request, snapshot, policy)
        yield FstabEntry(target, lines[request.line - 1], request.line, request.line in blocks, elsewhere)


def _is_systemds(request: Request) -> bool:
    return request.file != UTAB and request.maker is not Maker.AUTOFS


def _others(entries: Sequence[FstabEntry], facts: Facts) -> Iterator[Target]:
    """Yield the mounts that no entry makes; one that an entry's unit has hidden or decided is the entry's."""
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
            entrys = request is None or request.file == FSTAB or unit_name(request.point) in units
            other = request is not None and not (entrys and _is_systemds(request))
        if other:
            yield target


def _is_apart(target: Target, blocks: Sequence[Superblock]) -> bool:
    """Return whether a live mount beside those of entries is none that counts.

    It is an entry's mount, seen at another place (mount --bind), or a mount in another network namespace, as
    of a container; which namespace is the host's is only known where an entry is mounted.
    """
    block = target.superblock
    if block is None or not blocks:
        return False
    again = not target.asked and any(block.device == superblock.device for superblock in blocks)
    return again or all(block.servers != superblock.servers for superblock in blocks)


def _places(request: Request, facts: Facts) -> tuple[tuple[str, str], ...]:
    """Return as what the kernel may show an entry's mount; AZNFS came to put an address for the name."""
    sources = (mounted_source(request, facts.snapshot.stand_ins), mounted_source(request))
    return tuple(_place(source, request.point) for source in sources)


def _place(source: str, point: str) -> tuple[str, str]:
    return source.rstrip("/"), clean_path(point)


def as_target(request: Request, snapshot: Snapshot, policy: Policy) -> Target:
    """Return the mount that a request makes where it is the only one."""
    alone = replace(snapshot, superblocks=(), requests=(request,))
    return targets(alone, policy, (), request.file)[0]


def with_provider(target: Target, providers: Mapping[str, str], policy: Policy) -> Target:
    """Return a mount with the provider and the profile that a live mount of its server shows."""
    place = target.endpoint
    if place.provider != GENERIC or place.host not in providers:
        return target
    place = replace(place, provider=providers[place.host])
    chosen = choose(policy, target.source, target.point, target.wanted, place)
    return replace(target, endpoint=place, profile=chosen.profile)


def answered(facts: Facts, network: Network) -> Facts:
    """Return what is known with the resolver's answers; live mounts answer for their names where it does not.

    So the entry of a mount is understood, and its neighbours of the same name, while no resolver answers.
    """
    known = {answer.host for answer in network.answers if answer.addresses}
    seen: dict[str, dict[str, None]] = {}
    for target in facts.nfs:
        place = target.endpoint
        if target.live is not None and place.address is not None and place.host not in known:
            seen.setdefault(place.host, {})[place.address] = None
    live = (Answer(host, tuple(places)) for host, places in seen.items())
    others = (answer for answer in network.answers if answer.host not in seen)
    return replace(facts, network=replace(network, answers=(*live, *others)))


def by_address(target: Target, facts: Facts) -> Target:
    """Return a mount that is only asked for with the profile that the address of its server gives it.

    Its file has a name, and a policy may go by addresses. Where several of them have profiles that differ, it
    is open which it will be: then it is that of the name.
    """
    place = target.endpoint
    if target.live is not None or place.address is not None:
        return target
    servers = (replace(place, address=found) for found in addresses(target, facts))
    profiles = {
        choose(facts.policy, target.source, target.point, Options(), server).profile for server in servers
    }
    return replace(target, profile=profiles.pop()) if len(profiles) == 1 else target


@dataclass(frozen=True, slots=True)
class FstabPlan:
    """A change for each entry that asks for another number than its server's, planned or not."""

    changes: tuple[Change, ...]
    """In the order of their lines."""
    counts: Mapping[int, int]
    """The numbers that planned changes write, by line."""


def plan_fstab(mounts: Mounts, network: Network) -> FstabPlan:
    """Return what should become of the entries; `network` has the answers about unsettled names."""
    facts = answered(mounts.facts, network)
    known = _with_profiles(mounts, facts)
    changes = dict(change for server in servers(known, facts) for change in _of_server(server, facts))
    counts = {
        line: change.new
        for line, change in changes.items()
        if change.result is Result.PLANNED and isinstance(change.new, int)
    }
    return FstabPlan(tuple(changes[line] for line in sorted(changes)), counts)


def _with_profiles(mounts: Mounts, facts: Facts) -> Mounts:
    """Return the mounts with the profiles of their addresses; an entry that is mounted has its mount's."""
    providers = shown_providers(facts)
    own = {
        _place(target.source, target.point): with_provider(target, providers, facts.policy).profile
        for target in facts.nfs
        if target.live is not None
    }
    entries = []
    for entry in mounts.entries:
        target, request = by_address(entry.target, facts), entry.target.request
        if request is not None:
            live = (own[place] for place in _places(request, facts) if place in own)
            target = replace(target, profile=next(live, target.profile))
        entries.append(replace(entry, target=target))
    return replace(
        mounts, entries=tuple(entries), others=tuple(by_address(other, facts) for other in mounts.others)
    )


def _of_server(server: ServerUsers, facts: Facts) -> Iterator[tuple[int, Change]]:
    """Yield a change by its line for each entry that asks for another number."""
    if all(entry.target.profile.nconnect is None for entry in server.entries):
        return
    every = [*(entry.target for entry in server.entries), *server.others]
    named = (entry.target.profile.nconnect for entry in server.entries)
    count = common(every, named, (target.wanted.number("nconnect") for target in every))
    # Who asks for nothing has one connection.
    wrong = [entry for entry in server.entries if (entry.asked if count > 1 else entry.asked or 1) != count]
    refused = {entry.line: _refusal(entry, count, facts) for entry in wrong}
    stuck = _stuck(server, refused, count, facts)
    for entry in wrong:
        refusal = refused[entry.line] or stuck
        yield (
            entry.line,
            Change(
                kind=ChangeKind.FSTAB,
                target=f"{FSTAB}:{entry.line}",
                old=entry.asked,
                new=count,
                result=refusal.result if refusal else Result.PLANNED,
                reason=refusal.reason if refusal else _why(entry, server, count),
                place=entry.target.point,
            ),
        )


def _refusal(entry: FstabEntry, count: int, facts: Facts) -> Refusal | None:
    """Return why an entry stays as it is; None where nothing is against the change."""
    request = entry.target.request
    if entry.elsewhere:
        return Refusal(f"{entry.elsewhere} decides the options of this mount: change it there")
    if entry.ansibles:
        return Refusal("Ansible writes this block (blockinfile): change it in the playbook")
    if request is not None and is_cloud_inits(request.options):
        return Refusal(
            "cloud-init wrote this line and writes it anew: change `mounts:` in the user data or in "
            "/etc/cloud/cloud.cfg.d"
        )
    refusal = against(entry.target, facts)
    if refusal is None and not is_faithful(entry.text, with_count(entry.text, count), count):
        return Refusal(
            "its options cannot be changed safely (a quote that does not close?): change it by hand"
        )
    return refusal


def _stuck(
    server: ServerUsers, refused: Mapping[int, Refusal | None], count: int, facts: Facts
) -> Refusal | None:
    """Return what keeps all entries of a server as they are: the first that stays, or another mount."""
    named = (
        *((f"{FSTAB}:{line}", refusal) for line, refusal in refused.items()),
        *((_name(target), contrary(target, count, facts)) for target in server.others),
    )
    name, refusal = next(((name, refusal) for name, refusal in named if refusal is not None), ("", None))
    if refusal is None:
        return None
    return replace(refusal, reason=f"{name} is of the same server and stays as it is: {refusal.reason}")


def _name(target: Target) -> str:
    return f"the mount at {target.point}" if target.live is not None else target.subject


def _why(entry: FstabEntry, server: ServerUsers, count: int) -> str:
    profile = entry.target.profile
    most = limit(entry.target)
    if entry.asked is not None and most is not None and entry.asked > most:
        return f"{profile.name} allows at most {most}"
    if profile.nconnect == count:
        return f"{profile.name} asks for nconnect={count}"
    lines = (f"{FSTAB}:{other.line}" for other in server.entries if other.asked == count)
    others = (_name(target) for target in server.others if target.wanted.number("nconnect") == count)
    other = next(iter((*lines, *others)), "")
    if other:
        return f"as {other}, which is of the same server"
    return f"the profiles of {entry.host} allow nconnect={count}"
