"""The plan of a measurement: the jobs and settings in their order, its duration, and the search.

The search finds the best read-ahead with few measurements. Throughput is expected to rise with the read-ahead
up to some value, and above it to stay or to fall.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from nfstuned.model.bench import BenchSetting, Job, Suite

WARM_UP = 0
"""The turn that does not count: the first run of a job fills the server's caches."""
_BETWEEN_S = 1.0
"""About the time in which fio begins and ends a job."""
ROUND_TRIPS = 80
"""The least duration of a run through the page cache: TCP's window grows by the round trip, and after a pause
again from the start (Documentation/networking/ip-sysctl.rst, tcp_slow_start_after_idle)."""
_LONGEST_S = 60.0
"""No link is so long that a run needs more; a server that answers slowly is not a long link."""
LAYOUT_BYTES_PER_S = 100e6
"""A guess, for the estimate of the time that the files take; nothing depends on it."""


CLOSE = 0.03
"""A share of the best throughput: values within it of the best are equal, and the smallest wastes least."""
_POWERS_KB = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)
MOST_TRIED = len(_POWERS_KB) + 2
"""No search tries more values: the powers, the policy's and the present one."""
LIKELY_TRIED = 6
"""About how many values a search tries, for the estimate of its time."""


class Step(NamedTuple):
    """A job to be run under a setting."""

    turn: int
    job: Job
    setting: BenchSetting


def bounds(suite: Suite, settings: Sequence[BenchSetting], rate_bytes_per_s: int) -> tuple[int, int]:
    """Return the most bytes and blocks that all runs of a suite move under a rate."""
    moved = [
        ((step.job.ramp_s + step.job.runtime_s) * rate_bytes_per_s, step.job.block_bytes)
        for step in steps(suite, settings)
    ]
    return math.ceil(sum(size for size, _ in moved)), math.ceil(sum(size / block for size, block in moved))


def with_jobs(suite: Suite, names: Sequence[str]) -> Suite:
    """Return the suite with these of its jobs, all without a name. Raises ValueError for an unknown name."""
    known = [job.name for job in suite.jobs]
    for name in names:
        if name not in known:
            raise ValueError(f"suite {suite.name} has no job {name!r}, but {', '.join(known)}")
    return replace(suite, jobs=tuple(job for job in suite.jobs if not names or job.name in names))


def scaled(suite: Suite, runtime_s: float | None, file_bytes: int | None, repeats: int | None) -> Suite:
    """Return the suite with other times, sizes and repeats, where they are given.

    A file stays a whole number of blocks, and at least one for each of its job's requests under way. A ramp
    is never longer than its run.
    """
    jobs = tuple(_scaled(job, runtime_s, file_bytes) for job in suite.jobs)
    return replace(suite, jobs=jobs, repeats=repeats if repeats is not None else suite.repeats)


def _scaled(job: Job, runtime_s: float | None, file_bytes: int | None) -> Job:
    if runtime_s is not None:
        ramp_s = min(job.ramp_s, runtime_s / 2)
        job = replace(job, runtime_s=runtime_s, ramp_s=ramp_s)
    if file_bytes is not None:
        each = file_bytes // (job.threads * job.files)
        least = job.block_bytes * job.depth
        job = replace(job, file_bytes=max(each - each % job.block_bytes, least))
    return job


def with_long_runs(suite: Suite, round_trip_ms: float) -> Suite:
    """Return the suite with runs of ROUND_TRIPS at least, of jobs that a read-ahead can change."""
    least_s = min(math.ceil(ROUND_TRIPS * round_trip_ms / 1000), _LONGEST_S)
    jobs = (job if job.direct else replace(job, runtime_s=max(job.runtime_s, least_s)) for job in suite.jobs)
    return replace(suite, jobs=tuple(jobs))


def steps(suite: Suite, settings: Sequence[BenchSetting]) -> tuple[Step, ...]:
    """Return all runs in their order: job by job, and each job under the settings by turns.

    So a change from outside, such as the load of a server that others use, meets all settings alike
    (A B A B). Every other turn begins with the last setting: no setting always comes after the same one.
    """
    planned: list[Step] = []
    for job in suite.jobs:
        for turn in range(WARM_UP, suite.repeats + 1):
            ordered = settings if turn % 2 else tuple(reversed(settings))
            planned.extend(Step(turn, job, setting) for setting in ordered)
    return tuple(planned)


def seconds(suite: Suite, settings: Sequence[BenchSetting]) -> float:
    """Return about how long the suite takes, its files' making among it."""
    runs = sum(run_seconds(step.job) for step in steps(suite, settings))
    return runs + suite.bytes_on_disk / LAYOUT_BYTES_PER_S


def run_seconds(job: Job) -> float:
    """Return about how long a run of a job takes."""
    return job.ramp_s + job.runtime_s + _BETWEEN_S


def candidates(target_kb: int | None, present_kb: int | None) -> tuple[int, ...]:
    """Return the values that may be the answer, the smallest first: powers of two, the policy's, the present.

    A power of two is left out where `target_kb` or `present_kb` differs from it by an eighth of it or less.
    """
    given = {kb for kb in (target_kb, present_kb) if kb}
    powers = {power for power in _POWERS_KB if not any(abs(kb - power) * 8 <= power for kb in given)}
    return tuple(sorted(given | powers))


def next_value(values: Sequence[int], measured: Mapping[int, float]) -> int | None:
    """Return the value to measure next; None when both neighbours of the best value are measured.

    `values` are the candidates in order, `measured` has the throughput of each measured value. Both ends and
    the middle come first. Later values halve the wider gap between the best value, which has the highest
    throughput, and the nearest measured value on either side.
    """
    last = len(values) - 1
    for index in (0, last, last // 2):
        if values[index] not in measured:
            return values[index]
    known = [index for index, value in enumerate(values) if value in measured]
    best = max(known, key=lambda index: measured[values[index]])
    near = (
        max((index for index in known if index < best), default=best),
        min((index for index in known if index > best), default=best),
    )
    gaps = [(abs(index - best), (index + best) // 2) for index in near if abs(index - best) > 1]
    return values[max(gaps)[1]] if gaps else None


def best_value(measured: Mapping[int, float]) -> int:
    """Return the smallest value within CLOSE of the highest throughput. Raises ValueError for no values."""
    most = max(measured.values())
    return min(value for value, throughput in measured.items() if throughput >= most * (1 - CLOSE))
