"""The text and the document of `nfstuned bench`: plan, table, verdicts, and `nfstuned.bench/1`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import timezone

from nfstuned import __version__
from nfstuned.core.bench.compare import FIGURES, TWO, Against, best_read_aheads, differences, proposed, spread
from nfstuned.core.samples.sample import speed
from nfstuned.model.bench import SCHEMA, Bench, BenchSetting, Difference, Relation, Spread, Suite
from nfstuned.parse.fields import count
from nfstuned.view.words import NONE, TIME_FORM, Document, duration

HEADER = ("JOB", "SETTING", "THROUGHPUT", "FROM", "TO", "OPS/S", "LATENCY", "OVER-FETCH")
_FORMS = ("{:.0f}", "{:.2f} ms", "{:.2f}")


def plan_lines(folder: str, suite: Suite, free_bytes: int, seconds: float) -> Iterator[str]:
    """Yield the plan, before the measurement begins."""
    yield f"suite {suite.name}: {suite.about}"
    yield (
        f"In a folder of its own in {folder}, it makes files of {suite.bytes_on_disk >> 20} MiB in all "
        f"({free_bytes >> 20} MiB are free) and removes them at its end."
    )
    yield f"It takes about {duration(seconds)}, and uses all that the server and the network give."


def cost_lines(compared: Sequence[BenchSetting], *, bills: bool) -> Iterator[str]:
    """Yield the second mount and the possible costs, before the measurement begins."""
    if any(setting.connections is not None for setting in compared):
        yield (
            "It mounts the folder a second time where no other program sees it, with connections of its own, "
            "and unmounts it between the settings; the mount itself stays as it is."
        )
    if bills:
        yield (
            "The provider may charge for requests, for bytes, and for traffic that crosses a zone or a "
            "region; how much depends on the contract, which is not known here."
        )


def _results(bench: Bench) -> Iterator[tuple[str, str, Spread, list[Spread | None]]]:
    """Yield each job and setting with its throughput and the other FIGURES, where a run counts."""
    for job in bench.suite.jobs:
        for setting in bench.settings:
            rate, *others = (spread(bench.runs, job.name, setting.name, key) for key in FIGURES)
            if rate is not None:
                yield job.name, setting.name, rate, others


def bench_rows(bench: Bench) -> list[tuple[str, ...]]:
    """Return a row for each job and setting."""
    rows = []
    for job, setting, rate, others in _results(bench):
        pairs = zip(others, _FORMS, strict=True)
        cells = (NONE if middle is None else form.format(middle.median) for middle, form in pairs)
        rows.append((job, setting, speed(rate.median), speed(rate.least), speed(rate.most), *cells))
    return rows


def bench_result_lines(bench: Bench) -> Iterator[str]:
    """Yield a sentence for each job, the best setting, and the runs that do not count."""
    yield from comparisons(bench)
    yield from proposal_lines(bench)
    yield from shortcomings(bench)


def comparisons(bench: Bench) -> Iterator[str]:
    """Yield a sentence with its numbers for each job, where settings were compared."""
    if len(bench.settings) == TWO:
        yield from map(difference_sentence, differences(bench))
    elif len(bench.settings) > TWO:
        for job, kb in best_read_aheads(bench).items():
            yield f"{job}: {kb} KiB is the smallest read-ahead that gives as much as any"


def shortcomings(bench: Bench) -> Iterator[str]:
    """Yield the runs that do not count, each reason once, and why the measurement ended before its time."""
    seen = Counter(f"{run.job}, {run.setting}: {run.problem}" for run in bench.runs if run.problem)
    for text, times in seen.items():
        yield f"not counted: {count(times, 'run')} of {text}"
    if bench.ended:
        yield f"It ended before its time: {bench.ended}"


def difference_sentence(compared: Difference, *, since: bool = False) -> str:
    """Return a difference in a sentence with its numbers; `since` is for one from an earlier measurement."""
    after, before = short_name(compared.after), short_name(compared.before)
    name = f"{compared.job}, {after}" if since else compared.job
    if compared.outcome is Relation.UNKNOWN or compared.old is None or compared.new is None:
        return f"{name}: too few runs count for a verdict"
    same = "no difference beyond the noise"
    outcome = same if compared.outcome is Relation.SAME else f"{compared.ratio:.2f} times as fast"
    new, old = (
        f"{speed(middle.median)} ({speed(middle.least)} to {speed(middle.most)})"
        for middle in (compared.new, compared.old)
    )
    numbers = f"{new} now, {old} then" if since else f"{new} with {after}, {old} with {before}"
    return f"{name}: {outcome}: {numbers}"


def short_name(setting: BenchSetting) -> str:
    """Return the read-ahead of a setting, or its name without one."""
    return f"{setting.read_ahead_kb} KiB" if setting.read_ahead_kb is not None else setting.name


def proposal_lines(bench: Bench) -> Iterator[str]:
    """Yield the best setting for all jobs, as a key of a profile."""
    best, measured = proposed(bench), bench.mount
    if best is None:
        return
    key, value, present = "read_ahead_kb", best.read_ahead_kb, measured.read_ahead_kb
    if best.connections is not None:
        key, value, present = "nconnect", best.connections, measured.connections
    has = "an unknown number" if present is None else present
    yield f"Best for all jobs: {key} = {value}; the mount has {has}. To change it: nfstuned(1), BENCH."


def against_lines(against: Against) -> Iterator[str]:
    """Yield each job's difference from an earlier measurement, and the other changes."""
    yield f"Against the measurement of {against.before.time.astimezone(timezone.utc):{TIME_FORM}} UTC:"
    for each in against.compared:
        yield difference_sentence(each, since=True)
    if not against.changed:
        yield "Mount, options, kernel and fio are the same."
    for changed in against.changed:
        yield f"{changed.name}: {changed.before} then, {changed.after} now"


def bench_document(bench: Bench, against: Against | None = None) -> Document:
    """Return the document: every number of the table and the charts, and every run."""
    best = proposed(bench)
    return {
        "schema": SCHEMA,
        "version": __version__,
        **asdict(bench),
        "time": bench.time.isoformat(),
        "results": [
            {"job": job, "setting": setting} | dict(zip(FIGURES, map(_or_null, (rate, *others)), strict=True))
            for job, setting, rate, others in _results(bench)
        ],
        "differences": [
            {**_outcome(each), "before": each.before.name, "after": each.after.name}
            for each in differences(bench)
        ],
        "best_read_ahead_kb": best_read_aheads(bench),
        "proposed_read_ahead_kb": None if best is None else best.read_ahead_kb,
        "proposed_nconnect": None if best is None else best.connections,
        "against": against
        and {
            "time": against.before.time.isoformat(),
            "mount": asdict(against.before.mount),
            "differences": [
                {
                    **_outcome(each),
                    "setting": each.after.name,
                    "before": _or_null(each.old),
                    "now": _or_null(each.new),
                }
                for each in against.compared
            ],
            "changed": [asdict(changed) for changed in against.changed],
        },
    }


def _outcome(compared: Difference) -> Document:
    return {"job": compared.job, "outcome": compared.outcome.value, "ratio": compared.ratio}


def _or_null(value: Spread | None) -> Document | None:
    return None if value is None else asdict(value)
