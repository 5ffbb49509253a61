"""What `nfstuned bench` prints: its plan, its table and verdicts, and its document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timezone

from nfstuned import __version__
from nfstuned.core.bench.difference import difference, figures, spread
from nfstuned.core.bench.limits import limit
from nfstuned.core.bench.plan import Bounds
from nfstuned.core.bench.search import best_value
from nfstuned.core.samples.sample import amount, speed
from nfstuned.model.bench import Bench, Difference, Job, Outcome, Run, Setting, Spread, Suite
from nfstuned.parse.fields import count
from nfstuned.view.history import duration
from nfstuned.view.words import NONE, Document

SCHEMA = "nfstuned.bench/1"
HEADER = ("JOB", "SETTING", "THROUGHPUT", "FROM", "TO", "OPS/S", "LATENCY", "RTT", "OVER-FETCH")


def plan_lines(folder: str, suite: Suite, free_bytes: int, seconds: float) -> Iterator[str]:
    """Yield what is going to be done, before it is."""
    yield f"suite {suite.name}: {suite.about}"
    yield (
        f"In a folder of its own in {folder}, it makes files of {suite.bytes_on_disk >> 20} MiB in all "
        f"({free_bytes >> 20} MiB are free) and removes them at its end."
    )
    yield f"It takes about {duration(seconds)}, and uses what the server and the network give."


def cost_lines(suite: Suite, compared: Sequence[Setting], most: Bounds, *, bills: bool) -> Iterator[str]:
    """Yield what the measurement moves and may cost, and what it mounts; before it is begun."""
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


def best_read_ahead(bench: Bench, job: Job) -> int | None:
    """Return the smallest read-ahead that is as good as any; None where there were less than two."""
    measured = {
        setting.read_ahead_kb: middle.median
        for setting in bench.settings
        if setting.read_ahead_kb is not None
        and (middle := spread(figures(bench.runs, job, setting))) is not None
    }
    return best_value(measured) if len(measured) > 1 else None


def differences(bench: Bench) -> tuple[Difference, ...]:
    """Return each job's difference from the first setting to the last; none where nothing was compared."""
    if len(bench.settings) < 2:  # noqa: PLR2004 - two make a comparison
        return ()
    before, after = bench.settings[0], bench.settings[-1]
    return tuple(difference(bench.runs, job, before, after) for job in bench.suite.jobs)


def table(bench: Bench) -> list[tuple[str, ...]]:
    """Return a row for each job and setting."""
    rows = []
    for job in bench.suite.jobs:
        for setting in bench.settings:
            runs = _counted(bench, job, setting)
            middle = spread(figures(bench.runs, job, setting))
            if middle is not None:
                rows.append((job.name, setting.name, *_figures(middle, runs)))
    return rows


def _figures(middle: Spread, runs: Sequence[Run]) -> Iterator[str]:
    yield from (speed(middle.median), speed(middle.least), speed(middle.most))
    delivered = [run.delivered for run in runs if run.delivered is not None]
    yield _number(spread([each.operations_per_s for each in delivered]), "{:.0f}")
    yield _number(spread([each.latency_ms for each in delivered]), "{:.2f} ms")
    besides = [run.beside for run in runs]
    yield _number(spread([each.rtt_ms for each in besides if each.rtt_ms is not None]), "{:.2f} ms")
    yield _number(spread([each.over_fetch for each in besides if each.over_fetch is not None]), "{:.2f}")


def _number(middle: Spread | None, form: str) -> str:
    return NONE if middle is None else form.format(middle.median)


def verdict_lines(bench: Bench) -> Iterator[str]:
    """Yield what the figures mean: a sentence for each job, and what to write where a value wins."""
    if bench.rate_bytes_per_s is not None:
        yield f"The jobs were held to {speed(bench.rate_bytes_per_s)} (--rate): none can show more."
    for each in differences(bench) if len(bench.settings) == 2 else ():  # noqa: PLR2004 - as above
        yield verdict(bench, each)
    if len(bench.settings) > 2:  # noqa: PLR2004 - a search
        for job in bench.suite.jobs:
            kb = best_read_ahead(bench, job)
            if kb is not None:
                yield f"{job.name}: {kb} KiB is the smallest read-ahead that gives as much as any"
    for name, text in bench.readings.items():
        yield f"{name}: {text}"
    yield from policy_lines(bench)
    for text in problems(bench):
        yield f"not counted: {text}"
    if bench.ended:
        yield f"It ended before its time: {bench.ended}"


def verdict(bench: Bench, found: Difference) -> str:
    """Return what a difference is, in a sentence with its numbers."""
    before = spread(figures(bench.runs, found.job, found.before))
    after = spread(figures(bench.runs, found.job, found.after))
    if found.outcome is Outcome.UNKNOWN or found.ratio is None or before is None or after is None:
        return f"{found.job.name}: too few runs count to say anything"
    numbers = (
        f"{speed(after.median)} ({speed(after.least)} to {speed(after.most)}) with {_shown(found.after)}, "
        f"{speed(before.median)} ({speed(before.least)} to {speed(before.most)}) with {_shown(found.before)}"
    )
    if found.outcome is Outcome.SAME:
        return f"{found.job.name}: no difference beyond the noise: {numbers}"
    return f"{found.job.name}: {found.ratio:.2f} times as fast: {numbers}"


def _shown(setting: Setting) -> str:
    return f"{setting.read_ahead_kb} KiB" if setting.read_ahead_kb is not None else setting.name


def policy_lines(bench: Bench) -> Iterator[str]:
    """Yield the configuration to paste, where another read-ahead than the mount's is best for all jobs."""
    found = [kb for job in bench.suite.jobs if (kb := best_read_ahead(bench, job)) is not None]
    if len(bench.settings) <= 2 or not found:  # noqa: PLR2004 - as above
        return
    kb = max(found)
    if kb == bench.subject.read_ahead_kb:
        yield f"The mount has the best read-ahead: {kb} KiB."
        return
    yield "To have that, in /etc/nfstuned/conf.d/bench.toml:"
    yield "    [profile.measured]"
    yield f'    inherits = "{bench.subject.profile}"'
    yield f"    read_ahead_kb = {kb}"
    yield "    lower = true"
    yield "    [[policy]]"
    yield f'    match = {{ mount_point = "{bench.subject.mount_point}" }}'
    yield '    profile = "measured"'


def problems(bench: Bench) -> tuple[str, ...]:
    """Return why runs do not count, each reason once."""
    seen: dict[str, int] = {}
    for run in bench.runs:
        if run.problem:
            text = f"{run.step.job.name}, {run.step.setting.name}: {run.problem}"
            seen[text] = seen.get(text, 0) + 1
    return tuple(f"{count(times, 'run')} of {text}" for text, times in seen.items())


def _counted(bench: Bench, job: Job, setting: Setting) -> list[Run]:
    return [
        run for run in bench.runs if not run.problem and (run.step.job, run.step.setting) == (job, setting)
    ]


def bench_document(bench: Bench) -> Document:
    """Return the document: every number that the table and the pictures show, and every run."""
    suite = bench.suite
    return {
        "schema": SCHEMA,
        "version": __version__,
        "time": datetime.fromtimestamp(bench.time, timezone.utc).isoformat(timespec="seconds"),
        "mount": asdict(bench.subject),
        "suite": {
            "name": suite.name,
            "repeats": suite.repeats,
            "jobs": [_job(job) for job in suite.jobs],
            "sources": [{"title": s.title, "url": s.url, "read": s.read} for s in suite.sources],
        },
        "rate_bytes_per_s": bench.rate_bytes_per_s,
        "settings": [asdict(setting) for setting in bench.settings],
        "results": [
            {
                "job": job.name,
                "setting": setting.name,
                "bytes_per_s": asdict(middle),
                "limit": limit(job, [run for run in bench.runs if run.step.setting == setting]),
            }
            for job in suite.jobs
            for setting in bench.settings
            if (middle := spread(figures(bench.runs, job, setting))) is not None
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
        "runs": [_run(run) for run in bench.runs],
        "ended": bench.ended,
    }


def _job(job: Job) -> Document:
    values: Document = asdict(job)
    return {**values, "pattern": job.pattern.value, "engine": job.engine.value}


def _run(run: Run) -> Document:
    return {
        "job": run.step.job.name,
        "setting": run.step.setting.name,
        "turn": run.step.turn,
        "delivered": None if run.delivered is None else asdict(run.delivered),
        "beside": asdict(run.beside),
        "problem": run.problem,
    }
