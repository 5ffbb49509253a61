"""Comparison of settings and of measurements: differences beyond the noise.

The repeats are few and their distribution is unknown, so no mean and no variance is used. Two settings differ
where every run of one is faster than every run of the other, which by chance happens once in 126 times with
five runs each, and where their medians are far enough apart to matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import median

from nfstuned.core.samples.rates import rates
from nfstuned.model.bench import (
    Bench,
    BenchSetting,
    Delivered,
    Difference,
    Engine,
    Job,
    Relation,
    Run,
    Spread,
    Suite,
)
from nfstuned.model.samples import Look
from nfstuned.parse.fields import mask_secrets

LEAST_RUNS = 5
LEAST_DIFFERENCE = 0.05
"""Below this part nobody changes a configuration."""
CLOSE = 0.03
"""A share of the best throughput: values within it of the best are equal, and the smallest wastes least."""
_CACHED = 0.9
"""The least part of a job's reads that comes from the server; with less the client's memory was measured."""
_LABELS = {"fstype": "type", "read_ahead_kb": "read-ahead in KiB"}
FIGURES = ("bytes_per_s", "operations_per_s", "latency_ms", "over_fetch")
"""The figures of a run, by their keys in the document; fio delivers all but the over-fetch."""
Measured = tuple[Iterable[Run], BenchSetting]
"""The runs of a measurement, and one of its settings."""
TWO = 2
"""Settings of a comparison; a search tries more."""


class BenchError(Exception):
    """Why a mount is not measured, not measured to the end, or not compared with an earlier measurement."""


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
    read, sent = delivered.bytes_per_s * delivered.seconds, sample.server_read_bytes_per_s
    return sent * sample.interval_s / read if read and sent is not None else None


def from_memory(ratio: float | None) -> str:
    """Return why a run with this over-fetch does not measure the server; "" where it does."""
    if ratio is None or ratio >= _CACHED:
        return ""
    return f"{1 - ratio:.0%} of the bytes read came from this machine's memory instead of the server"


def has_all_results(runs: Sequence[Run]) -> bool:
    """Whether each job has a run that counts, under every setting of its runs."""
    counted = {(run.job, run.setting) for run in runs if not run.problem}
    return all((run.job, run.setting) in counted for run in runs)


def spread(runs: Iterable[Run], job: str, setting: str, key: str = "bytes_per_s") -> Spread | None:
    """Return the spread of a figure over the runs that count of a job under a setting; None without any."""
    measured = (run for run in runs if (run.job, run.setting) == (job, setting))
    counted = (run for run in measured if run.delivered is not None and not run.problem)
    figures = (getattr(run if key == "over_fetch" else run.delivered, key) for run in counted)
    values = [figure for figure in figures if figure is not None]
    return Spread(median(values), min(values), max(values), len(values)) if values else None


def difference(job: str, before: Measured, after: Measured) -> Difference:
    """Return the difference between a job's throughputs under two settings."""
    old, new = (spread(runs, job, setting.name) for runs, setting in (before, after))
    ratio, outcome = None, Relation.UNKNOWN
    if old is not None and new is not None and old.median > 0:
        ratio = new.median / old.median
        if min(old.count, new.count) >= LEAST_RUNS:
            outcome = Relation.SAME
            if new.least > old.most and ratio >= 1 + LEAST_DIFFERENCE:
                outcome = Relation.FASTER
            elif new.most < old.least and ratio <= 1 / (1 + LEAST_DIFFERENCE):
                outcome = Relation.SLOWER
    return Difference(job, before[1], after[1], outcome, ratio, old, new)


def best_value(measured: Mapping[int, float]) -> int:
    """Return the smallest value within CLOSE of the highest throughput. Raises ValueError for no values."""
    most = max(measured.values())
    return min(value for value, throughput in measured.items() if throughput >= most * (1 - CLOSE))


def best_read_aheads(bench: Bench) -> dict[str, int]:
    """Return the smallest read-ahead that is as good as any, by job, of the jobs with two or more."""
    best = {}
    for job in bench.suite.jobs:
        measured = {
            setting.read_ahead_kb: middle.median
            for setting in bench.settings
            if setting.read_ahead_kb is not None and (middle := spread(bench.runs, job.name, setting.name))
        }
        if len(measured) >= TWO:
            best[job.name] = best_value(measured)
    return best


def differences(bench: Bench) -> tuple[Difference, ...]:
    """Return each job's difference from the first setting to the last; none where nothing was compared."""
    if len(bench.settings) < TWO:
        return ()
    first, last = (bench.runs, bench.settings[0]), (bench.runs, bench.settings[-1])
    return tuple(difference(job.name, first, last) for job in bench.suite.jobs)


def proposed(bench: Bench) -> BenchSetting | None:
    """Return the setting that is best for all jobs: of a search, or the winner of two.

    None where the suite does not compare, where no job gains beyond the noise or another loses, and where too
    few runs of a job count to know.
    """
    if len(bench.settings) > TWO:
        best = best_read_aheads(bench).values()
        return BenchSetting.tried(max(best)) if best else None
    # A search that ended early may have tried two values, too.
    if all(setting == BenchSetting.tried(setting.read_ahead_kb) for setting in bench.settings):
        return None
    outcomes = {each.outcome for each in differences(bench)} - {Relation.SAME}
    winners = {Relation.FASTER: bench.settings[-1], Relation.SLOWER: bench.settings[0]}
    return winners.get(outcomes.pop()) if len(outcomes) == 1 else None


@dataclass(frozen=True, slots=True)
class Changed:
    """A property of the host, the mount or the measurement that is no longer as it was."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class BenchComparison:
    """A measurement compared with an earlier measurement."""

    before: Bench
    compared: tuple[Difference, ...]
    """Each setting has the name of its own measurement."""
    changed: tuple[Changed, ...]


def demand_same_jobs(before: Bench, suite: Suite, settings: Sequence[BenchSetting] = ()) -> None:
    """Raise BenchError unless the earlier measurement is of the same jobs.

    It needs one of `settings`, too; they are empty where they are not known yet.
    """
    if before.suite.name != suite.name:
        raise BenchError(f"it has suite {before.suite.name} instead of {suite.name}")
    old = {job.name: job for job in before.suite.jobs}
    new = {job.name: job for job in suite.jobs}
    for name in sorted(old.keys() ^ new.keys()):
        raise BenchError(f"job {name} is {'only there' if name in old else 'not there'}")
    for name, job in new.items():
        for field in fields(Job):
            had, has = (getattr(each, field.name) for each in (old[name], job))
            if had != has:
                shown = [getattr(value, "value", value) for value in (had, has)]
                raise BenchError(f"job {name}: {field.name} was {shown[0]} and is now {shown[1]}")
    if settings and not _pairs(before, settings):
        names = [", ".join(each.name for each in some) or "none" for some in (before.settings, settings)]
        raise BenchError(f"its settings ({names[0]}) differ from these ({names[1]})")


def lack_of_runs(before: Bench, suite: Suite) -> str:
    """Return why no difference can be found; "" where both sides have enough runs."""
    needed = f"and a comparison needs {LEAST_RUNS}: --repeats {LEAST_RUNS}"
    for which, measured in (("this measurement", suite), ("the earlier measurement", before.suite)):
        if measured.repeats < LEAST_RUNS:
            return f"{which} has {measured.repeats} runs of each job, {needed}"
    return ""


def compare_benches(before: Bench, now: Bench) -> BenchComparison:
    """Compare each job under each setting that both measurements have. Raises BenchError without any."""
    demand_same_jobs(before, now.suite, now.settings)
    compared = tuple(
        difference(job.name, (before.runs, old), (now.runs, new))
        for job in now.suite.jobs
        for old, new in _pairs(before, now.settings)
    )
    return BenchComparison(before, compared, tuple(_changes(before, now)))


def _pairs(before: Bench, settings: Sequence[BenchSetting]) -> list[tuple[BenchSetting, BenchSetting]]:
    """Return the settings that are the same before and now: by their values, or by a name without values."""

    def identity(setting: BenchSetting) -> object:
        values = setting.read_ahead_kb, setting.connections
        return setting.name if values == (None, None) else values

    old = {identity(setting): setting for setting in before.settings}
    return [(old[identity(setting)], setting) for setting in settings if identity(setting) in old]


def _changes(before: Bench, now: Bench) -> Iterator[Changed]:
    for field in fields(now.mount):
        # Documents have no secrets: a masked text is no change.
        values = [getattr(each.mount, field.name) for each in (before, now)]
        had, has = (mask_secrets(value) if isinstance(value, str) else value for value in values)
        if had != has and field.name == "options":
            old, new = had.split(","), has.split(",")
            had = ",".join(word for word in old if word not in new)
            has = ",".join(word for word in new if word not in old)
        if had != has:
            shown = ("unknown" if value is None else str(value) or "nothing" for value in (had, has))
            yield Changed(_LABELS.get(field.name, field.name.replace("_", " ")), *shown)
    if before.suite.repeats != now.suite.repeats:
        yield Changed("repeats", str(before.suite.repeats), str(now.suite.repeats))
