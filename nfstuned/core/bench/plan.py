"""The plan of a measurement: the jobs and settings in their order, its duration, and the search.

The search finds the best read-ahead with few measurements. Throughput is expected to rise with the read-ahead
up to some value, and above it to stay or to fall.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from nfstuned.core.bench.compare import BenchError, spread
from nfstuned.model.bench import BenchSetting, Job, Run, Suite

WARM_UP = 0
"""The turn that does not count: the first run of a job fills the server's caches."""
_BETWEEN_S = 1.0
"""About the time in which fio begins and ends a job."""
ROUND_TRIPS = 80
"""The least duration of a run through the page cache: TCP's window grows by the round trip, and after a pause
again from the start (Documentation/networking/ip-sysctl.rst, tcp_slow_start_after_idle)."""
_LONGEST_S = 60.0
"""No link is so long that a run needs more; a server that answers slowly is not a long link."""
_LAYOUT_BYTES_PER_S = 100e6
"""A guess, for the estimate of the time that the files take; nothing depends on it."""

_POWERS_KB = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)
_LIKELY_TRIED = 6
"""About how many values a search tries, for the estimate of its time."""


class Step(NamedTuple):
    """A job to be run under a setting."""

    turn: int
    job: Job
    setting: BenchSetting


def with_jobs(suite: Suite, names: Sequence[str]) -> Suite:
    """Return the suite with these of its jobs, all without a name. Raises ValueError for an unknown name."""
    known = [job.name for job in suite.jobs]
    for name in names:
        if name not in known:
            raise ValueError(f"suite {suite.name} has no job {name!r}, but {', '.join(known)}")
    return replace(suite, jobs=tuple(job for job in suite.jobs if not names or job.name in names))


def scaled(suite: Suite, runtime_s: float | None, file_bytes: int | None, repeats: int | None) -> Suite:
    """Return the suite with other times, sizes and repeats, where they are given.

    A file stays a whole number of blocks, and at least one for each of its job's requests under way.
    """
    jobs = suite.jobs
    if runtime_s is not None:
        jobs = tuple(replace(job, runtime_s=runtime_s, ramp_s=min(job.ramp_s, runtime_s / 2)) for job in jobs)
    if file_bytes is not None:
        sizes = [file_bytes // (job.threads * job.files) // job.block_bytes for job in jobs]
        jobs = tuple(
            replace(job, file_bytes=max(blocks, job.depth) * job.block_bytes)
            for job, blocks in zip(jobs, sizes, strict=True)
        )
    return replace(suite, jobs=jobs, repeats=repeats if repeats is not None else suite.repeats)


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
    return tuple(
        Step(turn, job, setting)
        for job in suite.jobs
        for turn in range(WARM_UP, suite.repeats + 1)
        for setting in settings[:: 1 if turn % 2 else -1]
    )


def seconds(suite: Suite, settings: Sequence[BenchSetting]) -> float:
    """Return about how long the suite takes, with the making of its files; a search has no settings yet."""
    runs = (suite.repeats + 1) * (len(settings) or _LIKELY_TRIED)  # the warm-up is one
    each_s = sum(job.ramp_s + job.runtime_s + _BETWEEN_S for job in suite.jobs)
    return runs * each_s + suite.bytes_on_disk / _LAYOUT_BYTES_PER_S


def candidates(target_kb: int | None, present_kb: int | None) -> tuple[int, ...]:
    """Return the values that may be the answer, the smallest first: powers of two, the policy's, the present.

    A power of two is left out where `target_kb` or `present_kb` differs from it by an eighth of it or less.
    """
    given = {kb for kb in (target_kb, present_kb) if kb}
    powers = {power for power in _POWERS_KB if not any(abs(kb - power) * 8 <= power for kb in given)}
    return tuple(sorted(given | powers))


def search(suite: Suite, values: Sequence[int], runs: Sequence[Run]) -> Iterator[Step]:
    """Yield the steps that look for the best read-ahead of each job among values.

    A step's run is in `runs` before the next step is asked for. Raises BenchError if no run of a job counts.
    """
    for job in suite.jobs:
        measured: dict[int, float] = {}
        while (kb := next_value(values, measured)) is not None:
            setting = BenchSetting.tried(kb)
            for turn in range(1 if measured else WARM_UP, suite.repeats + 1):
                yield Step(turn, job, setting)
            middle = spread(runs, job.name, setting.name)
            if middle is None:
                raise BenchError(f"{job.name}: no run was valid, see the problems")
            measured[kb] = middle.median


def next_value(values: Sequence[int], measured: Mapping[int, float]) -> int | None:
    """Return the value to measure next; None when both neighbours of the best value are measured.

    `measured` has throughputs by value. Both ends and the middle of `values` come first, then the middle of
    the wider gap between the value with the highest throughput and the measured values next to it.
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
