"""One row for each visible mount: a snapshot and a policy to what people want to see."""

from __future__ import annotations

from nfstuned.core.policy import decide
from nfstuned.model.kernel import Mount, MountStats
from nfstuned.model.policy import Policy, Profile
from nfstuned.model.status import StatusRow
from nfstuned.model.work import Request, Snapshot, Superblock
from nfstuned.parse.options import parse_options
from nfstuned.parse.utab import FILE as UTAB

_NO_POLICY = Policy(profiles=())


def status(snapshot: Snapshot, policy: Policy | None) -> tuple[StatusRow, ...]:
    """Return one row a mount, in the order of their mount points; without a policy no row has a target."""
    stats = {(stanza.source, stanza.point): stanza for stanza in snapshot.stats}
    rows = [
        _row(mount, superblock, snapshot, policy, _connections(mount, superblock, stats))
        for superblock in snapshot.superblocks
        for mount in superblock.mounts
    ]
    return tuple(sorted(rows, key=lambda row: row.mount_point))


def hidden(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the superblocks in use without a visible mount: lazily unmounted, or out of sight."""
    return tuple(superblock.device for superblock in snapshot.superblocks if not superblock.mounts)


def requested_nconnect(mount: Mount, requests: tuple[Request, ...]) -> int | None:
    """Return the nconnect that `mount` asked for, None when it did not ask.

    utab says what mount.nfs was really given, so that fstab counts only for a mount which utab does not know.
    Of several rows the last counts: it is the mount on top.
    """
    mine = [request for request in requests if _place(request) == _place(mount)]
    actual = [request for request in mine if request.file == UTAB] or mine
    return parse_options(actual[-1].options).number("nconnect") if actual else None


def _row(
    mount: Mount, superblock: Superblock, snapshot: Snapshot, policy: Policy | None, connections: int | None
) -> StatusRow:
    decision = decide(policy or _NO_POLICY, superblock, snapshot)
    profile = _profile(policy, decision.profile)
    return StatusRow(
        mount_point=mount.point,
        source=mount.source,
        fstype=mount.fstype,
        device=mount.device,
        provider=decision.provider,
        profile=None if policy is None else decision.profile,
        read_ahead_kb=superblock.read_ahead_kb,
        read_ahead_target_kb=None if decision.kb is None else decision.kb - decision.kb % snapshot.page_kb,
        nconnect_requested=requested_nconnect(mount, snapshot.requests),
        nconnect=mount.options.number("nconnect") or 1,
        nconnect_target=profile.nconnect,
        connections=connections,
        nconnect_max=profile.nconnect_max,
        lower=decision.lower,
        undone=superblock.record is not None and superblock.record.undone,
    )


def _profile(policy: Policy | None, name: str) -> Profile:
    try:
        return (policy or _NO_POLICY).profile(name)
    except KeyError:
        return Profile(name)


def _connections(
    mount: Mount, superblock: Superblock, stats: dict[tuple[str, str], MountStats]
) -> int | None:
    """Return how many transports the mount has; another mount of its superblock has the same ones.

    mountstats has no device number, and only this namespace's mounts.
    """
    for known in (mount, *superblock.mounts):
        stanza = stats.get((known.source, known.point))
        if stanza is not None:
            return len(stanza.transports)
    return None


def _place(value: Mount | Request) -> tuple[str, str]:
    """Return source and mount point as they compare: people write trailing slashes, the kernel does not."""
    return value.source.rstrip("/"), value.point.rstrip("/")
