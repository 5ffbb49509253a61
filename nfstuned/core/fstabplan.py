"""Which entries of an fstab should ask for how many connections, and which are left alone, and why.

All shares of one server get one number, or none is changed: the first mount of a server decides for all of
them, and Azure Files does not support shares of one account that differ (rule NFS205).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nfstuned.core.backports import V4_0_SINCE, knows_nconnect
from nfstuned.core.endpoint import GENERIC, as_address, split_source
from nfstuned.core.fstabowners import ansible_lines, is_cloud_inits
from nfstuned.core.fstabtext import is_faithful, with_count
from nfstuned.core.groups import address, allowed, is_azure_files, is_private, protocol, version
from nfstuned.core.match import matcher, subject
from nfstuned.core.targets import targets
from nfstuned.model.change import Change
from nfstuned.model.facts import NFS_TYPES, Facts, Network, Target
from nfstuned.model.policy import Policy
from nfstuned.model.work import FSTAB, Request, Result, Snapshot
from nfstuned.parse.fstab import parse_fstab

KIND = "fstab"
_Server = tuple[str, int, str]
_Check = Callable[["Entry", Facts], str]


@dataclass(frozen=True, slots=True)
class Entry:
    """One NFS line of an fstab: the mount that it asks for, and its text."""

    target: Target
    text: str
    ansibles: bool = False
    """It stands in a block of Ansible's."""

    @property
    def line(self) -> int:
        """Its number, from 1 on."""
        return self.target.request.line if self.target.request else 0

    @property
    def asked(self) -> int | None:
        """The number that it asks for, with what nfsmount.conf adds; None where nothing says one."""
        return self.target.wanted.number("nconnect")

    @property
    def host(self) -> str:
        """The server, behind tunnels."""
        return self.target.endpoint.host


def entries(text: str, snapshot: Snapshot, policy: Policy) -> tuple[Entry, ...]:
    """Return the NFS entries of an fstab with their profiles; what is no entry is not among them.

    A server that says by a live mount what it is (Azure NetApp Files) is that for all its entries.
    """
    lines, blocks = text.split("\n"), ansible_lines(text)
    said = {
        target.endpoint.host: target.endpoint.provider
        for target in targets(snapshot, policy)
        if target.live is not None and target.endpoint.provider != GENERIC
    }
    return tuple(
        Entry(
            _known(_target(request, snapshot, policy), said, policy),
            lines[request.line - 1],
            request.line in blocks,
        )
        for request in parse_fstab(text)
        if isinstance(request, Request) and request.fstype in NFS_TYPES
    )


def unsettled(found: Sequence[Entry]) -> tuple[str, ...]:
    """Return the names whose addresses decide whether their entries may be changed."""
    hosts = (one.host for one in found if is_azure_files(one.target) and one.target.profile.nconnect)
    return tuple(dict.fromkeys(host for host in hosts if host and as_address(host) is None))


def plan_fstab(
    found: Sequence[Entry], snapshot: Snapshot, policy: Policy, network: Network
) -> tuple[Change, ...]:
    """Return a change for each entry that asks for another number than its server's: planned or skipped.

    `network` has the answers about the names that `unsettled` returned.
    """
    facts = Facts(frozenset(), snapshot, policy, targets(snapshot, policy), network=network)
    servers: defaultdict[_Server, list[Entry]] = defaultdict(list)
    for entry in found:
        servers[_server(entry, facts)].append(entry)
    changes = [change for members in servers.values() for change in _of_server(members, facts)]
    return tuple(sorted(changes, key=lambda change: change.line))


def counts(changes: Sequence[Change]) -> Mapping[int, int]:
    """Return the numbers that planned changes write, by line."""
    return {change.line: change.new for change in changes if change.result is Result.PLANNED}


def _target(request: Request, snapshot: Snapshot, policy: Policy) -> Target:
    alone = replace(snapshot, superblocks=(), requests=(request,))
    return targets(alone, policy, (), request.file)[0]


def _known(target: Target, said: Mapping[str, str], policy: Policy) -> Target:
    """Return an entry's mount with the provider and the profile that a live mount of its server shows."""
    place = target.endpoint
    if place.provider != GENERIC or place.host not in said:
        return target
    place = replace(place, provider=said[place.host])
    host, export = split_source(target.source)
    known = subject(host, target.wanted.get("addr"), place, export=export, point=target.point)
    return replace(target, endpoint=place, profile=matcher(policy).choices(known, place)[0].profile)


def _server(entry: Entry, facts: Facts) -> _Server:
    """Return what entries have in common that share connections, whatever their version."""
    place = address(entry.target, facts) or entry.host
    return place, entry.target.endpoint.port, protocol(entry.target)


def _of_server(members: Sequence[Entry], facts: Facts) -> Iterator[Change]:
    if all(entry.target.profile.nconnect is None for entry in members):
        return
    count = _count(members)
    wrong = [entry for entry in members if entry.asked != count]
    reasons = {entry.line: _refusal(entry, count, facts) for entry in wrong}
    stuck = next((line for line, reason in reasons.items() if reason), None)
    for entry in wrong:
        reason = reasons[entry.line]
        if not reason and stuck is not None:
            reason = f"{FSTAB}:{stuck} is of the same server and stays as it is: {reasons[stuck]}"
        result = Result.SKIPPED if reason else Result.PLANNED
        yield Change(
            kind=KIND,
            target=f"{FSTAB}:{entry.line}",
            point=entry.target.point,
            old=entry.asked,
            new=count,
            result=result,
            reason=reason or _why(entry, members, count),
            line=entry.line,
        )


def _count(members: Sequence[Entry]) -> int:
    """Return the number for all shares of a server.

    It is the most that a profile recommends or that an entry asks for of itself, within what every profile
    allows: more than that is lowered, as NFS202 asks.
    """
    profiles = [entry.target.profile for entry in members]
    most = min(allowed(entry.target) for entry in members)
    wanted = [one.nconnect for one in profiles if one.nconnect is not None]
    asked = [entry.asked for entry in members if entry.asked is not None and entry.asked <= most]
    return min(most, max([*wanted, *asked]))


def _why(entry: Entry, members: Sequence[Entry], count: int) -> str:
    profile = entry.target.profile
    if entry.asked is not None and profile.nconnect_max is not None and entry.asked > profile.nconnect_max:
        return f"{profile.name} allows at most {profile.nconnect_max}"
    if profile.nconnect == count:
        return f"{profile.name} asks for nconnect={count}"
    other = next((one for one in members if one.asked == count), None)
    if other is not None:
        return f"as {FSTAB}:{other.line}, which is of the same server"
    return f"the profiles of {entry.host} allow nconnect={count}"


def _refusal(entry: Entry, count: int, facts: Facts) -> str:
    """Return why an entry stays as it is; "" where nothing is against the change."""
    return next((reason for check in _CHECKS if (reason := check(entry, facts))), "") or _unfaithful(
        entry, count
    )


def _no_opinion(entry: Entry, facts: Facts) -> str:
    del facts
    profile = entry.target.profile
    if profile.nconnect is not None:
        return ""
    return f"its profile {profile.name} names no nconnect, and another profile of the same server does"


def _foreign(entry: Entry, facts: Facts) -> str:
    del facts
    if entry.ansibles:
        return "Ansible writes this block (blockinfile): change it in the playbook"
    if entry.target.request is None or not is_cloud_inits(entry.target.request.options):
        return ""
    return (
        "cloud-init wrote this line and writes it anew: change `mounts:` in the user data or in "
        "/etc/cloud/cloud.cfg.d"
    )


def _not_tcp(entry: Entry, facts: Facts) -> str:
    del facts
    found = protocol(entry.target)
    return "" if found == "tcp" else f"proto={found}: nconnect is for TCP"


def _kerberos(entry: Entry, facts: Facts) -> str:
    del facts
    security = entry.target.wanted.get("sec") or ""
    return (
        f"sec={security}: Kerberos and several connections do not go together" if "krb5" in security else ""
    )


def _old_kernel(entry: Entry, facts: Facts) -> str:
    release, asked = facts.snapshot.kernel, version(entry.target)
    if release is None:
        return "NFS 4.0 has nconnect only since Linux 5.8" if asked == "4.0" else ""
    if not knows_nconnect(release, facts.snapshot.distribution, asked):
        return f"Linux {release.text} does not know nconnect"
    if asked == "4.0" and release.version < V4_0_SINCE:
        return f"Linux {release.text} ignores nconnect with NFS 4.0"
    return ""


def _public(entry: Entry, facts: Facts) -> str:
    """Return why the endpoint is none for nconnect: Azure supports it over private endpoints only."""
    if not is_azure_files(entry.target):
        return ""
    private = is_private(entry.target, facts)
    if private is None:
        seen = (is_private(one, facts) for one in facts.nfs if one.live and one.endpoint.host == entry.host)
        private = next((found for found in seen if found is not None), None)
    if private is None:
        return (
            f"{entry.host} leads to no address here, so that it is open whether it is a private endpoint; "
            "Azure Files supports nconnect only there"
        )
    if private:
        return ""
    return f"{entry.host} is a public endpoint; Azure Files supports nconnect over private endpoints only"


def _unfaithful(entry: Entry, count: int) -> str:
    if is_faithful(entry.text, with_count(entry.text, count), count):
        return ""
    return "its options cannot be changed safely (a quote that does not close?): change it by hand"


_CHECKS: tuple[_Check, ...] = (_no_opinion, _foreign, _not_tcp, _kerberos, _old_kernel, _public)
