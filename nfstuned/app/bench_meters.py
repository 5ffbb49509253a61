"""What is counted at both ends of a run: of the mount, its connections, the machine, and its tunnel."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nfstuned.core.bench.limits import Meters, sends_between
from nfstuned.core.rules.nfs5_host import egress
from nfstuned.core.samples.rates import look, rates
from nfstuned.host.bench.machine import (
    Processors,
    busy_between,
    observe_processors,
    observe_sent,
    uplinks,
)
from nfstuned.host.network.outside import vm_size
from nfstuned.host.observe import observe_stanzas
from nfstuned.host.root import Root
from nfstuned.model.kernel import Mount, Stanza
from nfstuned.model.mounts import Snapshot, Superblock, Tunnel
from nfstuned.model.samples import Counted, Look
from nfstuned.parse.proc.processes import read_tunnel_threads

_BITS = 8


@dataclass(frozen=True, slots=True)
class Reading:
    """What the counters said at a moment; None is what could not be read."""

    processors: Processors
    counted: Counted | None
    time: float
    monotonic_s: float
    sent: int | None
    tunnel_s: float | None


OwnStanza = Callable[[], Stanza | None]
"""The counters of a mount of bench's own."""


class Instruments:
    """What is read at both ends of each run."""

    def __init__(self, root: Root, snapshot: Snapshot, superblock: Superblock, mount: Mount) -> None:
        """Ask once what stays: the VM's size, which an Azure VM is told within a second, and the tunnel."""
        self._root = root
        self._snapshot = snapshot
        self._superblock = superblock
        size = vm_size()[0] if snapshot.azure and root.prefix == "/" else None
        most = egress(size) if size else None
        self._limit = most.mbit_per_s * 1e6 / _BITS if most else None
        self._uplinks = uplinks(root) if most else ()
        tunnel = tunnel_of(mount, snapshot.tunnels)
        self._pid_file = tunnel.pid_file if tunnel is not None else ""

    def read(self, own: OwnStanza | None) -> Reading:
        """Return what the counters say now, those of the mount or of bench's own."""
        now, monotonic_s = time.time(), time.monotonic()
        threads = read_tunnel_threads(self._root, self._pid_file)
        return Reading(
            processors=observe_processors(self._root),
            counted=self._counted() if own is None else _as_counted(own()),
            time=now,
            monotonic_s=monotonic_s,
            sent=observe_sent(self._root, self._uplinks) if self._uplinks else None,
            tunnel_s=threads.all_s if threads else None,
        )

    def _counted(self) -> Counted | None:
        stanzas = observe_stanzas(self._root)
        if stanzas is None:
            return None
        shown = look(self._snapshot, stanzas, 0.0, 0.0).superblocks
        return next((each for each in shown if each.device == self._superblock.device), None)

    def between(self, before: Reading, after: Reading) -> Meters:
        """Return what was counted between two readings."""
        seconds = after.monotonic_s - before.monotonic_s
        pair = (before.counted, after.counted)
        old, new = (Look(each.time, each.monotonic_s, _some(each.counted)) for each in (before, after))
        return Meters(
            sample=next(iter(rates(old, new)), None),
            sends=sends_between(pair[0].stats, pair[1].stats) if pair[0] and pair[1] else (),
            busy=busy_between(before.processors, after.processors),
            sent_bytes_per_s=_rate(before.sent, after.sent, seconds),
            sent_limit_bytes_per_s=self._limit,
            tunnel_processors=_rate(before.tunnel_s, after.tunnel_s, seconds),
        )


def tunnel_of(mount: Mount, tunnels: Sequence[Tunnel]) -> Tunnel | None:
    """Return the local TLS proxy that a mount goes through; None where it goes through none."""
    address = mount.options.get("addr") or ""
    if not address.startswith("127.") and address != "::1":
        return None
    port = mount.options.number("port")
    return next((tunnel for tunnel in tunnels if tunnel.port and tunnel.port == port), None)


def _as_counted(stanza: Stanza | None) -> Counted | None:
    """Return the counters of bench's own mount, which is on a group that nothing else is on."""
    if stanza is None:
        return None
    return Counted("own", None, (stanza.point,), stanza.source, stanza.point, stanza)


def _some(counted: Counted | None) -> tuple[Counted, ...]:
    return () if counted is None else (counted,)


def _rate(before: float | None, after: float | None, seconds: float) -> float | None:
    if before is None or after is None or after < before or seconds <= 0:
        return None
    return (after - before) / seconds
