"""Comparison of settings and of measurements: by how much two of them differ, beyond the noise.

The repeats are few, and nobody knows their distribution: a server's other clients come and go. So no mean
and no variance is used. Two settings differ where every run of one is faster than every run of the other,
which by chance happens once in 126 times with five runs each and once in 1716 with seven, and where their
medians are far enough apart to matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median

from nfstuned.model.bench import Bench, BenchSetting, Difference, Job, Relation, Run, Spread, Suite
from nfstuned.parse.fields import mask_secrets

LEAST_RUNS = 5
LEAST_DIFFERENCE = 0.05
"""Below this part nobody changes a configuration."""
_BEFORE, _AFTER = BenchSetting("before"), BenchSetting("now")
_LABELS = {"mount_point": "mount point", "fstype": "type", "read_ahead_kb": "read-ahead"}
"""Of a subject's fields, those whose names are no words."""


def is_whole(runs: Iterable[Run]) -> bool:
    """Whether each job has a run that counts, under every setting that it was run under."""
    keys = [(run.step.job.name, run.step.setting, bool(run.problem)) for run in runs]
    return {key[:2] for key in keys} == {key[:2] for key in keys if not key[2]}


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
    """Return the difference between two settings for one job."""
    old, new = figures(runs, job, before), figures(runs, job, after)
    ratio = median(new) / median(old) if old and new and median(old) > 0 else None
    outcome = Relation.SAME
    if ratio is None or min(len(old), len(new)) < LEAST_RUNS:
        outcome = Relation.UNKNOWN
    elif min(new) > max(old) and ratio >= 1 + LEAST_DIFFERENCE:
        outcome = Relation.FASTER
    elif max(new) < min(old) and ratio <= 1 / (1 + LEAST_DIFFERENCE):
        outcome = Relation.SLOWER
    return Difference(job, before, after, outcome, ratio, spread(old), spread(new))


class NotComparableError(Exception):
    """Why two measurements are not of the same jobs."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A property of the host, the mount or the measurement that is no longer as it was."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Against:
    """A measurement compared with an earlier measurement."""

    before: Bench
    compared: tuple[Difference, ...]
    """Each setting has the name of its own measurement."""
    changed: tuple[Changed, ...]


def demand_same_jobs(before: Bench, suite: Suite, settings: Sequence[BenchSetting] = ()) -> None:
    """Raise NotComparableError unless the earlier measurement is of the same jobs.

    One of `settings` has to be there, too; none where they are not known yet.
    """
    if before.suite.name != suite.name:
        raise NotComparableError(f"it is of suite {before.suite.name}, not of {suite.name}")
    old = {job.name: job for job in before.suite.jobs}
    new = {job.name: job for job in suite.jobs}
    for name in sorted(old.keys() ^ new.keys()):
        raise NotComparableError(f"job {name} is {'only there' if name in old else 'not there'}")
    for name, job in new.items():
        for field in fields(Job):
            had, has = getattr(old[name], field.name), getattr(job, field.name)
            if had != has:
                shown = [getattr(value, "value", value) for value in (had, has)]
                raise NotComparableError(f"job {name}: {field.name} was {shown[0]} and is now {shown[1]}")
    if settings and not _pairs(before, settings):
        names = [", ".join(each.name for each in some) or "none" for some in (before.settings, settings)]
        raise NotComparableError(f"its settings ({names[0]}) are none of these ({names[1]})")


def lack_of_runs(before: Bench, suite: Suite) -> str:
    """Return why no difference can be found, "" where it can: it takes five runs on both sides."""
    fewest = min(before.suite.repeats, suite.repeats)
    if fewest >= LEAST_RUNS:
        return ""
    which = "this measurement has" if suite.repeats < LEAST_RUNS else "the earlier measurement has"
    return f"{which} {fewest} runs of each job, and a difference takes {LEAST_RUNS}: --repeats {LEAST_RUNS}"


def against(before: Bench, now: Bench) -> Against:
    """Compare each job under each setting that both measurements have.

    Raises NotComparableError where they have no setting in common, or are not of the same jobs.
    """
    demand_same_jobs(before, now.suite, now.settings)
    pairs = _pairs(before, now.settings)
    compared = tuple(_compared(before, now, job, pair) for job in now.suite.jobs for pair in pairs)
    return Against(before, compared, tuple(_changed(before, now)))


def _pairs(before: Bench, settings: Sequence[BenchSetting]) -> list[tuple[BenchSetting, BenchSetting]]:
    """Return the settings that are the same before and now: by their values, or by a name without values."""

    def value(setting: BenchSetting) -> BenchSetting:
        nameless = replace(setting, name="")
        return setting if nameless == BenchSetting("") else nameless

    old = {value(setting): setting for setting in before.settings}
    return [(old[value(setting)], setting) for setting in settings if value(setting) in old]


def _compared(before: Bench, now: Bench, job: Job, pair: tuple[BenchSetting, BenchSetting]) -> Difference:
    """Compare as two settings of one measurement are compared."""
    runs = tuple(
        replace(run, step=replace(run.step, job=job, setting=name))
        for bench, setting, name in ((before, pair[0], _BEFORE), (now, pair[1], _AFTER))
        for run in bench.runs
        if (run.step.job.name, run.step.setting) == (job.name, setting)
    )
    return replace(difference(runs, job, _BEFORE, _AFTER), before=pair[0], after=pair[1])


def _changed(before: Bench, now: Bench) -> Iterator[Changed]:
    for field in fields(now.subject):
        # Documents have no secrets: a masked text is no change.
        values = [getattr(each.subject, field.name) for each in (before, now)]
        had, has = (mask_secrets(value) if isinstance(value, str) else value for value in values)
        if had == has:
            continue
        if field.name == "options":
            yield from _options(had, has)
        else:
            unit = " KiB" if field.name.endswith("_kb") else ""
            label = _LABELS.get(field.name, field.name.replace("_", " "))
            yield Changed(label, _shown(had, unit), _shown(has, unit))
    rates = [each.rate_bytes_per_s for each in (before, now)]
    if rates[0] != rates[1]:
        yield Changed("rate", *("unlimited" if rate is None else f"{rate} B/s" for rate in rates))
    if before.suite.repeats != now.suite.repeats:
        yield Changed("repeats", str(before.suite.repeats), str(now.suite.repeats))


def _options(had: str, has: str) -> Iterator[Changed]:
    """Yield each mount option that differs."""
    old, new = (
        {name: value or "there" for name, _, value in (word.partition("=") for word in words if word)}
        for words in (had.split(","), has.split(","))
    )
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            yield Changed(f"option {name}", old.get(name, "not there"), new.get(name, "not there"))


def _shown(value: object, unit: str) -> str:
    return "unknown" if value is None else f"{value}{unit}" if value != "" else "nothing"
