"""Saved samples: `nfstuned.sample/1` (docs/json.md) from a JSON line or a journal entry, and points in time.

Keys that this version does not know are left alone: later ones may write more. People write the time from
which they want samples as for journalctl's --since (systemd.time(7)), without `+2h` (the future), weekdays,
and time zones other than UTC, Z and offsets. No library's parser of dates is used: it would accept many other
forms, and refuse "1h ago".
"""

from __future__ import annotations

import json
import math
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any, TypeVar

from nfstuned.errors import ParseError
from nfstuned.model.samples import MOST, SCHEMA, OpRate, Sample, TransportRate, fields_of
from nfstuned.parse.fields import quoted

PREFIX = "NFSTUNED_"
UNKNOWN = "unknown"
"""The journal's value for a mount point that is not known (host/telemetry/journal.py)."""

Values = Mapping[str, object]
_Value = TypeVar("_Value")


def parse_line(line: bytes, file: str, number: int) -> Sample | ParseError:
    """Return the sample of a JSON line, also behind a byte order mark; without a sample, the reason."""
    try:
        document = _loaded(line.removeprefix(BOM_UTF8).decode("utf-8"))
        if not isinstance(document, dict):
            problem = f"not a JSON object: {_start(line)}"
        elif document.get("schema") != SCHEMA:
            problem = f"schema is {_shown(document.get('schema'))}, expected {SCHEMA}"
        else:
            return _sample(document)
    except UnicodeDecodeError:
        problem = f"not UTF-8: {_start(line)}"
    except json.JSONDecodeError as error:
        problem = f"not JSON ({error.msg} at column {error.colno}): {_start(line)}"
    except RecursionError:
        problem = f"nested too deep: {_start(line)}"
    except ValueError as error:
        problem = str(error)
    return ParseError(file, number, problem)


def _loaded(text: str) -> object:
    """Return the value of a JSON text. Raises JSONDecodeError; ValueError for a number of too many digits."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        raise ValueError("a number has too many digits") from None


def parse_entry(entry: Mapping[str, bytes | str], place: str) -> Sample | ParseError:
    """Return the sample of a journal entry's NFSTUNED_ fields, or the fault of the entry at `place`."""
    try:
        return _sample(_document(entry))
    except RecursionError:
        return ParseError(place, 0, "nested too deep")
    except ValueError as error:
        return ParseError(place, 0, str(error))


def _document(entry: Mapping[str, bytes | str]) -> dict[str, object]:
    """Return the JSON object that an entry's fields stand for."""
    fields = {
        name[len(PREFIX) :].lower(): text_of(value)
        for name, value in entry.items()
        if name.startswith(PREFIX)
    }
    document: dict[str, object] = dict(fields)
    for name, kind in _NUMBERS.items():
        if name in fields:
            try:
                document[name] = kind(fields[name])
            except ValueError:
                raise ValueError(f"{name} is not a number: {quoted(fields[name])}") from None
    document["ops"] = _json(fields, "ops")
    if "mount_points" in fields:
        document["mount_points"] = _json(fields, "mount_points")
    else:
        first = fields.get("mount_point", UNKNOWN)
        document["mount_points"] = [] if first == UNKNOWN else [first]
    document["transport"] = document
    return document


def text_of(value: bytes | str) -> str:
    """Return a field's text; bytes that are not UTF-8 become surrogate escapes."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")


def _json(fields: Mapping[str, str], name: str) -> object:
    if name not in fields:
        raise ValueError(f"{name} is missing")
    try:
        return _loaded(fields[name])
    except ValueError:
        raise ValueError(f"{name} is not JSON: {quoted(fields[name])}") from None


def _sample(values: Values) -> Sample:
    ops, transport = _table(values, "ops"), _table(values, "transport")
    return Sample(
        **{key: read(key, values.get(key, absent)) for key, absent, read in _SAMPLE},
        ops=MappingProxyType({name: _operation(ops, name) for name in ops}),
        transport=TransportRate(*[read(key, transport.get(key, absent)) for key, absent, read in _TRANSPORT]),
    )


def _operation(ops: Values, name: str) -> OpRate:
    values = _table(ops, name)
    try:
        return OpRate(*[read(key, values.get(key, absent)) for key, absent, read in _OPERATION])
    except ValueError as error:
        raise ValueError(f"{quoted(name)}: {error}") from None


def _table(values: Values, name: str) -> Values:
    value = values.get(name)
    if not isinstance(value, dict):
        plain = name.isidentifier() and name.isascii()
        raise _wrong(name if plain else quoted(name), "an object", value)
    return value


def _points(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(point, str) for point in value):
        raise _wrong(name, "a list of strings", value)
    for point in value:
        _demand_text(name, point)
    return tuple(value)


def _string(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(name, "a string", value)
    _demand_text(name, value)
    return value


def _demand_text(name: str, value: str) -> None:
    """Raise ValueError for a text that no bytes decode to; JSON can hold halves of characters."""
    try:
        value.isascii() or value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise _wrong(name, "text", value) from None


def _integer(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
        raise _wrong(name, f"a whole number from 0 to {MOST:g}", value)
    return value


def _rate(name: str, value: object) -> float:
    """Return a rate, a time or a mean: not negative, and so small that sums stay finite."""
    if type(value) is float and 0 <= value <= _ALLOWED:  # nearly always, and a day has millions of them
        return value
    most = _BOUNDS.get(name, MOST)
    if isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if value <= MOST else math.inf
    if not isinstance(value, float):
        raise _wrong(name, "a number", value)
    if not 0 <= value <= most:
        raise ValueError(f"{name} is not a number from 0 to {most:g}: {value}")
    return value


def _optional(read: Callable[[str, object], _Value]) -> Callable[[str, object], _Value | None]:
    """Return the reader of a field that may be null."""
    return lambda name, value: None if value is None else read(name, value)


def _wrong(name: str, kind: str, value: object) -> ValueError:
    return ValueError(f"{name} is not {kind}: {_shown(value)}")


def _shown(value: object) -> str:
    return "missing" if value is None else quoted(str(value))


def _start(line: bytes) -> str:
    """Return the beginning of a line for a message."""
    return quoted(line.rstrip(b"\n").decode("utf-8", "replace"))


_READERS: Mapping[object, Callable[[str, object], Any]] = MappingProxyType({
    str: _string, str | None: _optional(_string), tuple[str, ...]: _points,
    float: _rate, float | None: _optional(_rate),
    int: _integer, int | None: _optional(_integer),
})  # fmt: skip
"""By the type of a field."""
_FLAT = (*fields_of(Sample), *fields_of(TransportRate))
_NUMBERS = {field.key: float if field.type in {float, float | None} else int for field in _FLAT if field.unit}
_BOUNDS = {field.key: field.most for field in _FLAT if field.most != MOST}
_ALLOWED = min(_BOUNDS.values())
"""The bound that every field has at least."""
_SAMPLE, _TRANSPORT, _OPERATION = (
    tuple((field.key, field.absent, _READERS[field.type]) for field in fields_of(table))
    for table in (Sample, TransportRate, OpRate)
)


FORMS = '"1h ago", "-90min", today, yesterday, "14:30", "2026-07-29 14:30", "2026-07-29T14:30:00Z", @SECONDS'
"""Examples of every allowed form, for messages to people."""

# Seconds of a unit, and the unit's names.
_UNITS = {
    1: "s sec second seconds",
    60: "m min minute minutes",
    3600: "h hr hour hours",
    86400: "d day days",
    604800: "w week weeks",
}
_SECONDS = {name: seconds for seconds, names in _UNITS.items() for name in names.split()}
# A number and a unit's name: "1h", "30 min".
_SPAN = r"(\d{1,9}(?:\.\d{1,9})?) ?([a-z]+) ?"
# A date, a clock time, or both with a space or T between them.
_DAY_CLOCK = r"(?:(\d{4}-\d{2}-\d{2})(?:[ T](?=\d)|$))?(\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?"
_ZONE = r" ?(Z|UTC|[+-]\d{2}:?\d{2})$"
_DAYS = {"today": 0, "yesterday": -1}


def parse_since(text: str, now: datetime) -> float:
    """Return the point in time that `text` names, in Unix seconds.

    A time without a time zone is read in the time zone of `now`. Raises ValueError with FORMS in its message
    where `text` has none of these forms.
    """
    words = " ".join(text.split())
    try:
        return _moment(words, now).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"not a time: {text!r}; allowed: {FORMS}") from None


def _moment(text: str, now: datetime) -> datetime:
    if text == "now":
        return now
    if text in _DAYS:
        midnight = datetime.combine(now.date() + timedelta(days=_DAYS[text]), datetime.min.time())
        return _with_zone(midnight, now)
    if text.startswith("@"):
        return datetime.fromtimestamp(float(text[1:]), timezone.utc)
    if text.endswith(" ago"):
        return now - _span(text[: -len(" ago")])
    if text.startswith("-"):
        return now - _span(text[1:])
    return _date_and_clock(text, now)


def _span(text: str) -> timedelta:
    """Return "1h 30min" or "2 days" as a duration; ValueError for anything else."""
    parts = list(re.finditer(_SPAN, text))
    if (
        "".join(part[0] for part in parts) != text
        or not parts
        or not _SECONDS.keys() >= {p[2] for p in parts}
    ):
        raise ValueError
    return timedelta(seconds=sum(float(part[1]) * _SECONDS[part[2]] for part in parts))


def _date_and_clock(text: str, now: datetime) -> datetime:
    """Return the moment of a date, a time of today, or both; ValueError for anything else.

    It is in the time zone that the text names, else in the zone of `now`.
    """
    zone = re.search(_ZONE, text) if ":" in text else None
    plain = text[: zone.start()] if zone else text
    match = re.fullmatch(_DAY_CLOCK, plain)
    if match is None or not plain:
        raise ValueError
    day = match[1] or now.date().isoformat()
    clock = match[2] or "00:00"
    layout = "%H:%M:%S.%f" if "." in clock else "%H:%M:%S" if clock.count(":") > 1 else "%H:%M"
    moment = datetime.strptime(f"{day} {clock}", f"%Y-%m-%d {layout}")  # noqa: DTZ007 - the zone comes next
    if zone is None:
        return _with_zone(moment, now)
    offset = "+0000" if zone[1] in {"Z", "UTC"} else zone[1].replace(":", "")
    return moment.replace(tzinfo=datetime.strptime(offset, "%z").tzinfo)


def _with_zone(moment: datetime, now: datetime) -> datetime:
    """Return `moment`, which has no time zone, as a time in the zone of `now`.

    Where `now` has the host's offset, the host's zone gives the offset of the day of `moment` (summer time).
    """
    local = now.astimezone().utcoffset() == now.utcoffset()
    return moment.astimezone() if local else moment.replace(tzinfo=now.tzinfo)
