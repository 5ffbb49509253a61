"""The mount that bench measures, and the counters at both ends of a run: of the mount, machine and tunnel."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from nfstuned.core.bench.limits import Meters
from nfstuned.core.mounts.targets import mount_profile
from nfstuned.core.policy.decision import decide, place, wanted_connections
from nfstuned.core.rules.nfs5_host import egress
from nfstuned.core.samples.rates import connection_sends, make_look, rates
from nfstuned.host.bench.guard import OwnMounts
from nfstuned.host.bench.machine import (
    Processors,
    busy_between,
    observe_processors,
    observe_sent,
    uplinks,
)
from nfstuned.host.network.outside import vm_size
from nfstuned.host.observe import observe_host, observe_stanzas, observe_superblocks
from nfstuned.host.root import Root
from nfstuned.model.bench import MeasuredMount
from nfstuned.model.kernel import Mount, MountStats, whole_pages
from nfstuned.model.mounts import Snapshot, Superblock
from nfstuned.model.policy import Policy
from nfstuned.model.samples import Counted, Look
from nfstuned.parse.proc.cifs import read_smb_mounts
from nfstuned.parse.proc.mountinfo import SMB
from nfstuned.parse.proc.processes import read_tunnel_threads

_BITS = 8


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
            chosen = place(policy, mount, None, snapshot).choice.profile
            profile = mount_profile(policy, chosen, mount.fstype)
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


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters at a moment; None where one could not be read."""

    processors: Processors
    counted: Counted | None
    time: float
    monotonic_s: float
    sent: int | None
    tunnel_s: float | None


class Instruments:
    """The counters that are read at both ends of each run."""

    def __init__(self, ground: Ground) -> None:
        """Find the VM's size, which an Azure VM answers within a second, and the tunnel: both stay."""
        self._ground = ground
        snapshot, options = ground.snapshot, ground.mount.options
        size = vm_size()[0] if snapshot.azure and ground.root.prefix == "/" else None
        most = egress(size) if size else None
        self._limit = most.mbit_per_s * 1e6 / _BITS if most else None
        self._uplinks = uplinks(ground.root) if most else ()
        # A mount through a local TLS proxy has the proxy's port.
        address, port = options.get("addr") or "", options.number("port")
        is_local = address.startswith("127.") or address == "::1"
        pid_files = (
            each.pid_file for each in snapshot.tunnels if is_local and each.port and each.port == port
        )
        self._pid_file = next(pid_files, "")

    def read(self, own: OwnMounts | None) -> Reading:
        """Return the counters, those of the mount or of bench's own."""
        now, monotonic_s, root = time.time(), time.monotonic(), self._ground.root
        threads = read_tunnel_threads(root, self._pid_file)
        return Reading(
            processors=observe_processors(root),
            counted=self._counted() if own is None else _counted_own(own),
            time=now,
            monotonic_s=monotonic_s,
            sent=observe_sent(root, self._uplinks) if self._uplinks else None,
            tunnel_s=threads.all_s if threads else None,
        )

    def _counted(self) -> Counted | None:
        stanzas = observe_stanzas(self._ground.root)
        if stanzas is None:
            return None
        shown = make_look(self._ground.snapshot, stanzas, 0.0, 0.0).superblocks
        return next((each for each in shown if each.device == self._ground.superblock.device), None)

    def between(self, before: Reading, after: Reading) -> Meters:
        """Return the growth between two readings."""
        seconds = after.monotonic_s - before.monotonic_s
        pair = (before.counted, after.counted)
        old, new = (Look(each.time, each.monotonic_s, _some(each.counted)) for each in (before, after))
        return Meters(
            sample=next(iter(rates(old, new)), None),
            sends=connection_sends(pair[0].stats, pair[1].stats) if pair[0] and pair[1] else (),
            busy=busy_between(before.processors, after.processors),
            sent_bytes_per_s=_rate(before.sent, after.sent, seconds),
            sent_limit_bytes_per_s=self._limit,
            tunnel_processors=_rate(before.tunnel_s, after.tunnel_s, seconds),
        )


def _counted_own(own: OwnMounts) -> Counted | None:
    """Return the counters of bench's own mount, which is alone on its transport group."""
    stanza = own.stanza()
    return stanza and Counted("own", None, (stanza.point,), stanza.source, stanza.point, stanza)


def _some(counted: Counted | None) -> tuple[Counted, ...]:
    return () if counted is None else (counted,)


def _rate(before: float | None, after: float | None, seconds: float) -> float | None:
    if before is None or after is None or after < before or seconds <= 0:
        return None
    return (after - before) / seconds
