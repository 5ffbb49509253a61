"""`nfstuned bench`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import click

from nfstuned.app.bench import AS_IT_IS, BenchOrder, Progress, demand_space, run_bench, settings
from nfstuned.app.bench_ground import CannotMeasureError, Ground
from nfstuned.cli.messages import note, terminal_width, usable_policy
from nfstuned.cli.options import format_option
from nfstuned.core.bench.compare import (
    Against,
    NotComparableError,
    against,
    demand_same_jobs,
    has_all_results,
    lack_of_runs,
)
from nfstuned.core.bench.own_mount import MOST
from nfstuned.core.bench.plan import (
    LIKELY_TRIED,
    ROUND_TRIPS,
    scaled,
    seconds,
    with_jobs,
    with_long_runs,
)
from nfstuned.core.policy.endpoint import GENERIC
from nfstuned.errors import ParseError
from nfstuned.host.bench import fio
from nfstuned.host.bench.documents import names, parse_size, read_bench, suite
from nfstuned.host.files.write import demand_place, write_file
from nfstuned.host.root import Root
from nfstuned.model.bench import Bench, BenchSetting, Suite
from nfstuned.model.policy import WORKLOAD_MARK
from nfstuned.view.bench import (
    HEADER,
    against_lines,
    bench_document,
    bench_result_lines,
    bench_rows,
    cost_lines,
    plan_lines,
)
from nfstuned.view.words import duration, printable, to_json

MEASURED, INCOMPLETE, FAILED = 0, 1, 2
_NAMES, _OTHERS = 2, 5
"""Columns of the table: the names, the throughput, and the other figures."""
_SOON_S = 2.0
_CLEAR = "\r\x1b[K"


def _size(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | None:
    """Return the bytes of a size as fio writes it; None without a size."""
    try:
        return None if value is None else parse_size(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@dataclass(frozen=True, slots=True)
class BenchWish:
    """The options next to the folder and the suite."""

    yes: bool
    form: str
    output: str | None
    against: str | None = None
    runtime: float | None = None


def bench(root: Root, order: BenchOrder, wish: BenchWish) -> int:
    """Print the plan, measure, and print the results. Raises OSError of stdout."""
    program = fio.version()
    if not program:
        note("fio is not installed: apt install fio, or dnf install fio")
        return FAILED
    policy = usable_policy(root)
    if policy is None:
        return FAILED
    try:
        if wish.output is not None:
            demand_place(wish.output)
        ground = Ground.find(root, policy, order.folder)
        if wish.runtime is None and ground.round_trip_ms is not None:
            order = replace(order, suite=with_long_runs(order.suite, ground.round_trip_ms))
        compared = settings(ground, order)
        before = None if wish.against is None else _earlier(wish.against, order.suite, compared)
        _print_plan(ground, order, compared)
        if not wish.yes and not _agreed():
            return FAILED
        with _bar() as show:
            result = run_bench(ground, order, show)
    except (CannotMeasureError, NotComparableError, ParseError) as error:
        note(str(error))
        return FAILED
    except OSError as error:
        note(f"{error.filename or order.folder}: {error.strerror or error}")
        return FAILED
    return _present(result, before, wish)


def _earlier(file: str, chosen: Suite, compared: Sequence[BenchSetting]) -> Bench:
    """Return an earlier measurement of the same jobs. Raises NotComparableError, OSError and ParseError."""
    before = read_bench(file)
    try:
        demand_same_jobs(before, chosen, compared)
    except NotComparableError as error:
        raise NotComparableError(f"{file}: {error}") from None
    if problem := lack_of_runs(before, chosen):
        note(problem)
    return before


def _print_plan(ground: Ground, order: BenchOrder, compared: Sequence[BenchSetting]) -> None:
    """Print the plan and the costs. Raises CannotMeasureError where the files have no space."""
    free = demand_space(order.folder, order.suite)
    wanted_s = seconds(order.suite, compared or (AS_IT_IS,) * LIKELY_TRIED)
    bills = ground.profile.partition(WORKLOAD_MARK)[0] != GENERIC
    for line in plan_lines(order.folder, order.suite, free, wanted_s):
        note(line)
    for line in cost_lines(order.suite, compared, order.rate, bills=bills):
        note(line)


def _agreed() -> bool:
    """Ask a person; without one, name the missing option."""
    if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
        return click.confirm("Measure?", err=True)
    note("nobody can be asked here: add --yes")
    return False


class _bar:  # noqa: N801 - a context, used once
    """A line on the terminal, from two seconds on, which is gone at the end."""

    def __enter__(self) -> Callable[[Progress], None]:
        self._began, self._drawn = time.monotonic(), False
        return self._show

    def _show(self, progress: Progress) -> None:
        if not sys.stderr.isatty() or time.monotonic() - self._began < _SOON_S:
            return
        left = max(0.0, progress.all_s - progress.done_s)
        line = f"about {duration(left)} left: "
        columns = max(0, terminal_width() - 1 - len(line))
        sys.stderr.write(_CLEAR + line + printable(progress.step)[:columns])
        sys.stderr.flush()
        self._drawn = True

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


def _present(result: Bench, before: Bench | None, wish: BenchWish) -> int:
    """Compare and print the results; return the exit status."""
    status = MEASURED if not result.ended and has_all_results(result.runs) else INCOMPLETE
    compared = None
    if before is not None:
        try:
            compared = against(before, result)
        except NotComparableError as error:
            note(f"not compared: {error}")
            status = INCOMPLETE
    return status if _print(result, compared, wish) else INCOMPLETE


def _print(result: Bench, compared: Against | None, wish: BenchWish) -> bool:
    """Print the table, or write the document; return whether that could be done. Raises OSError of stdout."""
    if wish.form == "text":
        _print_text(result, compared)
        return True
    if wish.form == "html":
        from nfstuned.view.report.bench import bench_page  # noqa: PLC0415 - for a page alone

        lines: Iterable[str] = bench_page(result, compared)
    else:
        lines = to_json(bench_document(result, compared)).splitlines()
    if wish.output is None:
        for line in lines:
            # In UTF-8 whatever the locale is: a page names its own encoding.
            sys.stdout.buffer.write(line.encode("utf-8", "backslashreplace") + b"\n")
        return True
    try:
        write_file(wish.output, lines)
    except OSError as error:
        note(f"{wish.output}: {error.strerror or error}")
        return False
    note(f"{wish.output}: written")
    return True


def _print_text(result: Bench, compared: Against | None) -> None:
    rows = bench_rows(result)
    if rows:
        _print_table(rows)
    lines = (*bench_result_lines(result), *(against_lines(compared) if compared is not None else ()))
    sys.stdout.writelines(_wrapped(printable(line)) + "\n" for line in lines)


def _print_table(rows: list[tuple[str, ...]]) -> None:
    """Print the table; on a terminal that is too narrow for it the throughput first, and then the others."""
    from nfstuned.cli.table import Column, fits_terminal, print_table  # noqa: PLC0415 - rich is slow to load

    columns = (Column(), Column(shrinks=1), *(Column(right=True),) * (len(HEADER) - _NAMES))
    if fits_terminal(columns, rows, HEADER):
        print_table(columns, rows, HEADER)
        return
    names, throughput, others = slice(_NAMES), slice(_NAMES, _OTHERS), slice(_OTHERS, None)
    for part in (throughput, others):
        cells = [(*row[names], *row[part]) for row in rows]
        print_table(columns[: len(cells[0])], cells, (*HEADER[names], *HEADER[part]))


def _wrapped(line: str) -> str:
    """Return a sentence in lines as wide as the terminal; a configuration stays as it is."""
    if not sys.stdout.isatty() or line.startswith(" "):
        return line
    from textwrap import fill  # noqa: PLC0415 - for a terminal alone

    return fill(
        line, terminal_width(), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


@click.command("bench")
@click.argument("folder", metavar="MOUNT", type=click.Path())
@click.option(
    "--suite",
    "name",
    type=click.Choice(names()),
    default="quick",
    show_default=True,
    help="Which jobs: a vendor's own, or those that a vendor lacks.",
)
@click.option(
    "--compare",
    is_flag=True,
    help="Run each job with the kernel's read-ahead and with the profile's, by turns.",
)
@click.option(
    "--nconnect",
    "connections",
    type=click.IntRange(2, MOST),
    metavar="N",
    help="Of suite nconnect: compare one connection with N.",
)
@click.option(
    "--job", "jobs", multiple=True, metavar="NAME", help="Of the suite run only this job; can be repeated."
)
@click.option("--full", is_flag=True, help="With the times and sizes of the suite's vendor; hours.")
@click.option(
    "--runtime",
    type=click.FloatRange(0.1, 86400),
    metavar="SECONDS",
    help=f"How long each run takes. By itself it is the suite's time, and {ROUND_TRIPS} round trips of the "
    "mount where a read-ahead can change it.",
)
@click.option("--size", callback=_size, metavar="SIZE", help="The size of the files of a job, as in 1G.")
@click.option("--repeats", type=click.IntRange(1, 100), metavar="N", help="How often each job is run.")
@click.option(
    "--rate",
    callback=_size,
    metavar="SIZE",
    help="Move at most so much a second, where others use the mount.",
)
@click.option("--yes", is_flag=True, help="Do not ask before it begins.")
@format_option("html")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="FILE",
    help="Write the JSON document or the HTML page to this file.",
)
@click.option(
    "--against",
    type=click.Path(),
    metavar="FILE",
    help="Compare with an earlier JSON document of the same jobs.",
)
@click.pass_obj
def bench_command(root: Root, /, *, folder: str, name: str, **options: Any) -> int:  # noqa: ANN401 - Wish has the types
    """Measure the throughput and latency of a mount with fio.

    MOUNT is a mount point, or a folder on the mount that you may write to. Files are made in a folder of
    their own and removed at the end, also after Ctrl-C and kill -9. Settings are compared by turns, on the
    same files; a difference within the noise is called that. --format json --output FILE keeps a document
    for a later --against FILE.

    \b
    Examples:
      sudo nfstuned bench /data --compare
      sudo nfstuned bench /data --suite read-ahead
      sudo nfstuned bench /data --suite read-ahead --format html -o data.html
      sudo nfstuned bench /data --suite nconnect
      nfstuned bench /data/mine --suite azure-files --yes --format json > before.json
      nfstuned bench /data/mine --suite azure-files --repeats 5 --against before.json

    \b
    Exit status:
      0  measured
      1  measured in part, or not compared or written as asked; stderr says why
      2  not measured: no fio, no room, no right, or wrong usage
    """
    if options["output"] is not None and options["form"] == "text":
        raise click.UsageError("--output is for a document: add --format json or --format html")
    if options["form"] == "html" and options["output"] is None and sys.stdout.isatty():
        raise click.UsageError("a page is not for a terminal: give --output FILE")
    try:
        whole = with_jobs(suite(name, full=options["full"]), options["jobs"])
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    chosen = scaled(whole, options["runtime"], options["size"], options["repeats"])
    order = BenchOrder(
        os.path.abspath(folder), chosen, options["compare"], options["rate"], options["connections"]
    )
    wish = BenchWish(**{field.name: options[field.name] for field in fields(BenchWish)})
    return bench(root, order, wish)
