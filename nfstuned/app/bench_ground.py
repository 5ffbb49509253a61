"""The mount that bench measures, and the growth of its counters during a run."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from nfstuned.core.mounts.targets import mount_profile
from nfstuned.core.policy.decision import classify, decide, wanted_connections
from nfstuned.core.samples.rates import make_look
from nfstuned.host.bench.guard import OwnMounts
from nfstuned.host.observe import observe_host, observe_stanzas, observe_superblocks
from nfstuned.host.root import Root
from nfstuned.model.bench import MeasuredMount
from nfstuned.model.kernel import Mount, MountStats, whole_pages
from nfstuned.model.mounts import Snapshot, Superblock
from nfstuned.model.policy import Policy
from nfstuned.model.samples import Counted, Look
from nfstuned.parse.proc.cifs import read_smb_mounts
from nfstuned.parse.proc.mountinfo import SMB


class CannotMeasureError(Exception):
    """Why a mount is not measured."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The mount that is measured, in its state before the measurement."""

    root: Root
    snapshot: Snapshot
    superblock: Superblock
    mount: Mount
    target_kb: int | None
    """The read-ahead of its profile."""
    profile: str
    target_connections: int | None = None
    """The number of connections that its profile asks for."""

    @classmethod
    def find(cls, root: Root, policy: Policy, folder: str) -> Ground:
        """Return the NFS or SMB mount that a folder is on, without touching it. Raises CannotMeasureError."""
        snapshot = observe_host(root)
        # cifs names its bdis by a number of their own ("cifs-1"), from which no mount follows.
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
            chosen = classify(policy, mount, None, snapshot).choice.profile
            profile = mount_profile(policy, chosen, mount.fstype)
            return cls(root, snapshot, superblock, mount, None, profile.name)
        decision = decide(policy, superblock, snapshot)
        kb = None if decision.kb is None else whole_pages(decision.kb, snapshot.page_kb)
        profile = classify(policy, mount, superblock, snapshot).choice.profile
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
        """The number of the mount's connections; None where the kernel does not show it."""
        return len(self._stats.transports) or None if self._stats else None

    @property
    def round_trip_ms(self) -> float | None:
        """The mean time of the quickest kind of operation so far; None where no operation has ended."""
        ended = [op for op in self._stats.ops.values() if op.ops > 0] if self._stats else []
        return min((op.rtt_ms / op.ops for op in ended), default=None)

    @property
    def _stats(self) -> MountStats | None:
        return self.snapshot.stanza_of(self.mount, self.superblock)

    def measured_mount(self, program: str) -> MeasuredMount:
        """Return the mount and the machine for the document; `program` is fio's version."""
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

    def counters(self, own: OwnMounts | None) -> Look:
        """Return the counters of the mount, or of bench's own; a Look without them where unreadable."""
        moment = time.time(), time.monotonic()
        if own is not None:
            stanza = own.stanza()
            shown = stanza and Counted("own", None, (stanza.point,), stanza.source, stanza.point, stanza)
            return Look(*moment, (shown,) if shown else ())
        stanzas = observe_stanzas(self.root)
        if stanzas is None:
            return Look(*moment, ())
        superblocks = make_look(self.snapshot, stanzas, *moment).superblocks
        return Look(*moment, tuple(each for each in superblocks if each.device == self.superblock.device))
