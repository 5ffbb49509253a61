"""Which read-ahead a superblock should have: the policy's answer, with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nfstuned.core.policy.endpoint import (
    GENERIC,
    NETAPP,
    TUNNEL_PORTS,
    is_loopback,
    resolve,
)
from nfstuned.core.policy.match import Choice, Matcher, Subject, matcher, subject
from nfstuned.core.policy.place import Place, place
from nfstuned.model.kernel import Mount, Server, Volume
from nfstuned.model.mounts import Decision, Endpoint, Snapshot, Superblock, Tunnel
from nfstuned.model.policy import LEAST_KB, MOST_KB, Policy, ReadAhead

V4 = 4
UNSEEN = "no mount of it is visible here"


def read_ahead_kb(wanted: ReadAhead | None, rsize: int | None) -> int | None:
    """Return a read-ahead in KiB within the bounds; None without an opinion, or without the rsize (bytes)."""
    if wanted is None:
        return None
    kb = wanted.kb
    if kb is None:
        if wanted.times_rsize is None or rsize is None:
            return None
        kb = wanted.times_rsize * rsize // 1024
    return max(LEAST_KB, min(MOST_KB, kb))


def decide(policy: Policy, superblock: Superblock, snapshot: Snapshot) -> Decision:
    """Return what `superblock` should have.

    The first [[policy]] entry that means a mount wins, else the profile named as the mount's provider. Mounts
    of one superblock share its read-ahead: where they disagree, the largest wins.
    """
    if superblock.mounts:
        return agree([(mount, place(policy, mount, superblock, snapshot)) for mount in superblock.mounts])
    if superblock.volume is None:
        return Decision(None, GENERIC, GENERIC, lower=False, why=UNSEEN)
    return _least(_of_volume(matcher(policy), superblock.volume, superblock.servers, snapshot.tunnels))


def decide_early(
    policy: Policy,
    volume: Volume,
    servers: tuple[Server, ...],
    tunnels: tuple[Tunnel, ...],
    *,
    azure: bool = True,
) -> Decision | None:
    """Return what a superblock should have before any mount of it is visible; None: wait for mountinfo.

    Called between the kernel's bdi event and the mount's appearance, when only nfsfs knows the superblock.
    There is an answer only when nothing that is still unknown (name, export, mount point, rsize) can change
    it: nfstuned only raises, so a value that is too high would stay. A server that later says NetApp on an
    Azure VM (`azure`) may still raise it.
    """
    known = {tunnel.port for tunnel in tunnels}
    if volume.port in TUNNEL_PORTS and volume.port not in known and is_loopback(volume.address):
        return None
    compiled = matcher(policy)
    choices = _of_volume(compiled, volume, servers, tunnels)
    if not choices or any(
        choice.profile.read_ahead and not choice.profile.read_ahead.kb for choice, _ in choices
    ):
        return None
    decisions = [_decision(choice, place, None) for choice, place in choices]
    if len({(decision.kb, decision.lower) for decision in decisions}) > 1:
        return None
    first = decisions[0]
    may_be_netapp = azure and volume.version >= V4 and GENERIC in {place.provider for _, place in choices}
    if may_be_netapp and first.profile == GENERIC and not _asks_as_much(compiled, first.kb):
        return None
    return first


def _asks_as_much(compiled: Matcher, kb: int | None) -> bool:
    wanted = compiled.profile(NETAPP).read_ahead
    return kb is None or (wanted is not None and (wanted.kb or 0) >= kb)


def agree(placed: Sequence[tuple[Mount, Place]]) -> Decision:
    """Return what a superblock should have, given the places of its mounts; there must be a mount."""
    return _largest(
        [_decision(where.choice, where.endpoint, mount.options.number("rsize")) for mount, where in placed]
    )


def _of_volume(
    compiled: Matcher, volume: Volume, servers: tuple[Server, ...], tunnels: tuple[Tunnel, ...]
) -> list[tuple[Choice, Endpoint]]:
    """Return every profile that a superblock may turn out to have, for each name it may be mounted by."""
    at = (volume.version, volume.address, volume.port)
    rows = tuple(row for row in servers if (row.version, row.address, row.port) == at)
    shared = any(row.users > _first_mount(row) for row in rows)
    choices: list[tuple[Choice, Endpoint]] = []
    for host in dict.fromkeys([*(row.hostname for row in rows), volume.address]):
        place = resolve(host, volume.address, volume.port, rows, tunnels)
        known: Subject = subject(host, volume.address, place)
        if shared:
            known = replace(known, unnamed=True)
        choices.extend((choice, place) for choice in compiled.choices(known, place))
    return choices if rows else []


def _first_mount(row: Server) -> int:
    """Return how many users a client may have while it is sure that its first mount is being made.

    NFSv4 also holds the pseudo-root. With more, another mount may have come first, or the export lies deeper;
    a client only keeps the first mount's name (fs/nfs/client.c, nfs_get_client).
    """
    return 2 if row.version >= V4 else 1


def _decision(choice: Choice, place: Endpoint, rsize: int | None) -> Decision:
    profile = choice.profile
    kb = read_ahead_kb(profile.read_ahead, rsize)
    return Decision(kb, profile.name, place.provider, profile.lower, choice.why)


def _largest(decisions: list[Decision]) -> Decision:
    best = max(decisions, key=lambda decision: (decision.kb or 0, not decision.lower))
    values = sorted({decision.kb for decision in decisions if decision.kb is not None})
    if len(values) <= 1:
        return best
    others = " and ".join(str(value) for value in values)
    why = f"{best.why}; its mounts ask for {others} KiB, the largest counts"
    return replace(best, why=why, conflict=True)


def _least(choices: list[tuple[Choice, Endpoint]]) -> Decision:
    """Return the least that any possible profile asks for: never too much, for nfstuned only raises."""
    if not choices:
        return Decision(None, GENERIC, GENERIC, lower=False, why=UNSEEN)
    decisions = [_decision(choice, place, None) for choice, place in choices]
    best = min(decisions, key=lambda decision: decision.kb or 0)
    if len({(decision.kb, decision.lower) for decision in decisions}) == 1:
        return best
    return replace(best, lower=False, why=f"{best.why}; {UNSEEN}, and this is the least that it may be")
