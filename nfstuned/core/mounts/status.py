"""The rows of `nfstuned status`, one for each visible mount, from a snapshot and a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nfstuned.core.mounts.options import carried
from nfstuned.core.mounts.requests import Intents, asked_options, last_asked
from nfstuned.core.policy.decision import classify, decide, wanted_connections
from nfstuned.core.udev.writers import file_writers, final_writers
from nfstuned.model.kernel import Mount, nfs_version, version_text, whole_pages
from nfstuned.model.mounts import Hold, PodVolume, Snapshot, Superblock
from nfstuned.model.policy import Policy, Profile
from nfstuned.model.stalls import Stalled
from nfstuned.model.udev import UdevFile, is_mask

if TYPE_CHECKING:
    from nfstuned.model.effect import Seen


@dataclass(frozen=True, slots=True)
class StatusRow:
    """A visible mount: its values, those that it asked for, and those of its profile.

    `None` means not known or, for a target, no opinion. Read-aheads are in KiB.
    """

    mount_point: str
    source: str
    fstype: str
    device: str
    provider: str
    profile: str | None
    """None when the configuration is invalid: then there are no targets either."""
    read_ahead_kb: int | None
    read_ahead_target_kb: int | None
    nconnect_requested: int | None
    nconnect: int
    nconnect_target: int | None
    connections: int | None
    """Transports that the kernel lists; `nconnect` is only how many it meant to make."""
    nconnect_depends: str | None = None
    """The condition of the number where the vendor names several; `nconnect_target` is None then."""
    nconnect_max: int | None = None
    lower: bool = False
    """Whether a read-ahead above the target counts as wrong."""
    nconnect_requested_by: str | None = None
    """The file and line that ask for it, `/etc/fstab:7`; utab's where no other file asks for the same."""
    nconnect_carrying: int | None = None
    """How many carry requests: more than `nconnect` where some were added while it was mounted."""
    adapted: bool = False
    """The mount's reads have moved the target from the profile's number."""
    hold: Hold | None = None
    """Why the service leaves its read-ahead alone."""
    stalled_s: float | None = None
    """For how long its users have waited for the server, 0 where they do not; None: nobody knows."""
    recovering: bool = False
    """The server answers again, and serves nobody yet."""
    stalled_operations: tuple[str, ...] = ()
    """The operations that they wait for, the most frequent first."""
    seen: Seen | None = None
    """The service's knowledge of its reads."""
    volume: PodVolume | None = None
    """The volume that a kubelet mounted here for a pod."""
    label: str = ""
    """Its volume and pod where a kubelet mounted it, else ""."""
    path: str = ""
    """The mount point with the driver and the handle of its volume where it has a label, else ""."""


@dataclass(frozen=True, slots=True)
class StatusRules:
    """A file of udev rules that writes the read-ahead of NFS mounts."""

    file: str
    masked_by: str | None = None
    """The file of the service that keeps it from writing; None where it writes."""


def status(
    snapshot: Snapshot,
    policy: Policy,
    stalled: Stalled | None = None,
    seen: Mapping[tuple[str, int | None], Seen] | None = None,
    *,
    valid: bool = True,
) -> tuple[StatusRow, ...]:
    """Return a row for each mount, in the order of their mount points.

    Where the configuration is not `valid`, the policy is the built-in one, and no row has a target.
    """
    look = _Look(
        snapshot=snapshot,
        policy=policy,
        valid=valid,
        stalled=stalled,
        seen=seen or {},
        intents=Intents(snapshot.requests, snapshot.settings, snapshot.tunnels),
    )
    rows = [
        _row(mount, superblock, look) for superblock in snapshot.superblocks for mount in superblock.mounts
    ]
    return tuple(sorted(rows, key=lambda row: row.mount_point))


def hidden(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the superblocks in use without a visible mount: lazily unmounted, or out of sight."""
    return tuple(superblock.device for superblock in snapshot.superblocks if not superblock.mounts)


def status_rules(files: Sequence[UdevFile]) -> tuple[StatusRules, ...]:
    """Return the files of udev rules that write read-aheads, and those that the service masks."""
    masked = [StatusRules(hidden, file.path) for file in files if is_mask(file.text) for hidden in file.hides]
    writing = dict.fromkeys(writer.file for writer in final_writers(files, file_writers(files)))
    return (*masked, *(StatusRules(file) for file in writing))


@dataclass(frozen=True, slots=True)
class _Look:
    """The facts that all rows of a look share."""

    snapshot: Snapshot
    policy: Policy
    valid: bool
    stalled: Stalled | None
    seen: Mapping[tuple[str, int | None], Seen]
    intents: Intents


def _row(mount: Mount, superblock: Superblock, look: _Look) -> StatusRow:
    decision = decide(look.policy, superblock, look.snapshot)
    if not look.valid:
        decision = replace(decision, kb=None, lower=False, adapted_kb=None)
    profile = Profile(decision.profile)
    if look.valid:  # the mount's own: mounts of a superblock share the read-ahead alone
        profile = classify(look.policy, mount, superblock, look.snapshot).choice.profile
    asked = last_asked(look.intents.of(mount), "nconnect")
    stats = look.snapshot.stanza_of(mount, superblock)
    now = mount.options.number("nconnect") or 1
    stalls = look.stalled.stalls if look.stalled is not None else {}
    stall = stalls.get(superblock.key)
    numbers = nfs_version(mount.fstype, mount.options)
    named = None if numbers is None else version_text(numbers)
    target, read_ahead = wanted_connections(profile, named), decision.target_kb
    return StatusRow(
        mount_point=mount.point,
        source=mount.source,
        fstype=mount.fstype,
        device=mount.device,
        provider=decision.provider,
        profile=decision.profile if look.valid else None,
        read_ahead_kb=superblock.read_ahead_kb,
        read_ahead_target_kb=None if read_ahead is None else whole_pages(read_ahead, look.snapshot.page_kb),
        nconnect_requested=asked_options([asked]).number("nconnect") if asked else None,
        nconnect_requested_by=None if asked is None else asked.origin,
        nconnect=now,
        nconnect_target=target,
        nconnect_carrying=carried(mount.options, stats),
        connections=None if stats is None else len(stats.transports) or None,
        nconnect_depends=profile.nconnect_depends,
        nconnect_max=profile.most_connections(named),
        lower=decision.lower,
        adapted=decision.adapted_kb is not None,
        hold=superblock.record.hold if superblock.record is not None else None,
        stalled_s=None if look.stalled is None else look.stalled.now_s - stall.since_s if stall else 0.0,
        recovering=stall.recovering if stall else False,
        stalled_operations=stall.operations if stall else (),
        seen=look.seen.get(superblock.key),
    )
