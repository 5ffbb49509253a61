"""`nfstuned bench`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from nfstuned.app.bench import (
    AS_IT_IS,
    BenchOrder,
    CannotMeasureError,
    Ground,
    Progress,
    measure,
    room,
    settings,
)
from nfstuned.cli.options import format_option
from nfstuned.cli.talk import note, terminal_width, usable_policy
from nfstuned.core.bench.own_mount import MOST
from nfstuned.core.bench.plan import bounds, scaled, seconds, with_jobs
from nfstuned.core.bench.search import MOST_TRIED
from nfstuned.host.bench import fio
from nfstuned.host.bench.suites import names, suite
from nfstuned.host.files.output import demand_place, write_file
from nfstuned.host.root import Root
from nfstuned.model.bench import Bench
from nfstuned.parse.config.suites import parse_size
from nfstuned.view.bench import HEADER, bench_document, cost_lines, plan_lines, table, verdict_lines
from nfstuned.view.history import duration
from nfstuned.view.words import printable, to_json

MEASURED, INCOMPLETE, FAILED = 0, 1, 2
_SOON_S = 2.0
_CLEAR = "\r\x1b[K"


def _size(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | None:
    """Return the bytes of a size as fio writes it; None where none was given."""
    try:
        return None if value is None else parse_size(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for beside the folder and the suite."""

    compare: bool
    yes: bool
    form: str
    output: str | None


def bench(root: Root, order: BenchOrder, wish: Wish) -> int:
    """Say what is going to be done, do it, and print what came of it. Raises OSError of stdout."""
    if not fio.version():
        note("fio is not installed: apt install fio, or dnf install fio")
        return FAILED
    policy = usable_policy(root)
    if policy is None:
        return FAILED
    try:
        if wish.output is not None:
            demand_place(wish.output)
        ground = Ground.find(root, policy, order.folder)
        compared = settings(ground, order)
        free = room(order.folder, order.suite)
        wanted_s = seconds(order.suite, compared or (AS_IT_IS,) * 6)
        for line in plan_lines(order.folder, order.suite, free, wanted_s):
            note(line)
        most = bounds(order.suite, compared or (AS_IT_IS,) * MOST_TRIED, order.rate)
        for line in cost_lines(order.suite, compared, most, bills=ground.profile != "generic"):
            note(line)
        if not wish.yes and not _agreed():
            return FAILED
        with _bar() as say:
            result = measure(ground, order, say)
    except CannotMeasureError as error:
        note(str(error))
        return FAILED
    except OSError as error:
        note(f"{error.filename or order.folder}: {error.strerror or error}")
        return FAILED
    return _print(result, wish)


def _agreed() -> bool:
    """Ask a person; without one, say what is missing."""
    if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
        return click.confirm("Measure?", err=True)
    note("nobody can be asked here: add --yes")
    return False


class _bar:  # noqa: N801 - a context, used once
    """A line on the terminal, from two seconds on, which is gone at the end."""

    def __enter__(self) -> Callable[[Progress], None]:
        self._began, self._drawn = time.monotonic(), False
        return self._say

    def _say(self, progress: Progress) -> None:
        if not sys.stderr.isatty() or time.monotonic() - self._began < _SOON_S:
            return
        left = max(0.0, progress.all_s - progress.done_s)
        line = f"{progress.what}: about {duration(left)} left"
        sys.stderr.write(_CLEAR + printable(line)[: terminal_width() - 1])
        sys.stderr.flush()
        self._drawn = True

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


def _print(result: Bench, wish: Wish) -> int:
    status = INCOMPLETE if result.ended else MEASURED
    if wish.form == "json":
        text = to_json(bench_document(result)) + "\n"
        if wish.output is None:
            sys.stdout.write(text)
        else:
            write_file(wish.output, text.splitlines())
        return status
    rows = table(result)
    if rows:
        from nfstuned.cli.table import Column, print_table  # noqa: PLC0415 - rich is slow to load

        print_table((Column(), Column(shrinks=1), *(Column(right=True),) * 7), rows, HEADER)
    sys.stdout.writelines(printable(line) + "\n" for line in verdict_lines(result))
    return status


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
    help="Run each job with the kernel's read-ahead and with the profile's, by turns; "
    "of suite latency with one connection and with several.",
)
@click.option(
    "--nconnect",
    "connections",
    type=click.IntRange(2, MOST),
    metavar="N",
    help="Compare one connection with so many.",
)
@click.option(
    "--job", "jobs", multiple=True, metavar="NAME", help="Of the suite run only this job; can be repeated."
)
@click.option("--full", is_flag=True, help="With the times and sizes of the suite's vendor; hours.")
@click.option(
    "--runtime", type=click.FloatRange(0.1, 86400), metavar="SECONDS", help="How long each run takes."
)
@click.option("--size", callback=_size, metavar="SIZE", help="What the files of a job take, as in 1G.")
@click.option("--repeats", type=click.IntRange(1, 100), metavar="N", help="How often each job is run.")
@click.option(
    "--rate",
    callback=_size,
    metavar="SIZE",
    help="Move at most so much a second, where others use the mount.",
)
@click.option("--yes", is_flag=True, help="Do not ask before it begins.")
@format_option()
@click.option(
    "-o", "--output", type=click.Path(), metavar="FILE", help="Write the JSON document to this file."
)
@click.pass_obj
def command(root: Root, /, *, folder: str, name: str, **options: Any) -> int:  # noqa: ANN401 - Wish has the types
    """Measure what a mount delivers, with fio.

    MOUNT is a mount point, or a folder on the mount that you may write to. Files are made in a folder of
    their own and removed at the end, also after Ctrl-C and kill -9. Settings are compared by turns, on the
    same files; what differs by less than the noise is called that. Beside each result stands what the
    kernel counted meanwhile, and what limits it.

    \b
    Examples:
      sudo nfstuned bench /data --compare
      sudo nfstuned bench /data --suite read-ahead
      sudo nfstuned bench /data --suite nconnect
      nfstuned bench /data/mine --suite azure-files --yes --format json > before.json

    \b
    Exit status:
      0  measured
      1  measured in part: it ended before its time; stderr says why
      2  not measured: no fio, no room, no right, or wrong usage
    """
    if options["output"] is not None and options["form"] != "json":
        raise click.UsageError("--output is for the document: add --format json")
    try:
        whole = with_jobs(suite(name, full=options["full"]), options["jobs"])
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    chosen = scaled(whole, options["runtime"], options["size"], options["repeats"])
    order = BenchOrder(
        os.path.abspath(folder), chosen, options["compare"], options["rate"], options["connections"]
    )
    return bench(root, order, Wish(options["compare"], options["yes"], options["form"], options["output"]))
