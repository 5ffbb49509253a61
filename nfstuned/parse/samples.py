"""`nfstuned.sample/1` back to a Sample, from a JSON line or a journal entry (docs/json.md).

Keys that this version does not know are left alone: later ones may write more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NoReturn

from nfstuned.errors import ParseError
from nfstuned.model.samples import OpRate, Sample, TransportRate
from nfstuned.parse.fields import quoted

SCHEMA = "nfstuned.sample/1"
PREFIX = "NFSTUNED_"
UNKNOWN = "unknown"
"""What the journal holds for a mount point where there is none (host/telemetry/journal.py)."""

_RATES = (
    "time",
    "interval_s",
    "read_bytes_per_s",
    "write_bytes_per_s",
    "server_read_bytes_per_s",
    "server_write_bytes_per_s",
)
_LATER_RATES = ("direct_read_bytes_per_s", "direct_write_bytes_per_s")
"""Keys with a default, which the earliest samples do not have; so have an operation's timeouts."""
_WAITING = ("in_flight", "backlog", "sending", "pending", "connects_per_s")
_FLOATS = (*_RATES, *_LATER_RATES, "over_fetch_ratio", *_WAITING)
_LARGEST = 1e100
_MOST = {"time": 1e11, "interval_s": 1e10}
"""In seconds: the year 5138, and three hundred years. Beyond, no calendar could show them."""
_INTEGERS = ("connections", "max_slots", "read_ahead_kb", "rsize_bytes")

Values = Mapping[str, object]


def parse_line(line: bytes, file: str, number: int) -> Sample | ParseError:
    """Return the sample of one JSON line; a line that holds none is its error."""
    try:
        return _known(json.loads(line.decode("utf-8")), line)
    except UnicodeDecodeError:
        return ParseError(file, number, f"not UTF-8: {_start(line)}")
    except json.JSONDecodeError as error:
        why = f"not JSON ({error.msg} at column {error.colno}): {_start(line)}"
        return ParseError(file, number, why)
    except RecursionError:
        return ParseError(file, number, f"nested too deep: {_start(line)}")
    except ValueError as error:
        return ParseError(file, number, str(error))


def _known(document: object, line: bytes) -> Sample:
    if not isinstance(document, dict):
        return _refuse(f"not a JSON object: {_start(line)}")
    if document.get("schema") != SCHEMA:
        raise ValueError(f"schema is {_shown(document.get('schema'))}, expected {SCHEMA}")
    return _sample(document)


def parse_entry(entry: Mapping[str, bytes | str], place: str) -> Sample | ParseError:
    """Return the sample of a journal entry's NFSTUNED_ fields, or what is wrong with the entry at `place`."""
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
    for names, kind in ((_FLOATS, float), (_INTEGERS, int)):
        for name in names:
            if name in fields:
                document[name] = _converted(name, fields[name], kind)
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


def _converted(name: str, text: str, kind: type[float | int]) -> float:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{name} is not a number: {quoted(text)}") from None


def _json(fields: Mapping[str, str], name: str) -> object:
    if name not in fields:
        raise ValueError(f"{name} is missing")
    try:
        return json.loads(fields[name])
    except ValueError:
        raise ValueError(f"{name} is not JSON: {quoted(fields[name])}") from None


def _sample(values: Values) -> Sample:
    points = values.get("mount_points")
    if not isinstance(points, list) or not all(isinstance(point, str) for point in points):
        raise _wrong("mount_points", "a list of strings", points)
    for point in points:
        _demand_text("mount_points", point)
    ops = _table(values, "ops")
    return Sample(
        device=_string(values, "device"),
        mount_points=tuple(points),
        source=_string(values, "source"),
        over_fetch_ratio=_mean(values, "over_fetch_ratio"),
        ops=MappingProxyType({name: _operation(ops, name) for name in ops}),
        transport=_transport(_table(values, "transport")),
        read_ahead_kb=_count(values, "read_ahead_kb"),
        rsize_bytes=_count(values, "rsize_bytes"),
        direct_read_bytes_per_s=_later_rate(values, "direct_read_bytes_per_s"),
        direct_write_bytes_per_s=_later_rate(values, "direct_write_bytes_per_s"),
        **{name: _rate(values, name) for name in _RATES},
    )


def _operation(ops: Values, name: str) -> OpRate:
    values = _table(ops, name)
    try:
        return OpRate(
            per_s=_rate(values, "per_s"),
            rtt_ms=_mean(values, "rtt_ms"),
            queue_ms=_mean(values, "queue_ms"),
            exe_ms=_mean(values, "exe_ms"),
            retrans_per_s=_rate(values, "retrans_per_s"),
            errors_per_s=_mean(values, "errors_per_s"),
            timeouts_per_s=_later_rate(values, "timeouts_per_s"),
        )
    except ValueError as error:
        raise ValueError(f"{quoted(name)}: {error}") from None


def _transport(values: Values) -> TransportRate:
    return TransportRate(
        group=_string(values, "group"),
        connections=_integer(values, "connections"),
        max_slots=_count(values, "max_slots"),
        **{name: _mean(values, name) for name in _WAITING},
    )


def _table(values: Values, name: str) -> Values:
    value = values.get(name)
    if not isinstance(value, dict):
        raise _wrong(_named(name), "an object", value)
    return value


def _string(values: Values, name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str):
        raise _wrong(name, "a string", value)
    _demand_text(name, value)
    return value


def _demand_text(name: str, value: str) -> None:
    """Raise ValueError for what no bytes of the kernel are read as; JSON can hold halves of characters."""
    try:
        value.isascii() or value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise _wrong(name, "text", value) from None


def _integer(values: Values, name: str) -> int:
    value = values.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise _wrong(name, f"a whole number from 0 to {_LARGEST:g}", value)
    return value


def _count(values: Values, name: str) -> int | None:
    return None if values.get(name) is None else _integer(values, name)


def _later_rate(values: Values, name: str) -> float:
    """Return a rate that the earliest samples do not have."""
    return _rate(values, name) if name in values else 0.0


def _mean(values: Values, name: str) -> float | None:
    return None if values.get(name) is None else _rate(values, name)


def _rate(values: Values, name: str) -> float:
    """Return what can be a rate, a time or a mean: not negative, and so small that sums stay finite."""
    value = values.get(name)
    most = _MOST.get(name, _LARGEST)
    if type(value) is float and 0 <= value <= most:  # nearly always, and a day has millions of them
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if value <= _LARGEST else math.inf
    if not isinstance(value, float):
        raise _wrong(name, "a number", value)
    if not 0 <= value <= most:
        raise ValueError(f"{name} is not a number from 0 to {most:g}: {value}")
    return value


def _refuse(why: str) -> NoReturn:
    raise ValueError(why)


def _wrong(name: str, kind: str, value: object) -> ValueError:
    return ValueError(f"{name} is not {kind}: {_shown(value)}")


def _named(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else quoted(name)


def _shown(value: object) -> str:
    return "missing" if value is None else quoted(str(value))


def _start(line: bytes) -> str:
    """Return the beginning of a line for a message."""
    return quoted(line.rstrip(b"\n").decode("utf-8", "replace"))
