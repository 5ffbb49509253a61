"""Whether two settings differ by more than the noise, and by how much.

The repeats are few, and nobody knows how they are distributed: a server's other clients come and go. So no
mean and no variance is believed. Two settings differ where every run of one is faster than every run of the
other, which by chance happens once in 126 times with five runs each and once in 1716 with seven, and where
their medians are far enough apart to matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from nfstuned.model.bench import BenchSetting, Difference, Job, Run, Spread, Verdict

LEAST_RUNS = 5
LEAST_DIFFERENCE = 0.05
"""Below this part nobody changes a configuration."""


def is_whole(runs: Iterable[Run]) -> bool:
    """Tell whether each job has a run that counts, under every setting that it was run under."""
    wanted, counted = set[tuple[str, BenchSetting]](), set[tuple[str, BenchSetting]]()
    for run in runs:
        key = run.step.job.name, run.step.setting
        wanted.add(key)
        if not run.problem:
            counted.add(key)
    return wanted == counted


def spread(values: Sequence[float]) -> Spread | None:
    """Return the median, the least and the most; None without any."""
    return Spread(median(values), min(values), max(values), len(values)) if values else None


def figures(runs: Iterable[Run], job: Job, setting: BenchSetting) -> list[float]:
    """Return the throughputs of a job under a setting, in bytes a second, in their order."""
    return [
        run.delivered.bytes_per_s
        for run in runs
        if run.delivered is not None
        and not run.problem
        and (run.step.job, run.step.setting) == (job, setting)
    ]


def difference(runs: Sequence[Run], job: Job, before: BenchSetting, after: BenchSetting) -> Difference:
    """Return what a setting is to another for one job."""
    old, new = figures(runs, job, before), figures(runs, job, after)
    ratio = median(new) / median(old) if old and new and median(old) > 0 else None
    return Difference(job, before, after, _outcome(old, new, ratio), ratio)


def _outcome(old: Sequence[float], new: Sequence[float], ratio: float | None) -> Verdict:
    if ratio is None or min(len(old), len(new)) < LEAST_RUNS:
        return Verdict.UNKNOWN
    if min(new) > max(old) and ratio >= 1 + LEAST_DIFFERENCE:
        return Verdict.FASTER
    if max(new) < min(old) and ratio <= 1 / (1 + LEAST_DIFFERENCE):
        return Verdict.SLOWER
    return Verdict.SAME
