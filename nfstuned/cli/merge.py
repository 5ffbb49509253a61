"""`nfstuned merge`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import click

from nfstuned.cli.terminal import (
    dated,
    fail_on_option,
    format_option,
    host_name,
    note,
    terminal_width,
    write_output,
)
from nfstuned.core.fleet import Fleet, FleetReport
from nfstuned.errors import ParseError
from nfstuned.host.root import LARGEST, STDIN, demand_regular, read_proposal, standard_input
from nfstuned.host.sources import files_below
from nfstuned.model.facts import BROKEN, Severity
from nfstuned.parse.fields import count
from nfstuned.parse.verdict import parse_verdict
from nfstuned.view.fleet import (
    left_out_lines,
    merge_document,
    merge_lines,
    merge_page,
    merge_sarif,
)
from nfstuned.view.words import to_json

_ENDING = ".json"
_HOUR_S = 3600
_MOST_NAMED = 20


class MergeOrder(NamedTuple):
    """The options."""

    paths: tuple[str, ...]
    older_than: int | None
    fail_on: str
    output: str | None
    form: str


class _Text(NamedTuple):
    """A document."""

    file: str
    line: int
    text: str


def run_merge(order: MergeOrder) -> int:
    """Merge the documents and print the verdict. Raises OSError of stdout."""
    now = time.time()
    fleet = Fleet(now, None if order.older_than is None else now - order.older_than * _HOUR_S)
    for each in _texts(order.paths):
        if isinstance(each, ParseError):
            fleet.refuse(each)
            continue
        place = f"{each.file}:{each.line}" if each.line else each.file
        try:
            fleet.add(parse_verdict(each.text, each.file, each.line), place)
        except ParseError as problem:
            fleet.refuse(problem)
    report = fleet.report(Severity(order.fail_on))
    lines = list(left_out_lines(report))
    for line in lines[:_MOST_NAMED]:
        note(line)
    if len(lines) > _MOST_NAMED:
        note(f"{count(len(lines) - _MOST_NAMED, 'more document')} left out: --format json lists them")
    if not report.hosts and not report.left_out:
        note(f"{', '.join(order.paths)}: no document is there; in a folder their names end with {_ENDING}")
        return BROKEN
    written = write_output(_lines(report, order, now), order.output, count(len(report.hosts), "host"))
    return report.exit_code if written else BROKEN


def _lines(report: FleetReport, order: MergeOrder, now: float) -> Iterator[str]:
    if order.form == "text":
        yield from merge_lines(report, terminal_width() if _seen(order) else None)
    elif order.form == "html":
        yield from merge_page(report, now)
    elif order.form == "sarif":
        from nfstuned.host.installed import page  # noqa: PLC0415 - only SARIF has pages

        pages = {each.finding.rule: page(each.finding.rule) for each in report.findings}
        yield to_json(merge_sarif(report, host_name(), now, pages))
    else:
        yield to_json(dated(merge_document(report)))


def _seen(order: MergeOrder) -> bool:
    return order.output is None and sys.stdout.isatty()


def _texts(paths: Sequence[str]) -> Iterator[_Text | ParseError]:
    """Yield the documents of files, of folders' files and of the lines of the standard input.

    An error takes a document's turn where it cannot be read.
    """
    for path in paths:
        if path == STDIN:
            yield from _standard_lines()
        elif os.path.isdir(path):
            yield from (
                _read(file) for file in files_below(path) if file.endswith(_ENDING) or os.path.isdir(file)
            )
        else:
            yield _read(path)


def _read(file: str) -> _Text | ParseError:
    try:
        demand_regular(os.stat(file), file)
        return _Text(file, 0, read_proposal(file))
    except OSError as error:
        return ParseError(file, 0, error.strerror or str(error))


def _standard_lines() -> Iterator[_Text | ParseError]:
    stream = standard_input()
    number = 0
    while line := stream.readline(LARGEST + 1):
        number += 1
        if len(line) > LARGEST:
            yield ParseError(
                STDIN, number, f"more than {LARGEST / 1e6:g} MB: this and all after it were not read"
            )
            return
        if line.strip():
            yield _Text(STDIN, number, line.decode("utf-8", "surrogateescape"))


@click.command("merge")
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="FILE|FOLDER|-...")
@click.option(
    "--older-than",
    type=click.IntRange(min=1),
    metavar="HOURS",
    help="Leave documents out that are older than this: their hosts are not known.",
)
@fail_on_option
@click.option(
    "--output",
    type=click.Path(),
    metavar="FILE",
    help="Write to this file, completely or not at all (default: stdout).",
)
@format_option("sarif", "html")
def merge_command(**options: Any) -> int:  # noqa: ANN401 - MergeOrder has the types
    """Make one verdict of many hosts.

    FILE is a document of `nfstuned check --format json`, FOLDER has such files with names that end with
    .json, also in folders below it; - is the standard input with a document in each line. Each finding is
    listed once, with the number of its hosts. Of two documents of a host the newer counts. A document that
    cannot be used is named, and the exit status is 2: its host may have any finding.

    \b
    Examples:
      nfstuned merge verdicts/
      nfstuned merge verdicts/ --older-than 24 --fail-on error
      nfstuned merge verdicts/ --format html --output fleet.html
      cat */check.json | jq -c . | nfstuned merge - --format json

    \b
    Exit status:
      0  no finding as severe as --fail-on
      1  a finding is
      2  a document could not be used, a host was not judged as a whole, no document is there, or wrong
         usage
    """
    order = MergeOrder(**options)
    if order.form == "html" and _seen(order):
        raise click.UsageError("a page does not fit a terminal: give --output FILE")
    return run_merge(order)
