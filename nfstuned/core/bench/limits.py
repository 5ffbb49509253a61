"""The counters of a run, and the limit of a job by these counters, in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median

from nfstuned.core.samples.sample import kinds
from nfstuned.model.bench import Beside, Delivered, Engine, Job, Pattern, Run
from nfstuned.model.samples import Sample
from nfstuned.model.system import TUNNEL_FULL

CACHED = 0.9
"""The least part of a job's reads that comes from the server; with less the client's memory was measured."""
BUSY = 0.95
LOST = 0.001
"""Retransmissions a request."""
WAITS = 1.0
"""A request waits in the client as long as the server takes for it."""
CARRIES = 0.1
"""The least part of an equal share of the requests with which a connection counts as used."""
NEARLY_ALL = 0.9
"""Of the requests, on one of several connections."""
AT_LIMIT = 0.9
"""Of the VM's limit for sending, as in NFS510."""


@dataclass(frozen=True, slots=True)
class Meters:
    """The growth of the counters between both ends of a run; None where they could not be read."""

    sample: Sample | None = None
    sends: Sequence[int] = ()
    """Requests that each connection sent; empty where that is not known."""
    busy: Sequence[float] = ()
    """Of each processor, from 0 to 1."""
    sent_bytes_per_s: float | None = None
    sent_limit_bytes_per_s: float | None = None
    tunnel_processors: float | None = None


def beside(job: Job, meters: Meters, delivered: Delivered | None) -> Beside:
    """Return the kernel's figures of a run."""
    busy, sends, sample = meters.busy, meters.sends, meters.sample
    counted = Beside(
        carrying=carrying(sends) if sends else None,
        busiest_connection=max(sends) / sum(sends) if sum(sends) else None,
        sent_bytes_per_s=meters.sent_bytes_per_s,
        sent_limit_bytes_per_s=meters.sent_limit_bytes_per_s,
        tunnel_processors=meters.tunnel_processors,
        busy_processors=sum(busy) / len(busy) if busy else None,
        busiest_processor=max(busy) if busy else None,
    )
    if sample is None:
        return counted
    operation = kinds(sample).get("read" if job.pattern.reads else "write")
    served = sample.server_read_bytes_per_s if job.pattern.reads else sample.server_write_bytes_per_s
    return replace(
        counted,
        server_bytes_per_s=served,
        over_fetch=_over_fetch(job, sample, delivered),
        rtt_ms=operation.rtt_ms if operation else None,
        queue_ms=operation.queue_ms if operation else None,
        retransmissions_per_s=operation.retrans_per_s if operation else None,
        in_flight=sample.transport.in_flight,
        backlog=sample.transport.backlog,
        connections=sample.transport.connections,
    )


def carrying(sends: Sequence[int]) -> int:
    """Return how many connections carried requests."""
    least = CARRIES * sum(sends) / len(sends) if sends else 0
    return sum(each > 0 and each >= least for each in sends)


def _over_fetch(job: Job, sample: Sample, delivered: Delivered | None) -> float | None:
    """Return the bytes that the server sent for each that programs read.

    The kernel does not count reads of mapped files: there fio's own bytes count, unless some of them were
    read in a ramp, which fio leaves out.
    """
    if not job.pattern.reads:
        return None
    if job.engine is not Engine.MAPPED:
        return sample.over_fetch_ratio
    if delivered is None or job.ramp_s or not delivered.bytes_per_s:
        return None
    read = delivered.bytes_per_s * delivered.seconds
    return sample.server_read_bytes_per_s * sample.interval_s / read if read else None


def unlike_setting(run: Run) -> str:
    """Return why a run was not made with the connections of its setting, "" where it was."""
    wanted, had = run.step.setting.connections, run.beside.carrying
    if wanted is None or had == wanted:
        return ""
    if had is None:
        return "the kernel does not show what its connections carried"
    return f"{had} of {wanted} connections carried its requests"


def from_memory(run: Run) -> str:
    """Return why a run shows nothing of the server, "" where it does: its reads came from the page cache."""
    ratio = run.beside.over_fetch
    if ratio is None or ratio >= CACHED:
        return ""
    return f"{1 - ratio:.0%} of what was read came from this machine's memory, not from the server"


def find_limit(job: Job, runs: Sequence[Run]) -> str:
    """Return the limit of a job, by the medians of its runs; "" where the counters do not show it."""
    counted = [run for run in runs if run.step.job == job and run.delivered is not None and not run.problem]
    medians = Beside(**{
        field.name: median(values)
        for field in fields(Beside)
        if (values := [v for run in counted if (v := getattr(run.beside, field.name)) is not None])
    })  # fmt: skip
    if not counted:
        return ""
    delivered = [run.delivered for run in counted if run.delivered is not None]
    lost, operations = medians.retransmissions_per_s, median(each.operations_per_s for each in delivered)
    if lost is not None and operations and lost / operations > LOST:
        return f"the network loses packets: {lost:.1f} requests a second had to be sent again"
    return next(iter((*_of_machine(medians), *_of_mount(job, delivered, medians))), "")


def _of_machine(counted: Beside) -> Iterator[str]:
    """Yield the limits of this machine that were reached."""
    tunnel, connections = counted.tunnel_processors, counted.connections
    if tunnel is not None and connections is not None and tunnel >= TUNNEL_FULL * connections:
        used = f"the TLS tunnel used {tunnel:.1f} processors"
        yield f"{used}, and has one for each connection: {connections:.0f}"
    busiest = counted.busiest_processor
    if busiest is not None and busiest >= BUSY:
        yield f"a processor of this machine was busy {busiest:.0%} of the time"
    sent, most = counted.sent_bytes_per_s, counted.sent_limit_bytes_per_s
    if sent is not None and most is not None and sent >= AT_LIMIT * most:
        yield f"the VM sent {sent * 8 / 1e6:,.0f} Mbit/s, and by its size it may send {most * 8 / 1e6:,.0f}"


def _of_mount(job: Job, delivered: Sequence[Delivered], counted: Beside) -> Iterator[str]:
    """Yield the limits of the mount's connections and its server, the nearest first."""
    part, connections, rtt, queue = (
        counted.busiest_connection, counted.connections, counted.rtt_ms, counted.queue_ms
    )  # fmt: skip
    if part is not None and connections is not None and connections > 1 and part >= NEARLY_ALL:
        yield f"of {connections:.0f} connections one carried {part:.0%} of the requests"
    if queue is not None and rtt is not None and queue >= WAITS * rtt:
        yield (
            f"requests waited {queue:.1f} ms in this client before they were sent, and {rtt:.1f} ms for the "
            "server: more connections (nconnect) let more of them go at once"
        )
    if job.depth * job.threads == 1 and (job.direct or job.pattern is not Pattern.READ):
        latency = median(each.latency_ms for each in delivered)
        only = "only more of them at once, or a nearer server, gives more"
        yield f"one request at a time, each of {latency:.2f} ms: {only}"
    if rtt is not None:
        yield f"the server and the way to it: a request was answered {rtt:.1f} ms after it was sent"
