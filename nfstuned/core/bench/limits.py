"""What the kernel counted beside a job, and what limits the job by it, in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from nfstuned.model.bench import Beside, Delivered, Engine, Job, Pattern, Run
from nfstuned.model.samples import Sample

CACHED = 0.9
"""Of a job that reads, at least this part is to come from the server, or the client's memory was measured."""
BUSY = 0.95
LOST = 0.001
"""Retransmissions a request."""
WAITS = 1.0
"""A request waits in the client as long as the server takes for it."""
_OPERATION = {
    Pattern.READ: "READ",
    Pattern.RANDOM_READ: "READ",
    Pattern.WRITE: "WRITE",
    Pattern.RANDOM_WRITE: "WRITE",
}


def beside(job: Job, sample: Sample | None, busy: Sequence[float], delivered: Delivered | None) -> Beside:
    """Return what was counted while a job ran."""
    processors = (sum(busy) / len(busy), max(busy)) if busy else (None, None)
    if sample is None:
        return Beside(busy_processors=processors[0], busiest_processor=processors[1])
    operation = sample.ops.get(_OPERATION[job.pattern])
    served = sample.server_read_bytes_per_s if job.pattern.reads else sample.server_write_bytes_per_s
    return Beside(
        server_bytes_per_s=served,
        over_fetch=_over_fetch(job, sample, delivered),
        rtt_ms=operation.rtt_ms if operation else None,
        queue_ms=operation.queue_ms if operation else None,
        retransmissions_per_s=operation.retrans_per_s if operation else None,
        in_flight=sample.transport.in_flight,
        backlog=sample.transport.backlog,
        connections=sample.transport.connections,
        busy_processors=processors[0],
        busiest_processor=processors[1],
    )


def _over_fetch(job: Job, sample: Sample, delivered: Delivered | None) -> float | None:
    """Return the bytes that the server sent for each that programs read.

    The kernel does not count what is read of mapped files: there fio's own bytes count, unless some of them
    were read in a ramp, which fio leaves out.
    """
    if not job.pattern.reads:
        return None
    if job.engine is not Engine.MAPPED:
        return sample.over_fetch_ratio
    if delivered is None or job.ramp_s or not delivered.bytes_per_s:
        return None
    read = delivered.bytes_per_s * delivered.seconds
    return sample.server_read_bytes_per_s * sample.interval_s / read if read else None


def from_memory(run: Run) -> str:
    """Return why a run says nothing of the server, "" where it does: its reads came from the page cache."""
    ratio = run.beside.over_fetch
    if ratio is None or ratio >= CACHED:
        return ""
    return f"{1 - ratio:.0%} of what was read came from this machine's memory, not from the server"


def limit(job: Job, runs: Sequence[Run]) -> str:
    """Return what limits a job, by the medians of its runs; "" where the counters do not tell."""
    counted = [run for run in runs if run.step.job == job and run.delivered is not None and not run.problem]
    if not counted:
        return ""

    def middle(take: Callable[[Run], float | None]) -> float | None:
        values = [value for run in counted if (value := take(run)) is not None]
        return median(values) if values else None

    busiest = middle(lambda run: run.beside.busiest_processor)
    rtt, queue = middle(lambda run: run.beside.rtt_ms), middle(lambda run: run.beside.queue_ms)
    latency = middle(lambda run: run.delivered.latency_ms if run.delivered else None)
    lost = middle(lambda run: run.beside.retransmissions_per_s)
    operations = middle(lambda run: run.delivered.operations_per_s if run.delivered else None)
    if lost is not None and operations and lost / operations > LOST:
        return f"the network loses packets: {lost:.1f} requests a second had to be sent again"
    if busiest is not None and busiest >= BUSY:
        return f"a processor of this machine was busy {busiest:.0%} of the time"
    if queue is not None and rtt is not None and queue >= WAITS * rtt:
        return (
            f"requests waited {queue:.1f} ms in this client before they were sent, and {rtt:.1f} ms for the "
            "server: more connections (nconnect) let more of them go at once"
        )
    if (
        job.depth * job.threads == 1
        and latency is not None
        and (job.direct or job.pattern is not Pattern.READ)
    ):
        only = "only more of them at once, or a nearer server, gives more"
        return f"one request at a time, each of {latency:.2f} ms: {only}"
    if rtt is not None:
        return f"the server and the way to it: a request was answered {rtt:.1f} ms after it was sent"
    return ""
