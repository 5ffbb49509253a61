"""The documents of other hosts, of the journal and of other programs: parsed, and shown in every format."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from unittest import mock

from nfstuned.core.fleet import Fleet
from nfstuned.core.samples.history import History, Series
from nfstuned.core.samples.sample import sample_to_json
from nfstuned.errors import ParseError
from nfstuned.host.bench.documents import parse_bench, parse_size
from nfstuned.host.bench.fio import parse_fio
from nfstuned.host.files.ledger import parse_installed, render_installed
from nfstuned.host.policy import builtin_texts
from nfstuned.host.telemetry.history import fields as entry_fields
from nfstuned.host.telemetry.journalctl import _entry
from nfstuned.model.bench import Pattern
from nfstuned.model.facts import Severity
from nfstuned.model.policy import ConfigError
from nfstuned.model.samples import Sample
from nfstuned.parse.check_settings import baseline_text, parse_baseline, parse_own, parse_project
from nfstuned.parse.ignores import parse_ignores
from nfstuned.parse.policy import parse_config
from nfstuned.parse.samples import parse_entry, parse_line, parse_since, text_of
from nfstuned.parse.verdict import parse_verdict
from nfstuned.view import pages
from nfstuned.view.bench import bench_document, bench_page, comparison_lines
from nfstuned.view.fleet import left_out_lines, merge_document, merge_lines, merge_page, merge_sarif
from nfstuned.view.history import csv_row, history_lines
from nfstuned.view.report import Account, Page, report_page
from nfstuned.view.words import to_json
from tests.fuzz.checks import MOST_FINDINGS

_templates = functools.cache(pages.environment)
_NOW = datetime(2026, 11, 25, 12, tzinfo=timezone.utc)


@functools.cache
def _builtin() -> list[tuple[str, str]]:
    """Return a few profiles: all of them take a hundred times longer than a file of a user."""
    few = {"built-in generic.toml", "built-in azure-files.toml", "built-in random.toml"}
    return [(name, text) for name, text in builtin_texts() if name in few]


def configuration(text: str) -> Iterator[object]:
    """Yield the problems of a file, or its policy: as those of a child they are lines."""
    for read in (_policy, lambda text: parse_own("f", text), lambda text: parse_project("f", text)):
        try:
            yield read(text)
        except ConfigError as error:  # noqa: PERF203 - three
            yield from error.problems


def _policy(text: str) -> object:
    return parse_config(_builtin(), [("f", text)])


def baseline(text: str) -> Iterator[object]:
    """Yield the comments that accept findings, and whether a baseline comes back as it was written."""
    yield from parse_ignores(text, "f")
    known = parse_baseline(text, "f")
    if sum(known.values()) < MOST_FINDINGS:
        again = baseline_text(each for each, count in known.items() for _ in range(count))
        yield parse_baseline(again, "f") == known


def verdicts(text: str) -> Iterator[object]:
    """Yield the verdict of hosts, a document in each line, in all formats of `nfstuned merge`."""
    fleet = Fleet(_NOW.timestamp())
    for number, line in enumerate(text.split("\n"), 1):
        try:
            fleet.add(parse_verdict(line, "f", number), f"f:{number}")
        except ParseError as error:  # noqa: PERF203 - a handful
            fleet.refuse(error)
            yield error
    report = fleet.report(Severity.WARNING)
    for document in (merge_document(report), merge_sarif(report, "h", 0.0, {})):
        yield json.loads(to_json(document)) is not None
    yield from (*left_out_lines(report), *merge_lines(report, 80))
    yield _drawn(merge_page(report, 0.0))


def samples(data: bytes) -> Iterator[object]:
    """Yield the samples of lines, and whether each comes back as it was written."""
    for number, line in enumerate(data.split(b"\n"), 1):
        found = parse_line(line, "f", number)
        yield found
        if isinstance(found, Sample):
            yield parse_line(json.dumps(sample_to_json(found)).encode(), "f", 1) == found


def history(data: bytes) -> Iterator[object]:
    """Yield the rows of `nfstuned samples --file`, and the page of `nfstuned report --file`."""
    history, series = History(), Series()
    for number, line in enumerate(data.split(b"\n"), 1):
        sample = parse_line(line, "f", number)
        if isinstance(sample, Sample):
            history.add(sample)
            series.add(sample)
            yield csv_row(sample)
    axis = history.axis()
    if axis is not None and series.span is not None:
        yield from history_lines(axis, history.mounts(axis), " .:", timezone.utc)
        account = Account(no_report="none", no_events="none")
        mounts = tuple(series.mounts())
        page = Page("t", 0.0, *series.span, series.axis(), mounts, account, timezone.utc)
        yield _drawn(report_page(page))


def _drawn(page: Iterable[str]) -> bool:
    """Return whether a page has no control character; its template is compiled only once."""
    with mock.patch.object(pages, "environment", _templates):
        return all(line.isprintable() for text in page for line in text.split("\n"))


def entry(data: bytes) -> Iterator[object]:
    """Yield the sample of a journal's entry, a field in each line, and the time that its first line names.

    The entry comes back from a line of journalctl's.
    """
    pairs = (line.partition(b"=")[::2] for line in data.split(b"\n"))
    fields = {name.decode("ascii", "replace"): value for name, value in pairs}
    yield parse_entry(fields, "f")
    # journalctl prints other text than ASCII as a list of bytes where it is not UTF-8, or not printable.
    printed = {name: value.decode() if value.isascii() else [*value] for name, value in fields.items()}
    line = json.dumps(printed | {"__REALTIME_TIMESTAMP": "1"}).encode()
    yield _texts(_entry(line)) == _texts(fields)
    with suppress(ValueError):  # its own
        yield parse_since(data.partition(b"\n")[0].decode("utf-8", "surrogateescape"), _NOW)


def _texts(entry: Mapping[str, object]) -> dict[str, str]:
    return {name: text_of(value) for name, value in entry_fields(entry).items()}


def bench(data: bytes) -> Iterator[object]:
    """Yield the lines of a measurement, and its page."""
    with suppress(ValueError):  # its own
        yield parse_size(data[:40].decode("utf-8", "surrogateescape"))
    measured = parse_bench(data, "f")
    yield from comparison_lines(measured)
    yield json.loads(to_json(bench_document(measured))) is not None
    yield _drawn(bench_page(measured, zone=timezone.utc))


def fio(text: str) -> Iterator[object]:
    """Yield the figures of fio's output."""
    yield from (parse_fio(text, pattern) for pattern in (Pattern.READ, Pattern.RANDOM_WRITE))


def installed(text: str) -> Iterator[object]:
    """Yield whether a list of installed files comes back as it was written."""
    found = parse_installed(text, "f")
    yield parse_installed(render_installed(found), "f") == found
