"""A measurement beside an earlier measurement of the same jobs: what became of each, what else changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from nfstuned.core.bench.difference import LEAST_RUNS, difference, figures, spread
from nfstuned.model.bench import Bench, BenchSetting, Job, Spread, Suite, Verdict
from nfstuned.parse.fields import masked

_BEFORE, _AFTER = BenchSetting("before"), BenchSetting("now")
_LABELS = {"mount_point": "mount point", "fstype": "type", "read_ahead_kb": "read-ahead"}
"""Of a subject's fields, those whose names are no words."""


class NotComparableError(Exception):
    """Why two measurements are not of the same jobs."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A property of the host, the mount or the measurement that is no longer as it was."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Compared:
    """A job under a setting, before and now."""

    job: Job
    setting: BenchSetting
    """As it is called now."""
    outcome: Verdict
    ratio: float | None
    """The medians' throughput, now by before; None where one of them is missing or 0."""
    before: Spread | None
    """Of the throughput in bytes a second; None where no run counts."""
    now: Spread | None


@dataclass(frozen=True, slots=True)
class Against:
    """A measurement beside an earlier measurement."""

    before: Bench
    compared: tuple[Compared, ...]
    changed: tuple[Changed, ...]


def demand_same_jobs(before: Bench, suite: Suite, settings: Sequence[BenchSetting] = ()) -> None:
    """Raise NotComparableError unless the earlier measurement is of the same jobs.

    Of `settings` one has to be there, too; none where they are not known yet.
    """
    if before.suite.name != suite.name:
        raise NotComparableError(f"it is of suite {before.suite.name}, not of {suite.name}")
    old = {job.name: job for job in before.suite.jobs}
    new = {job.name: job for job in suite.jobs}
    for name in sorted(old.keys() ^ new.keys()):
        where = "only there" if name in old else "not there"
        raise NotComparableError(f"job {name} is {where}")
    for name, job in new.items():
        for field in fields(Job):
            had, has = getattr(old[name], field.name), getattr(job, field.name)
            if had != has:
                shown = [getattr(value, "value", value) for value in (had, has)]
                raise NotComparableError(f"job {name}: {field.name} was {shown[0]} and is now {shown[1]}")
    if settings and not _pairs(before, settings):
        names = [", ".join(each.name for each in some) or "none" for some in (before.settings, settings)]
        raise NotComparableError(f"its settings ({names[0]}) are none of these ({names[1]})")


def too_few(before: Bench, suite: Suite) -> str:
    """Return why no difference can be told, "" where it can: it takes five runs on both sides."""
    if min(before.suite.repeats, suite.repeats) >= LEAST_RUNS:
        return ""
    which = "this measurement has" if suite.repeats < LEAST_RUNS else "the earlier measurement has"
    fewest = min(before.suite.repeats, suite.repeats)
    return f"{which} {fewest} runs of each job, and a difference takes {LEAST_RUNS}: --repeats {LEAST_RUNS}"


def against(before: Bench, now: Bench) -> Against:
    """Return what became of each job under each setting that both measurements have.

    Raises NotComparableError where they have no setting in common, or are not of the same jobs.
    """
    demand_same_jobs(before, now.suite, now.settings)
    pairs = _pairs(before, now.settings)
    compared = tuple(_compared(before, now, job, pair) for job in now.suite.jobs for pair in pairs)
    return Against(before, compared, tuple(_changed(before, now)))


def _pairs(before: Bench, settings: Sequence[BenchSetting]) -> list[tuple[BenchSetting, BenchSetting]]:
    old = {_same(setting): setting for setting in before.settings}
    return [(old[_same(setting)], setting) for setting in settings if _same(setting) in old]


def _same(setting: BenchSetting) -> BenchSetting:
    """Return a setting without its name, unless that is all there is of it."""
    return replace(setting, name="") if replace(setting, name="") != BenchSetting("") else setting


def _compared(before: Bench, now: Bench, job: Job, pair: tuple[BenchSetting, BenchSetting]) -> Compared:
    """Compare as two settings of one measurement are; the rule is that of core/bench/difference.py."""
    (job_before,) = (each for each in before.suite.jobs if each.name == job.name)
    runs = tuple(
        replace(run, step=replace(run.step, setting=name))
        for bench, setting, name in ((before, pair[0], _BEFORE), (now, pair[1], _AFTER))
        for run in bench.runs
        if (run.step.job, run.step.setting) == (job_before, setting)
    )
    told = difference(runs, job, _BEFORE, _AFTER)
    middles = [spread(figures(runs, job, setting)) for setting in (_BEFORE, _AFTER)]
    return Compared(job, pair[1], told.outcome, told.ratio, *middles)


def _changed(before: Bench, now: Bench) -> Iterator[Changed]:
    for field in fields(now.subject):
        # Documents have no secrets: what they masked is no change.
        had, has = (_without_secrets(getattr(each.subject, field.name)) for each in (before, now))
        if had == has:
            continue
        if field.name == "options":
            yield from _options(had, has)
        else:
            unit = " KiB" if field.name.endswith("_kb") else ""
            label = _LABELS.get(field.name, field.name.replace("_", " "))
            yield Changed(label, _shown(had, unit), _shown(has, unit))
    if before.rate_bytes_per_s != now.rate_bytes_per_s:
        yield Changed("rate", _rate(before), _rate(now))
    if before.suite.repeats != now.suite.repeats:
        yield Changed("repeats", str(before.suite.repeats), str(now.suite.repeats))


def _without_secrets(value: Any) -> Any:  # noqa: ANN401 - a text, a number, or None
    return masked(value) if isinstance(value, str) else value


def _options(had: str, has: str) -> Iterator[Changed]:
    """Yield each mount option that differs."""
    old, new = (
        {name: value for name, _, value in (option.partition("=") for option in text.split(",") if option)}
        for text in (had, has)
    )
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            yield Changed(f"option {name}", _option(old.get(name)), _option(new.get(name)))


def _option(value: str | None) -> str:
    return "not there" if value is None else value or "there"


def _shown(value: object, unit: str) -> str:
    return "unknown" if value is None else f"{value}{unit}" if value != "" else "nothing"


def _rate(bench: Bench) -> str:
    return "unlimited" if bench.rate_bytes_per_s is None else f"{bench.rate_bytes_per_s} B/s"
