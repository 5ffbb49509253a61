"""`nfstuned samples`."""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone

import click

from nfstuned.cli.terminal import (
    dated,
    file_option,
    format_option,
    mount_option,
    note,
    require_absolute_path,
    since_option,
)
from nfstuned.core.samples.history import BOUNDS_MS, History, MeanTimesCount, series_key
from nfstuned.core.samples.sample import kinds, sample_to_json
from nfstuned.errors import ParseError
from nfstuned.host.root import Root
from nfstuned.host.telemetry.history import from_files, from_journal
from nfstuned.model.samples import Sample
from nfstuned.parse.fields import clean_path, count
from nfstuned.parse.samples import parse_since
from nfstuned.view.history import ASCII, BLOCKS, CSV_HEADER, csv_row, history_lines
from nfstuned.view.words import TIME_FORM, printable, without_secrets

SHOWN, DAMAGED, UNREADABLE = 0, 1, 2
A_DAY_S = 86400.0
MOST_PROBLEMS = 10
MOST_NAMES = 8


@dataclass(frozen=True, slots=True)
class SamplesOrder:
    """The options of a call."""

    since: str | None
    mount: str | None
    file: str | None
    form: str = "text"


class Selection:
    """The samples of a mount, or of all; stderr names the first of those that are damaged."""

    def __init__(self, samples: Iterable[Sample | ParseError], mount: str | None) -> None:
        self._samples = samples
        self._mount = None if mount is None else clean_path(mount)
        self.problems = 0
        self.others: dict[str, None] = {}
        """The mount points that were passed over."""

    def __iter__(self) -> Iterator[Sample]:
        for item in self._samples:
            if isinstance(item, ParseError):
                self.problems += 1
                if self.problems <= MOST_PROBLEMS:
                    note(str(item))
            elif self._mount is None or self._mount in item.mount_points:
                yield item
            else:
                self.others.update(dict.fromkeys(item.mount_points))
        if self.problems > MOST_PROBLEMS:
            note(f"{self.problems - MOST_PROBLEMS} more problems of this kind")


def print_samples(root: Root, order: SamplesOrder) -> int:
    """Print the samples that were kept; raises OSError where reading fails on the way."""
    opened = select_samples(root, order)
    if opened is None:
        return UNREADABLE
    selection, since_s = opened
    if order.form == "json":
        shown = _print_json(selection)
    elif order.form == "csv":
        shown = _print_csv(selection)
    else:
        shown = _print_text(selection)
    if not shown:
        explain_absence(order, since_s, selection)
    return DAMAGED if selection.problems else SHOWN


def select_samples(root: Root, order: SamplesOrder) -> tuple[Selection, float | None] | None:
    """Return the samples that were asked for, and from when on; None after saying why there can be none."""
    try:
        # Of the journal a day ago, of a file at its beginning.
        since_s = None if order.file is not None else time.time() - A_DAY_S
        if order.since is not None:
            since_s = parse_since(order.since, datetime.now(timezone.utc).astimezone())
        read = from_journal(root, since_s) if order.file is None else from_files(order.file, since_s)
    except ValueError as error:
        note(f"--since: {error}")
        return None
    except OSError as error:
        note(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror))
        return None
    return Selection(read, order.mount), since_s


def _print_json(samples: Iterable[Sample]) -> int:
    """Print `nfstuned.samples/1`, a sample a line, as they come: a day of many mounts need not fit memory."""
    shown = 0
    counts: dict[tuple[str, str], MeanTimesCount] = {}
    head = json.dumps(dated({"schema": "nfstuned.samples/1"})).removesuffix("}")
    sys.stdout.write(f'{head}, "samples": [')
    for sample in samples:
        sys.stdout.write(("\n" if shown == 0 else ",\n") + json.dumps(sample_to_json(sample)))
        counts.setdefault(series_key(sample), MeanTimesCount()).add(kinds(sample))
        shown += 1
    sys.stdout.write("\n]" if shown else "]")
    mean_times = [
        {
            "mount_point": point,
            "source": source,
            "kind": kind,
            "at_most_ms": [*BOUNDS_MS, None],
            "samples": intervals,
        }
        for (point, source), mount in sorted(counts.items())
        for kind, intervals in mount.counted()
    ]
    sys.stdout.write(f', "mean_rtt": {json.dumps(without_secrets(mean_times))}}}\n')
    return shown


def _print_csv(samples: Iterable[Sample]) -> int:
    shown = 0
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(CSV_HEADER)
    for sample in samples:
        writer.writerow(csv_row(sample))
        shown += 1
    return shown


def _print_text(samples: Iterable[Sample]) -> int:
    history = History()
    shown = 0
    for sample in samples:
        history.add(sample)
        shown += 1
    axis = history.axis()
    if axis is not None:
        bars = BLOCKS
        try:
            BLOCKS.encode(sys.stdout.encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            bars = ASCII
        for line in history_lines(axis, history.mounts(axis), bars):
            sys.stdout.write(line + "\n")
    return shown


def explain_absence(order: SamplesOrder, since_s: float | None, selection: Selection) -> None:
    """Say on stderr why there may be nothing."""
    of = "" if order.mount is None else f" of {order.mount}"
    after = "" if since_s is None else f" since {datetime.fromtimestamp(since_s).astimezone():{TIME_FORM}}"
    to_come = since_s is not None and since_s > time.time()
    why = "that time is in the future" if to_come else "nothing was in use, or the service did not run"
    if selection.problems and not selection.others:
        why = "all lines or entries are damaged"
    note(f"no samples{of}{after}: {why}")
    names = list(selection.others)
    if names:
        listed = ", ".join(printable(name) for name in names[:MOST_NAMES])
        rest = f" and {count(len(names) - MOST_NAMES, 'other')}" if len(names) > MOST_NAMES else ""
        note(f"there are samples of {listed}{rest}")


@click.command("samples")
@since_option
@mount_option
@file_option
@format_option("csv")
@click.pass_obj
def samples_command(
    root: Root, /, *, since: str | None, mount: str | None, file: str | None, form: str
) -> int:
    """Show what mounts delivered in the past.

    The service writes a sample of each mount that was in use once in each sample_interval. They are read
    from the journal, or from the file that [samples] in nfstuned.toml(5) names; no mount is touched. Each
    figure is a row with bars over the time, all mounts over the same, and with its least, median and
    greatest value while the mount was in use:

    \b
      read, write          the bytes that programs asked for, and got
      over-fetch           bytes read from the server for each byte that programs read
      read RTT, write RTT  the mean time from sending a request to its reply

    Below them each operation has its own mean times: RTT, in the client's queue before it was sent, and
    from beginning to end (execute).

    \b
    Examples:
      nfstuned samples
      nfstuned samples --since "2h ago" --mount /data
      nfstuned samples --since today --format csv > today.csv
      nfstuned samples --file /var/log/nfstuned/samples.jsonl
      nfstuned samples --format json |
        jq '.samples[] | select(.over_fetch_ratio > 2) | .mount_points'

    \b
    Exit status:
      0  shown, even where there was nothing to show
      1  shown, but without lines or entries that are damaged; stderr names them
      2  could not read: no access to the journal, no such file, or wrong usage
    """
    require_absolute_path(mount)
    return print_samples(root, SamplesOrder(since, mount, file, form))
