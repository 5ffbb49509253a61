"""The kernel's counters of a run, and the runs that do not count by them."""

from __future__ import annotations

from nfstuned.core.samples.rates import rates, sends_between
from nfstuned.model.bench import Delivered, Engine, Job
from nfstuned.model.samples import Look

_CACHED = 0.9
"""The least part of a job's reads that comes from the server; with less the client's memory was measured."""
_USED = 0.1
"""The least part of an equal share of the requests with which a connection counts as used."""


def over_fetch(job: Job, before: Look, after: Look, delivered: Delivered | None) -> float | None:
    """Return the bytes that the server sent for each byte that programs read; None for writes.

    The kernel does not count reads of mapped files: there fio's own bytes count, unless some of them were
    read in a ramp, which fio leaves out.
    """
    sample = next(iter(rates(before, after)), None)
    if not job.pattern.reads or sample is None:
        return None
    if job.engine is not Engine.MAPPED:
        return sample.over_fetch_ratio
    if delivered is None or job.ramp_s:
        return None
    read = delivered.bytes_per_s * delivered.seconds
    return sample.server_read_bytes_per_s * sample.interval_s / read if read else None


def from_memory(ratio: float | None) -> str:
    """Return why a run with this over-fetch does not measure the server; "" where it does."""
    if ratio is None or ratio >= _CACHED:
        return ""
    return f"{1 - ratio:.0%} of the bytes read came from this machine's memory, not from the server"


def unlike_setting(wanted: int | None, before: Look, after: Look) -> str:
    """Return why a run was not made with the connections of its setting, "" where it was."""
    if wanted is None:
        return ""
    sends = next(iter(sends_between(before, after).values()), None)
    if sends is None:
        return "the kernel does not show the requests of its connections"
    used = used_connections(sends)
    return "" if used == wanted else f"{used} of {wanted} connections carried its requests"


def used_connections(sends: tuple[int, ...]) -> int:
    """Return the number of connections that carried requests."""
    least = _USED * sum(sends) / len(sends) if sends else 0
    return sum(each > 0 and each >= least for each in sends)
