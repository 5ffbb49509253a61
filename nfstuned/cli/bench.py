"""`nfstuned bench`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from nfstuned.app.bench import Ground, demand_space, run_bench, settings
from nfstuned.cli.terminal import format_option, note, terminal_width, usable_policy, write_output
from nfstuned.core.bench.compare import (
    BenchComparison,
    BenchError,
    compare_benches,
    demand_same_jobs,
    has_all_results,
    lack_of_runs,
)
from nfstuned.core.bench.plan import ROUND_TRIPS, scaled, seconds, with_jobs, with_long_runs
from nfstuned.core.nconnect.transport import MOST
from nfstuned.errors import ParseError
from nfstuned.host.bench import fio
from nfstuned.host.bench.documents import names, parse_size, read_bench, suite
from nfstuned.host.files.write import demand_place
from nfstuned.host.root import Root
from nfstuned.model.bench import Bench, BenchSetting, Suite
from nfstuned.view.bench import (
    HEADER,
    bench_document,
    bench_page,
    bench_rows,
    comparison_lines,
    cost_lines,
    plan_lines,
    shortcomings,
    since_lines,
)
from nfstuned.view.words import printable, to_json

MEASURED, INCOMPLETE, FAILED = 0, 1, 2


def _size(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | None:
    """Return the bytes of a size as fio writes it; None without a size."""
    try:
        return None if value is None else parse_size(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@dataclass(frozen=True, slots=True)
class BenchWish:
    """The folder, the suite and the other options of the command."""

    folder: str
    suite: Suite
    compare: bool
    connections: int | None
    runtime: float | None
    yes: bool
    form: str
    output: str | None
    against: str | None


def bench(root: Root, wish: BenchWish) -> int:
    """Print the plan, measure, and print the results. Raises OSError of stdout."""
    from rich.console import Console  # noqa: PLC0415 - rich is slow to load
    from rich.text import Text  # noqa: PLC0415 - as above

    if not fio.version():
        note("fio is not installed: apt install fio, or dnf install fio")
        return FAILED
    policy = usable_policy(root)
    if policy is None:
        return FAILED
    try:
        if wish.output is not None:
            demand_place(wish.output)
        ground, chosen = Ground.find(root, policy, wish.folder), wish.suite
        if wish.runtime is None and ground.round_trip_ms is not None:
            chosen = with_long_runs(chosen, ground.round_trip_ms)
        compared = settings(ground, chosen, compare=wish.compare, connections=wish.connections)
        before = None if wish.against is None else _earlier_bench(wish.against, chosen, compared)
        free_bytes, duration_s = demand_space(ground, chosen), seconds(chosen, compared)
        plan = plan_lines(wish.folder, chosen, free_bytes, duration_s)
        for sentence in (*plan, *cost_lines(compared, bills=ground.bills)):
            note(sentence)
        if not wish.yes and not _agreed():
            return FAILED
        # On a terminal one line shows the present step, and vanishes at the end.
        with Console(stderr=True).status("", spinner="line") as line:
            result = run_bench(ground, chosen, compared, lambda step: line.update(Text(printable(step))))
    except (BenchError, ParseError) as error:
        note(str(error))
        return FAILED
    except OSError as error:
        note(f"{error.filename or wish.folder}: {error.strerror or error}")
        return FAILED
    return _present(result, before, wish)


def _earlier_bench(file: str, chosen: Suite, compared: Sequence[BenchSetting]) -> Bench:
    """Return an earlier measurement of the same jobs. Raises BenchError, OSError and ParseError."""
    before = read_bench(file)
    try:
        demand_same_jobs(before, chosen, compared)
    except BenchError as error:
        raise BenchError(f"{file}: {error}") from None
    if problem := lack_of_runs(before, chosen):
        note(problem)
    return before


def _agreed() -> bool:
    """Ask a person; without one, name the missing option."""
    if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
        return click.confirm("Measure?", err=True)
    note("there is no terminal for the question: add --yes")
    return False


def _present(result: Bench, before: Bench | None, wish: BenchWish) -> int:
    """Compare and print the results; return the exit status. Raises OSError of stdout."""
    status = MEASURED if not result.ended and has_all_results(result.runs) else INCOMPLETE
    compared = None
    if before is not None:
        try:
            compared = compare_benches(before, result)
        except BenchError as error:
            note(f"not compared: {error}")
            status = INCOMPLETE
    if wish.form == "text":
        _print_text(result, compared)
        return status
    document = bench_document(result, compared)
    lines = bench_page(result, compared) if wish.form == "html" else to_json(document).splitlines()
    return status if write_output(lines, wish.output, "written") else INCOMPLETE


def _print_text(result: Bench, compared: BenchComparison | None) -> None:
    """Print the table, and sentences in lines as wide as the terminal."""
    from textwrap import fill  # noqa: PLC0415 - for people alone

    from nfstuned.cli.table import Column, print_table  # noqa: PLC0415 - rich is slow to load

    if rows := bench_rows(result):
        columns = (Column(), Column(shrinks=1), *(Column(right=True),) * len(HEADER[2:]))
        print_table(columns, rows, HEADER)
    width = terminal_width() if sys.stdout.isatty() else sys.maxsize
    since = since_lines(compared) if compared is not None else ()
    for line in (*comparison_lines(result), *shortcomings(result), *since):
        text = fill(
            printable(line), width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
        sys.stdout.write(text + "\n")


@click.command("bench")
@click.argument("folder", metavar="MOUNT", type=click.Path())
@click.option(
    "--suite",
    "name",
    type=click.Choice(names()),
    default="quick",
    show_default=True,
    help="The jobs: a vendor's, or nfstuned's own.",
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
    help="With --suite nconnect: compare one connection with N.",
)
@click.option(
    "--job", "jobs", multiple=True, metavar="NAME", help="Run only this job of the suite; can be repeated."
)
@click.option("--full", is_flag=True, help="Use the vendor's times and sizes; this takes hours.")
@click.option(
    "--runtime",
    type=click.FloatRange(0.1, 86400),
    metavar="SECONDS",
    help="The length of each run. Default: the suite's; jobs through the page cache take at least "
    f"{ROUND_TRIPS} round trips.",
)
@click.option("--size", callback=_size, metavar="SIZE", help="The size of the files of a job, as in 1G.")
@click.option("--repeats", type=click.IntRange(1, 100), metavar="N", help="The number of runs of each job.")
@click.option("--yes", is_flag=True, help="Begin without a question.")
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
def bench_command(root: Root, /, *, folder: str, name: str, **options: Any) -> int:  # noqa: ANN401 - BenchWish has the types
    """Measure the throughput and latency of a mount with fio.

    MOUNT is a mount point, or a folder on the mount that you may write to. Files are made in a folder of
    their own and removed at the end, also after Ctrl-C and kill -9. Settings are compared by turns, on the
    same files; a difference within the noise is marked as noise. --format json --output FILE keeps a document
    for a later --against FILE.

    \b
    Examples:
      sudo nfstuned bench /data --compare
      sudo nfstuned bench /data --suite read-ahead
      sudo nfstuned bench /data --suite read-ahead --format html -o data.html
      sudo nfstuned bench /data --suite nconnect
      nfstuned bench /data/mine --repeats 5 --format json -o before.json
      nfstuned bench /data/mine --repeats 5 --against before.json

    \b
    Exit status:
      0  measured
      1  measured in part, or not compared or written as asked; stderr says why
      2  not measured: no fio, no room, no right, not confirmed, or wrong usage
    """
    if options["output"] is not None and options["form"] == "text":
        raise click.UsageError("--output needs a document: add --format json or --format html")
    if options["form"] == "html" and options["output"] is None and sys.stdout.isatty():
        raise click.UsageError("a page does not fit a terminal: give --output FILE")
    try:
        whole = with_jobs(suite(name, full=options.pop("full")), options.pop("jobs"))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    chosen = scaled(whole, options["runtime"], options.pop("size"), options.pop("repeats"))
    return bench(root, BenchWish(os.path.abspath(folder), chosen, **options))
