"""Samples that were kept, as people read them and as rows of CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo
from textwrap import wrap

from nfstuned.core.samples.history import COLUMNS, Axis, MountHistory, Row
from nfstuned.core.samples.sample import ALL_KINDS, combine, figure, kinds, ratio, speed
from nfstuned.model.samples import Csv, OpRate, Sample, TransportRate, fields_of
from nfstuned.parse.fields import count
from nfstuned.view.words import DASH, TIME_FORM, duration, printable, shorten, utc

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = "_.-:=+*#"
"""The bars where the output cannot have those; both from nothing to the most."""
WIDTH = 79
_CELL = 11
_MOST = 1e7 - 0.5
"""Greater numbers are written in fewer digits, as a cell has room for no more."""
_COMPUTED = ("=", "+", "-", "@", "'")
"""The beginnings of a cell that get an apostrophe: a spreadsheet's formula, and an apostrophe itself. A tab
and a line break are not printable, and escaped."""


def _keys(table: type, place: Csv) -> tuple[str, ...]:
    return tuple(field.key for field in fields_of(table) if field.csv is place)


_TIME, *_PLAIN = _keys(Sample, Csv.TABLE)
_OF_KIND, _TOGETHER = _keys(OpRate, Csv.KIND), _keys(OpRate, Csv.TABLE)
_TRANSPORT = _keys(TransportRate, Csv.TABLE)
_LAST, _LAST_TOGETHER = _keys(Sample, Csv.LAST), _keys(OpRate, Csv.LAST)
_END = _keys(Sample, Csv.END)
CSV_HEADER = (
    _TIME,
    "utc",
    *("mount_point" if key == "mount_points" else key for key in _PLAIN),
    *(f"{kind}_{key}" for kind in ALL_KINDS for key in _OF_KIND),
    *_TOGETHER,
    *_TRANSPORT,
    *_LAST,
    *_LAST_TOGETHER,
    *_END,
)
"""The keys of `nfstuned.sample/1`; `utc` is `time` for people, and operations are taken together by kind."""


def csv_row(sample: Sample) -> list[object]:
    """Return a sample under CSV_HEADER; None where a figure is not known or a kind was not used.

    Without any operation the sums over all of them are 0.
    """
    point = sample.mount_points[0] if sample.mount_points else None
    rates = kinds(sample)
    every = combine(list(sample.ops.values()))
    row: list[object] = [
        sample.time,
        utc(sample.time),
        *(point if key == "mount_points" else getattr(sample, key) for key in _PLAIN),
        *(getattr(rates[kind], key) if kind in rates else None for kind in ALL_KINDS for key in _OF_KIND),
        *(getattr(every, key) if sample.ops else 0 for key in _TOGETHER),
        *(getattr(sample.transport, key) for key in _TRANSPORT),
        *(getattr(sample, key) for key in _LAST),
        *(getattr(every, key) if sample.ops else 0 for key in _LAST_TOGETHER),
        *(getattr(sample, key) for key in _END),
    ]
    return [_harmless(value) if isinstance(value, str) else value for value in row]


def _harmless(text: str) -> str:
    """Return a text that neither a terminal obeys nor a spreadsheet computes: behind an apostrophe.

    A text that begins with an apostrophe gets another, so that to take the first away gives the text back.
    """
    shown = printable(text)
    return f"'{shown}" if shown.startswith(_COMPUTED) else shown


def history_lines(
    axis: Axis, mounts: Iterator[MountHistory], bars: str, zone: tzinfo | None = None
) -> Iterator[str]:
    """Yield a block of lines for each mount; none is wider than WIDTH. `zone` None is the host's."""
    start, end = (datetime.fromtimestamp(moment, zone).astimezone(zone) for moment in (axis.start, axis.end))
    # Between summer and winter time each has its own; an hour of the clock comes twice then.
    zone_of_start = f" {start.tzname()}" if start.tzname() != end.tzname() else ""
    yield f"{start:{TIME_FORM}}{zone_of_start} to {end:{TIME_FORM}} {end.tzname() or ''}".rstrip()
    column = duration(axis.width_s)
    yield f"a column is {column}; blank: not in use, or the service did not run"
    for mount in mounts:
        yield ""
        yield shorten(f"{mount.label}  {printable(mount.source)}", WIDTH)
        used = f"  {count(mount.samples, 'sample')}, in use for {duration(mount.used_s)}"
        yield f"{used:<{WIDTH - 3 * _CELL}}{_cells('min', 'median', 'max')}"
        yield from (_row(row, bars) for row in mount.rows)
        if mount.ops:
            yield f"  {'operation':<{WIDTH - 2 - 4 * _CELL}}{_cells('/s', 'RTT', 'queue', 'execute')}"
        for name, per_s, *times_ms in mount.ops:
            shown = shorten(printable(name), WIDTH - 3 - 4 * _CELL)
            times = (DASH if time is None else f"{_number(time)} ms" for time in times_ms)
            yield f"  {shown:<{WIDTH - 2 - 4 * _CELL}}{_cells(_number(per_s), *times)}"
        for verdict in mount.read_ahead:
            yield from wrap(str(verdict), WIDTH, initial_indent="  ", subsequent_indent="    ")


def _row(row: Row, bars: str) -> str:
    """Return a figure's name, its bars, and its least, median and greatest value."""
    values = (row.least, row.median, row.most)
    if row.name in {"read", "write"}:
        texts = [speed(value) for value in values]
    elif row.name == "over-fetch":
        texts = [ratio(value) for value in values]
    elif row.name == "stalled":
        texts = [f"{figure(value)} %" for value in values]
    else:
        texts = [f"{_number(value)} ms" for value in values]
    return f"  {row.name:<11} {sparkline(row.means, bars):<{COLUMNS + 2}}{_cells(*texts)}"


def _cells(*texts: str) -> str:
    return "".join(f"{text:>{_CELL}}" for text in texts)


def _number(value: float) -> str:
    return figure(value) if value < _MOST else f"{value:.0e}"


def sparkline(values: Sequence[float | None], bars: str) -> str:
    """Return a bar for each value, from nothing to the most among them; a blank for None."""
    most = max((value for value in values if value is not None), default=0.0) or 1.0
    return "".join(
        " " if value is None else bars[min(len(bars) - 1, int(value / most * len(bars)))] for value in values
    )
