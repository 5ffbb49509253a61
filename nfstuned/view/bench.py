"""The text and the document of `nfstuned bench`: plan, table, verdicts, and `nfstuned.bench/1`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from types import MappingProxyType

from nfstuned import __version__
from nfstuned.core.bench.compare import Against, difference, figures, spread
from nfstuned.core.bench.limits import find_limit
from nfstuned.core.bench.plan import Bounds, best_value
from nfstuned.core.policy.match import as_glob
from nfstuned.core.samples.sample import amount, speed
from nfstuned.model.bench import (
    SCHEMA,
    Bench,
    BenchSetting,
    Delivered,
    Difference,
    Job,
    MeasuredMount,
    Relation,
    Run,
    Spread,
    Suite,
)
from nfstuned.model.policy import WITH
from nfstuned.parse.fields import count
from nfstuned.view.policy import to_toml
from nfstuned.view.words import NONE, TIME_FORM, Document, duration

HEADER = ("JOB", "SETTING", "THROUGHPUT", "FROM", "TO", "OPS/S", "LATENCY", "RTT", "OVER-FETCH")
FIGURES: Mapping[str, Callable[[Run], float | None]] = MappingProxyType({
    "bytes_per_s": lambda run: run.delivered.bytes_per_s if run.delivered else None,
    "operations_per_s": lambda run: run.delivered.operations_per_s if run.delivered else None,
    "latency_ms": lambda run: run.delivered.latency_ms if run.delivered else None,
    "rtt_ms": lambda run: run.beside.rtt_ms,
    "over_fetch": lambda run: run.beside.over_fetch,
})  # fmt: skip
"""The figures of the table and the charts, by their keys in the document."""
_FORMS = ("{:.0f}", "{:.2f} ms", "{:.2f} ms", "{:.2f}")
_SAME = "no difference beyond the noise"
_UNKNOWN = "too few runs count to say anything"
_TWO = 2
"""Settings of a comparison; a search tries more."""


def plan_lines(folder: str, suite: Suite, free_bytes: int, seconds: float) -> Iterator[str]:
    """Yield the plan, before the measurement begins."""
    yield f"suite {suite.name}: {suite.about}"
    yield (
        f"In a folder of its own in {folder}, it makes files of {suite.bytes_on_disk >> 20} MiB in all "
        f"({free_bytes >> 20} MiB are free) and removes them at its end."
    )
    yield f"It takes about {duration(seconds)}, and uses what the server and the network give."


def cost_lines(suite: Suite, compared: Sequence[BenchSetting], most: Bounds, *, bills: bool) -> Iterator[str]:
    """Yield the second mount, the bytes and the possible costs, before the measurement begins."""
    if any(setting.connections is not None for setting in compared):
        yield (
            "It mounts the folder a second time where no other program sees it, with connections of its own, "
            "and unmounts it between the settings; the mount itself stays as it is."
        )
    if most.rate_bytes_per_s is None or most.job_bytes is None or most.requests is None:
        yield "How many bytes and requests that is depends on what the server gives; --rate sets a bound."
    else:
        beyond = "" if all(job.direct for job in suite.jobs) else ", and what the read-ahead fetches beyond"
        yield (
            f"At {speed(most.rate_bytes_per_s)} the jobs move at most {amount(most.job_bytes)} in all, in "
            f"about {most.requests:,} blocks{beyond}; their files are written once before, "
            f"{amount(most.file_bytes)}."
        )
    if bills:
        yield (
            "The provider may charge for requests, for bytes, and for what crosses a zone or a region; how "
            "much depends on the contract, which is not known here."
        )


def spread_of(
    bench: Bench, job: Job, setting: BenchSetting, take: Callable[[Run], float | None]
) -> Spread | None:
    """Return the spread of a figure over the runs that count; None where no run has it."""
    counted = (run for run in bench.runs if not run.problem)
    values = (take(run) for run in counted if (run.step.job, run.step.setting) == (job, setting))
    return spread([value for value in values if value is not None])


def bench_rows(bench: Bench) -> list[tuple[str, ...]]:
    """Return a row for each job and setting."""
    rows = []
    for job in bench.suite.jobs:
        for setting in bench.settings:
            middle, *others = (spread_of(bench, job, setting, take) for take in FIGURES.values())
            if middle is not None:
                rates = speed(middle.median), speed(middle.least), speed(middle.most)
                numbers = (
                    NONE if other is None else form.format(other.median)
                    for other, form in zip(others, _FORMS, strict=True)
                )
                rows.append((job.name, setting.name, *rates, *numbers))
    return rows


def best_read_ahead(bench: Bench, job: Job) -> int | None:
    """Return the smallest read-ahead that is as good as any; None where there were less than two."""
    measured = {
        setting.read_ahead_kb: middle.median
        for setting in bench.settings
        if setting.read_ahead_kb is not None
        and (middle := spread(figures(bench.runs, job, setting))) is not None
    }
    return best_value(measured) if len(measured) >= _TWO else None


def differences(bench: Bench) -> tuple[Difference, ...]:
    """Return each job's difference from the first setting to the last; none where nothing was compared."""
    if len(bench.settings) < _TWO:
        return ()
    before, after = bench.settings[0], bench.settings[-1]
    return tuple(difference(bench.runs, job, before, after) for job in bench.suite.jobs)


def proposed(bench: Bench) -> BenchSetting | None:
    """Return the setting that is best for all jobs: of a search, or the winner of two.

    None where none was looked for, where no job gains beyond the noise or another loses, and where too few
    runs of a job count to know.
    """
    if not is_comparison(bench):
        best = [kb for job in bench.suite.jobs if (kb := best_read_ahead(bench, job)) is not None]
        return BenchSetting.tried(max(best)) if best and len(bench.settings) > _TWO else None
    outcomes = {each.outcome for each in differences(bench)} - {Relation.SAME}
    winners = {Relation.FASTER: bench.settings[-1], Relation.SLOWER: bench.settings[0]}
    return winners.get(outcomes.pop()) if len(outcomes) == 1 else None


def is_comparison(bench: Bench) -> bool:
    """Whether two settings were compared; a search that ended early may have tried two values, too."""
    tried = tuple(BenchSetting.tried(setting.read_ahead_kb) for setting in bench.settings)
    return len(tried) == _TWO and bench.settings != tried


def bench_result_lines(bench: Bench) -> Iterator[str]:
    """Yield a sentence for each job, and the configuration where a setting wins."""
    yield from rate_lines(bench)
    yield from comparisons(bench)
    yield from limits(bench)
    yield from policy_lines(bench)
    yield from shortcomings(bench)


def rate_lines(bench: Bench) -> Iterator[str]:
    """Yield the effect of --rate on the figures; nothing without it."""
    if bench.rate_bytes_per_s is not None:
        yield f"The jobs were held to {speed(bench.rate_bytes_per_s)} (--rate): none can show more."


def comparisons(bench: Bench) -> Iterator[str]:
    """Yield a sentence with its numbers for each job, where settings were compared."""
    if len(bench.settings) == _TWO:
        yield from map(difference_sentence, differences(bench))
    elif len(bench.settings) > _TWO:
        for job in bench.suite.jobs:
            if (kb := best_read_ahead(bench, job)) is not None:
                yield f"{job.name}: {kb} KiB is the smallest read-ahead that gives as much as any"


def limits(bench: Bench) -> Iterator[str]:
    """Yield the limit of each job, in a sentence."""
    for name, text in bench.readings.items():
        yield f"{name}: {text}"


def shortcomings(bench: Bench) -> Iterator[str]:
    """Yield the runs that do not count, each reason once, and why the measurement ended before its time."""
    seen: dict[str, int] = {}
    for run in bench.runs:
        if run.problem:
            text = f"{run.step.job.name}, {run.step.setting.name}: {run.problem}"
            seen[text] = seen.get(text, 0) + 1
    for text, times in seen.items():
        yield f"not counted: {count(times, 'run')} of {text}"
    if bench.ended:
        yield f"It ended before its time: {bench.ended}"


def difference_sentence(found: Difference) -> str:
    """Return a difference in a sentence with its numbers."""
    if found.outcome is Relation.UNKNOWN or found.ratio is None or found.old is None or found.new is None:
        return f"{found.job.name}: {_UNKNOWN}"
    is_same = found.outcome is Relation.SAME
    return (
        f"{found.job.name}: {_SAME if is_same else f'{found.ratio:.2f} times as fast'}: "
        f"{throughput_text(found.new)} with {short_name(found.after)}, "
        f"{throughput_text(found.old)} with {short_name(found.before)}"
    )


def throughput_text(middle: Spread) -> str:
    """Return the median of a throughput, with the least and the most."""
    return f"{speed(middle.median)} ({speed(middle.least)} to {speed(middle.most)})"


def short_name(setting: BenchSetting) -> str:
    """Return the read-ahead of a setting, or its name without one."""
    return f"{setting.read_ahead_kb} KiB" if setting.read_ahead_kb is not None else setting.name


def policy_lines(bench: Bench) -> Iterator[str]:
    """Yield the configuration for the best setting, where the mount does not have it."""
    best, subject = proposed(bench), bench.subject
    if best is None:
        return
    if best.connections is not None:
        yield from _number_lines(best.connections, subject)
        return
    kb, present = best.read_ahead_kb, subject.read_ahead_kb
    of_profile = is_comparison(bench) and best == bench.settings[-1]
    if kb == present and (of_profile or not is_comparison(bench)):
        yield f"The mount has the best read-ahead: {kb} KiB."
    elif of_profile and kb is not None and present is not None and present < kb:
        yield "To have that: sudo nfstuned apply"
    else:
        yield from _profile_lines(subject, f"read_ahead_kb = {kb}", "lower = true")


def _number_lines(number: int, subject: MeasuredMount) -> Iterator[str]:
    """Yield how to have a number of connections: the first mount of a server decides for all."""
    if number == subject.connections:
        yield f"The mount has the better number of connections: {number}."
    elif number == 1:
        yield (
            "To have that, take nconnect from what asks for it (nfstuned status says who), unmount all "
            "mounts of the server, and mount them again."
        )
    else:
        keys = [f"nconnect = {number}", f"nconnect_max = {number}"]
        if "vers=4.0" in subject.options.split(","):
            keys.append("nconnect_not_for = []")  # or a profile that names 4.0 there would go on with one
        yield from _profile_lines(subject, *keys, workload=subject.profile.partition(WITH)[2])
        yield (
            "The first mount of a server decides for all: sudo nfstuned apply --persist, and "
            f"sudo nfstuned apply --remount {shlex.quote(subject.mount_point)}"
        )


def _profile_lines(subject: MeasuredMount, *keys: str, workload: str = "") -> Iterator[str]:
    """Yield a profile with these keys for this mount alone; the keys alone where it has its own already."""
    base = subject.profile.partition(WITH)[0]
    name = "measured" + re.sub(r"[^A-Za-z0-9]+", "-", subject.mount_point).rstrip("-")[:50]
    file = f"/etc/nfstuned/conf.d/{name}.toml"
    if base == name:
        yield f"To have that, in the table [profile.{name}] of {file}:"
        yield from (f"    {key}" for key in keys)
        return
    yield f"To have that, in {file}:"
    lines = [
        f"[profile.{name}]",
        f'inherits = "{base}"',
        *keys,
        "[[policy]]",
        f"match = {to_toml({'mount_point': as_glob(subject.mount_point)})}",
        f'profile = "{name}"',
        *([f'workload = "{workload}"'] if workload else ()),
    ]
    yield from (f"    {line}" for line in lines)


def against_lines(against: Against) -> Iterator[str]:
    """Yield each job's difference from an earlier measurement, and the other changes."""
    then = datetime.fromtimestamp(against.before.time, timezone.utc)
    yield f"Against the measurement of {then:{TIME_FORM}} UTC:"
    for each in against.compared:
        name = f"{each.job.name}, {short_name(each.after)}"
        if each.outcome is Relation.UNKNOWN or each.ratio is None or each.old is None or each.new is None:
            yield f"{name}: {_UNKNOWN}"
            continue
        is_same = each.outcome is Relation.SAME
        outcome = _SAME if is_same else f"{each.outcome.value}, {each.ratio:.2f} times"
        yield f"{name}: {outcome}: {throughput_text(each.new)} now, {throughput_text(each.old)} then"
    if not against.changed:
        yield "Mount, options, kernel and fio are the same."
    for changed in against.changed:
        yield f"{changed.name}: {changed.before} then, {changed.after} now"


def bench_document(bench: Bench, against: Against | None = None) -> Document:
    """Return the document: every number of the table and the charts, and every run."""
    suite, best = bench.suite, proposed(bench)
    return {
        "schema": SCHEMA,
        "version": __version__,
        "time": _time(bench),
        "mount": asdict(bench.subject),
        "suite": {
            "name": suite.name,
            "about": suite.about,
            "repeats": suite.repeats,
            "jobs": [
                {**asdict(job), "pattern": job.pattern.value, "engine": job.engine.value}
                for job in suite.jobs
            ],
            "sources": [{"title": s.title, "url": s.url, "read": s.read} for s in suite.sources],
        },
        "rate_bytes_per_s": bench.rate_bytes_per_s,
        "settings": [asdict(setting) for setting in bench.settings],
        "results": [
            {
                "job": job.name,
                "setting": setting.name,
                **{key: _or_null(spread_of(bench, job, setting, take)) for key, take in FIGURES.items()},
                "limit": find_limit(job, [run for run in bench.runs if run.step.setting == setting]),
            }
            for job in suite.jobs
            for setting in bench.settings
            if figures(bench.runs, job, setting)
        ],
        "differences": [
            {
                "job": each.job.name,
                "before": each.before.name,
                "after": each.after.name,
                "outcome": each.outcome.value,
                "ratio": each.ratio,
            }
            for each in differences(bench)
        ],
        "best_read_ahead_kb": {
            job.name: kb for job in suite.jobs if (kb := best_read_ahead(bench, job)) is not None
        },
        "proposed_read_ahead_kb": None if best is None else best.read_ahead_kb,
        "proposed_nconnect": None if best is None else best.connections,
        "against": against
        and {
            "time": _time(against.before),
            "mount": asdict(against.before.subject),
            "differences": [
                {
                    "job": each.job.name,
                    "setting": each.after.name,
                    "outcome": each.outcome.value,
                    "ratio": each.ratio,
                    "before": _or_null(each.old),
                    "now": _or_null(each.new),
                }
                for each in against.compared
            ],
            "changed": [asdict(changed) for changed in against.changed],
        },
        "runs": [
            {
                "job": run.step.job.name,
                "setting": run.step.setting.name,
                "turn": run.step.turn,
                "delivered": _or_null(run.delivered),
                "beside": asdict(run.beside),
                "problem": run.problem,
            }
            for run in bench.runs
        ],
        "ended": bench.ended,
    }


def _or_null(value: Spread | Delivered | None) -> Document | None:
    return None if value is None else asdict(value)


def _time(bench: Bench) -> str:
    return datetime.fromtimestamp(bench.time, timezone.utc).isoformat(timespec="seconds")
