"""Decisions of the policy: the server and the profile of a mount, the read-ahead of its superblock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nfstuned.core.policy.endpoint import (
    GENERIC,
    TUNNEL_PORTS,
    is_loopback,
    split_source,
)
from nfstuned.core.policy.match import Choice, Matcher, Subject, matcher, subject
from nfstuned.model.kernel import Mount, NfsClient, Options, Volume
from nfstuned.model.mounts import Decision, Endpoint, Snapshot, Superblock, Tunnel
from nfstuned.model.policy import LEAST_KB, MOST_KB, WITH, Policy, Profile, ReadAhead

V4 = 4
UNSEEN = "no mount of it is visible here"


@dataclass(frozen=True, slots=True)
class Place:
    """The real server of a live mount, and its profile."""

    endpoint: Endpoint
    choice: Choice


def place(policy: Policy, mount: Mount, superblock: Superblock | None, snapshot: Snapshot) -> Place:
    """Return the place of a live mount; `superblock` is None for mounts other than NFS."""
    stanza = snapshot.stanza_of(mount, superblock)
    implementation = stanza.implementation if stanza else None
    providers = matcher(policy).providers
    server = providers.endpoint(mount, superblock, snapshot.tunnels, snapshot.azure, implementation)
    return Place(server, choose_profile(policy, mount.source, mount.point, mount.options, server))


def choose_profile(policy: Policy, source: str, point: str, options: Options, server: Endpoint) -> Choice:
    """Return the profile of a fully known mount, by the first [[policy]] entry for it."""
    host, export = split_source(source)
    known = subject(host, options.get("addr"), server, export=export, point=point)
    return matcher(policy).choices(known, server)[0]


def read_ahead_kb(wanted: ReadAhead | None, rsize: int | None, most_kb: int | None = None) -> int | None:
    """Return a read-ahead in KiB within the bounds; None without an opinion, or without the rsize (bytes).

    `most_kb` is the profile's limit, which a multiple of a large rsize may exceed.
    """
    if wanted is None:
        return None
    kb = wanted.kb
    if kb is None:
        if wanted.times_rsize is None or rsize is None:
            return None
        kb = wanted.times_rsize * rsize // 1024
    return max(LEAST_KB, min(most_kb or MOST_KB, MOST_KB, kb))


def depends_on_implementation(policy: Policy) -> bool:
    """Whether a server's own name (impl_id) may give its mounts another read-ahead, even off Azure."""
    known = matcher(policy)
    other = known.profile(GENERIC)
    # A workload's number is cut by the profile's limit.
    keys = ("read_ahead", "lower", "read_ahead_max_kb")
    return any(
        getattr(named, key) != getattr(other, key)
        for named in known.by_implementation(azure=False)
        for key in keys
    )


def wanted_connections(profile: Profile, version: str | None) -> int | None:
    """Return a profile's number of connections with a version of NFS; None where it names none."""
    most = profile.most_connections(version)
    return profile.nconnect if profile.nconnect is None or most is None else min(profile.nconnect, most)


def decide(policy: Policy, superblock: Superblock, snapshot: Snapshot) -> Decision:
    """Return the decision on `superblock`, by the first [[policy]] entry for a mount, else by its provider.

    Mounts of one superblock share its read-ahead.
    """
    if superblock.mounts:
        return join_decisions(
            [(mount, place(policy, mount, superblock, snapshot)) for mount in superblock.mounts]
        )
    choices: list[tuple[Choice, Endpoint]] = []
    if superblock.volume is not None:
        choices = _volume_choices(matcher(policy), superblock.volume, superblock.servers, snapshot.tunnels)
    if not choices:
        return Decision(None, GENERIC, GENERIC, lower=False, why=UNSEEN)
    # The least that a possible profile asks for is never too much, for nfstuned only raises.
    decisions = [_decision(choice, server, None) for choice, server in choices]
    best = min(decisions, key=lambda decision: decision.kb or 0)
    if len({(decision.kb, decision.lower) for decision in decisions}) == 1:
        return best
    return replace(best, lower=False, why=f"{best.why}; {UNSEEN}, and this is the least that it may be")


def decide_early(
    policy: Policy,
    volume: Volume,
    servers: tuple[NfsClient, ...],
    tunnels: tuple[Tunnel, ...],
    *,
    azure: bool = True,
) -> Decision | None:
    """Return the decision on a superblock before its mounts are visible; None: wait for mountinfo.

    Called between the kernel's bdi event and the mount's appearance, when only nfsfs knows the superblock.
    There is a decision only when the unknown name, export, mount point and rsize cannot change it: nfstuned
    only raises, so a value that is too high would stay. The server's own name (impl_id), which means another
    provider on an Azure VM (`azure`), may still raise it.
    """
    known = {tunnel.port for tunnel in tunnels}
    if volume.port in TUNNEL_PORTS and volume.port not in known and is_loopback(volume.address):
        return None
    compiled = matcher(policy)
    choices = _volume_choices(compiled, volume, servers, tunnels)
    if not choices or any(
        choice.profile.read_ahead and not choice.profile.read_ahead.kb for choice, _ in choices
    ):
        return None
    decisions = [_decision(choice, server, None) for choice, server in choices]
    if len({(decision.kb, decision.lower) for decision in decisions}) > 1:
        return None
    first = decisions[0]
    if volume.version >= V4 and first.kb is not None:
        for choice, server in choices:
            plain, _, work = choice.profile.name.partition(WITH)
            if (server.provider, plain) == (GENERIC, GENERIC):
                workload = policy.workload(work)
                for named in compiled.by_implementation(azure=azure):
                    later = (named.working(workload) if workload else named).read_ahead
                    if later is None or (later.kb or 0) < first.kb:
                        return None
    return first


def join_decisions(placed: Sequence[tuple[Mount, Place]]) -> Decision:
    """Return the decision on a superblock, given the places of its mounts; there must be a mount.

    The largest value counts. Mounts in other namespaces count only where the host's own namespace has no
    mount of the superblock.
    """
    deciding = [pair for pair in placed if not pair[0].foreign] or placed
    decisions = [
        _decision(where.choice, where.endpoint, mount.options.number("rsize")) for mount, where in deciding
    ]
    best = max(decisions, key=lambda decision: (decision.kb or 0, not decision.lower))
    values = sorted({decision.kb for decision in decisions if decision.kb is not None})
    if len(values) <= 1:
        return best
    others = " and ".join(str(value) for value in values)
    why = f"{best.why}; its mounts ask for {others} KiB, the largest counts"
    return replace(best, why=why, conflict=True)


def _volume_choices(
    compiled: Matcher, volume: Volume, servers: tuple[NfsClient, ...], tunnels: tuple[Tunnel, ...]
) -> list[tuple[Choice, Endpoint]]:
    """Return every possible profile of a superblock, for each possible name of its server."""
    at = (volume.version, volume.address, volume.port)
    rows = tuple(row for row in servers if (row.version, row.address, row.port) == at)
    # During the first mount of a client it has a single user; NFSv4 holds the pseudo-root as well. With more
    # users, another mount may have come first, or the export lies deeper; a client has only the first mount's
    # name (fs/nfs/client.c, nfs_get_client).
    shared = any(row.users > (2 if row.version >= V4 else 1) for row in rows)
    choices: list[tuple[Choice, Endpoint]] = []
    for host in dict.fromkeys([*(row.hostname for row in rows), volume.address]):
        server = compiled.providers.resolve(host, volume.address, volume.port, rows, tunnels)
        known: Subject = subject(host, volume.address, server)
        if shared:
            known = replace(known, unnamed=True)
        choices.extend((choice, server) for choice in compiled.choices(known, server))
    return choices if rows else []


def _decision(choice: Choice, server: Endpoint, rsize: int | None) -> Decision:
    profile = choice.profile
    kb = read_ahead_kb(profile.read_ahead, rsize, profile.read_ahead_max_kb)
    return Decision(kb, profile.name, server.provider, profile.lower, choice.why)
