"""The mount that bench measures: which mount a folder is on, and what the kernel says of that mount."""

from __future__ import annotations

import os
from dataclasses import dataclass

from nfstuned.core.mounts.targets import profile_of
from nfstuned.core.policy.decision import decide, place, wanted_connections
from nfstuned.host.observe import observe, observe_superblocks
from nfstuned.host.root import Root
from nfstuned.model.bench import MeasuredMount
from nfstuned.model.kernel import Mount, MountStats, whole_pages
from nfstuned.model.mounts import Snapshot, Superblock
from nfstuned.model.policy import Policy
from nfstuned.parse.proc.cifs import read_smb_mounts
from nfstuned.parse.proc.mountinfo import SMB


class CannotMeasureError(Exception):
    """Why a mount is not measured."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The mount that is measured, as it was found."""

    root: Root
    snapshot: Snapshot
    superblock: Superblock
    mount: Mount
    target_kb: int | None
    """What its profile asks for."""
    profile: str
    target_connections: int | None = None
    """The number of connections that its profile asks for."""

    @classmethod
    def find(cls, root: Root, policy: Policy, folder: str) -> Ground:
        """Return the NFS or SMB mount that a folder is on, without touching it. Raises CannotMeasureError."""
        snapshot = observe(root)
        # cifs names its bdis by a number of their own ("cifs-1"): which is whose cannot be told.
        smb = [Superblock(mount.device, None, None, (mount,)) for mount in read_smb_mounts(root)[0]]
        inside = [
            (len(mount.point), superblock, mount)
            for superblock in (*snapshot.superblocks, *smb)
            for mount in superblock.mounts
            if folder == mount.point or folder.startswith(mount.point.rstrip("/") + "/")
        ]
        if not inside:
            raise CannotMeasureError(f"{folder} is on no NFS or SMB mount: see nfstuned status")
        _, superblock, mount = max(inside, key=lambda entry: entry[0])
        if mount.fstype in SMB.types:
            chosen = place(policy, mount, None, snapshot).choice.profile
            profile = profile_of(policy, chosen, mount.fstype)
            return cls(root, snapshot, superblock, mount, None, profile.name)
        decision = decide(policy, superblock, snapshot)
        kb = None if decision.kb is None else whole_pages(decision.kb, snapshot.page_kb)
        profile = place(policy, mount, superblock, snapshot).choice.profile
        count = wanted_connections(profile, mount.options.get("vers"))
        return cls(root, snapshot, superblock, mount, kb, decision.profile, count)

    @property
    def is_mounted(self) -> bool:
        """Whether the mount is still there."""
        seen = observe_superblocks(self.root, deep=False).superblocks
        nfs = [mount for superblock in seen for mount in superblock.mounts]
        return any(mount.mount_id == self.mount.mount_id for mount in (*nfs, *read_smb_mounts(self.root)[0]))

    @property
    def connections(self) -> int | None:
        """How many connections the mount has; None where the kernel does not show that."""
        return len(self._stats.transports) or None if self._stats else None

    @property
    def round_trip_ms(self) -> float | None:
        """How long the quickest kind of operation took so far, in the mean; None where none has ended."""
        ended = [op for op in self._stats.ops.values() if op.ops > 0] if self._stats else []
        return min((op.rtt_ms / op.ops for op in ended), default=None)

    @property
    def _stats(self) -> MountStats | None:
        return self.snapshot.stanza_of(self.mount, self.superblock)

    def subject(self, program: str) -> MeasuredMount:
        """Return what is known of the mount and the machine."""
        return MeasuredMount(
            mount_point=self.mount.point,
            source=self.mount.source,
            fstype=self.mount.fstype,
            profile=self.profile,
            options=",".join(
                name if value is None else f"{name}={value}" for name, value in self.mount.options.pairs
            ),
            read_ahead_kb=self.superblock.read_ahead_kb,
            connections=self.connections,
            kernel=self.snapshot.kernel.text if self.snapshot.kernel else "",
            fio=program,
            host=os.uname().nodename,
        )
