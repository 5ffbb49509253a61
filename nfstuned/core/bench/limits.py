"""What the kernel counted beside a job, and what limits the job by it, in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from nfstuned.core.samples.sample import kinds
from nfstuned.errors import ParseError
from nfstuned.model.bench import Beside, Delivered, Engine, Job, Pattern, Run
from nfstuned.model.kernel import Stanza
from nfstuned.model.samples import Sample
from nfstuned.model.system import TUNNEL_FULL
from nfstuned.parse.proc.mountstats import parse_transports

CACHED = 0.9
"""Of a job that reads, at least this part is to come from the server, or the client's memory was measured."""
BUSY = 0.95
LOST = 0.001
"""Retransmissions a request."""
WAITS = 1.0
"""A request waits in the client as long as the server takes for it."""
CARRIES = 0.1
"""A connection carries requests when it has this part of what it would have were all alike."""
NEARLY_ALL = 0.9
"""Of the requests, on one of several connections."""
AT_LIMIT = 0.9
"""Of what the VM may send, as in NFS510."""


@dataclass(frozen=True, slots=True)
class Meters:
    """What was read at both ends of a run; None is what could not be read."""

    sample: Sample | None = None
    sends: Sequence[int] = ()
    """Requests that each connection sent; none where that is not known."""
    busy: Sequence[float] = ()
    """Of each processor, from 0 to 1."""
    sent_bytes_per_s: float | None = None
    sent_limit_bytes_per_s: float | None = None
    tunnel_processors: float | None = None


def beside(job: Job, meters: Meters, delivered: Delivered | None) -> Beside:
    """Return what was counted while a job ran."""
    busy, sends, sample = meters.busy, meters.sends, meters.sample
    all_sent = sum(sends)
    counted = Beside(
        carrying=carrying(sends) if sends else None,
        busiest_connection=max(sends) / all_sent if all_sent else None,
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


def sends_between(before: Stanza, after: Stanza) -> tuple[int, ...]:
    """Return how many requests each connection sent; none where one came, went or cannot be read."""
    try:
        old, new = parse_transports(before.transports), parse_transports(after.transports)
    except ParseError:
        return ()
    if len(old) != len(new):
        return ()
    grown = tuple(later.sends - earlier.sends for earlier, later in zip(old, new, strict=True))
    return grown if min(grown, default=0) >= 0 else ()


def carrying(sends: Sequence[int]) -> int:
    """Return how many connections carried requests."""
    least = CARRIES * sum(sends) / len(sends) if sends else 0
    return sum(each > 0 and each >= least for each in sends)


def unlike_setting(run: Run) -> str:
    """Return why a run was not made with the connections of its setting, "" where it was."""
    wanted, had = run.step.setting.connections, run.beside.carrying
    if wanted is None or had == wanted:
        return ""
    if had is None:
        return "the kernel does not show what its connections carried"
    return f"{had} of {wanted} connections carried its requests"


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


Middle = Callable[[Callable[[Run], float | None]], float | None]


def _of_machine(middle: Middle) -> str:
    """Return what of this machine limits a job, "" where nothing of it does."""
    tunnel = middle(lambda run: run.beside.tunnel_processors)
    connections = middle(lambda run: run.beside.connections)
    if tunnel is not None and connections is not None and tunnel >= TUNNEL_FULL * connections:
        return (
            f"the TLS tunnel used {tunnel:.1f} processors, and has one for each connection: {connections:.0f}"
        )
    busiest = middle(lambda run: run.beside.busiest_processor)
    if busiest is not None and busiest >= BUSY:
        return f"a processor of this machine was busy {busiest:.0%} of the time"
    sent = middle(lambda run: run.beside.sent_bytes_per_s)
    most = middle(lambda run: run.beside.sent_limit_bytes_per_s)
    if sent is not None and most is not None and sent >= AT_LIMIT * most:
        return f"the VM sent {sent * 8 / 1e6:,.0f} Mbit/s, and by its size it may send {most * 8 / 1e6:,.0f}"
    return ""


def limit(job: Job, runs: Sequence[Run]) -> str:
    """Return what limits a job, by the medians of its runs; "" where the counters do not tell."""
    counted = [run for run in runs if run.step.job == job and run.delivered is not None and not run.problem]
    if not counted:
        return ""

    def middle(take: Callable[[Run], float | None]) -> float | None:
        values = [value for run in counted if (value := take(run)) is not None]
        return median(values) if values else None

    rtt, queue = middle(lambda run: run.beside.rtt_ms), middle(lambda run: run.beside.queue_ms)
    latency = middle(lambda run: run.delivered.latency_ms if run.delivered else None)
    lost = middle(lambda run: run.beside.retransmissions_per_s)
    operations = middle(lambda run: run.delivered.operations_per_s if run.delivered else None)
    if lost is not None and operations and lost / operations > LOST:
        return f"the network loses packets: {lost:.1f} requests a second had to be sent again"
    text = _of_machine(middle)
    if text:
        return text
    part, connections = (
        middle(lambda run: run.beside.busiest_connection),
        middle(lambda run: run.beside.connections),
    )
    if part is not None and connections is not None and connections > 1 and part >= NEARLY_ALL:
        return f"of {connections:.0f} connections one carried {part:.0%} of the requests"
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
