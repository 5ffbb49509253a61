"""`nfstuned.bench/1` back to a measurement (docs/json.md): a document that bench wrote, also of another host.

What can be computed from the runs is: what a document says of its medians and differences is not read. Keys
that this version does not know are left alone, and a field that has a default may be missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime, timezone
from enum import Enum
from types import MappingProxyType, NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from nfstuned.errors import ParseError
from nfstuned.model.bench import (
    SCHEMA,
    Bench,
    BenchSetting,
    BenchStep,
    Beside,
    Delivered,
    Job,
    MeasuredMount,
    Run,
    Suite,
)
from nfstuned.model.samples import MOST
from nfstuned.parse.fields import quoted

_Table = Mapping[str, object]


def parse_bench(text: str, file: str) -> Bench:
    """Return the measurement of a document. Raises ParseError with the file, the key and the value."""
    try:
        return _bench(_demand_table("the document", _loaded(text)))
    except RecursionError:
        raise ParseError(file, 0, "nested too deep") from None
    except ValueError as error:
        raise ParseError(file, 0, str(error)) from None


def _loaded(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"not JSON: {error.msg} at {place}: {quoted(text[:200].strip())}") from None
    except ValueError:
        raise ValueError("a number has too many digits") from None


def _bench(document: _Table) -> Bench:
    if document.get("schema") != SCHEMA:
        raise ValueError(f"schema is {_shown(document.get('schema'))}, expected {SCHEMA}")
    told = _demand_table("suite", document.get("suite"))
    suite: Suite = _fields(Suite, "suite", {"about": "", **told})
    jobs = _by_name("suite.jobs", suite.jobs)
    listed: tuple[BenchSetting, ...] = _value(tuple[BenchSetting, ...], "settings", document.get("settings"))
    settings = _by_name("settings", listed)
    runs = _demand_list("runs", document.get("runs"))
    return Bench(
        time=_moment("time", document.get("time")),
        subject=_fields(MeasuredMount, "mount", document.get("mount")),
        suite=suite,
        settings=listed,
        runs=tuple(_run(f"runs[{index}]", run, jobs, settings) for index, run in enumerate(runs)),
        ended=_string("ended", document.get("ended")),
        readings=_readings(document.get("results"), jobs),
        rate_bytes_per_s=_value(int | None, "rate_bytes_per_s", document.get("rate_bytes_per_s")),
    )


def _run(key: str, value: object, jobs: Mapping[str, Job], settings: Mapping[str, BenchSetting]) -> Run:
    table = _demand_table(key, value)
    step = BenchStep(
        _integer(f"{key}.turn", table.get("turn")),
        _named(f"{key}.job", table.get("job"), jobs),
        _named(f"{key}.setting", table.get("setting"), settings),
    )
    delivered = _value(Delivered | None, f"{key}.delivered", table.get("delivered"))
    beside = _fields(Beside, f"{key}.beside", table.get("beside"))
    return Run(step, delivered, beside, _string(f"{key}.problem", table.get("problem")))


def _readings(value: object, jobs: Mapping[str, Job]) -> Mapping[str, str]:
    """Return what limits the jobs: what the row of each job's last setting says."""
    readings = {}
    for index, row in enumerate(_demand_list("results", value)):
        key = f"results[{index}]"
        table = _demand_table(key, row)
        job: Job = _named(f"{key}.job", table.get("job"), jobs)
        readings[job.name] = _string(f"{key}.limit", table.get("limit"))
    return MappingProxyType({name: limit for name, limit in readings.items() if limit})


def _by_name(key: str, values: Sequence[Any]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for index, value in enumerate(values):
        if value.name in named:
            raise ValueError(f"{key}[{index}].name: {quoted(value.name)} is there twice")
        named[value.name] = value
    return named


def _named(key: str, value: object, among: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a job or a setting
    name = _string(key, value)
    if name not in among:
        raise ValueError(f"{key}: {quoted(name)} is none of {', '.join(map(quoted, among)) or 'none'}")
    return among[name]


def _value(kind: Any, key: str, value: object) -> Any:  # noqa: ANN401 - what `kind` says
    """Return a value of the type of a field: a plain value, an object of fields, a list, or null."""
    if get_origin(kind) is UnionType:
        if value is None:
            return None
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    if get_origin(kind) is tuple:
        each, _ = get_args(kind)
        items = _demand_list(key, value)
        return tuple(_value(each, f"{key}[{index}]", item) for index, item in enumerate(items))
    if is_dataclass(kind):
        return _fields(kind, key, value)
    if issubclass(kind, Enum):
        return _word(kind, key, value)
    return _PLAIN[kind](key, value)


def _fields(kind: Any, key: str, value: object) -> Any:  # noqa: ANN401 - as above
    table, types = _demand_table(key, value), get_type_hints(kind)
    return kind(**{
        field.name: _value(types[field.name], f"{key}.{field.name}", table.get(field.name))
        for field in fields(kind)
        if field.name in table or _is_needed(field)
    })  # fmt: skip


def _is_needed(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _word(kind: type[Enum], key: str, value: object) -> Enum:
    words = {each.value: each for each in kind}
    if not isinstance(value, str) or value not in words:
        raise _wrong(key, f"one of {', '.join(words)}", value)
    return words[value]


def _moment(key: str, value: object) -> float:
    try:
        moment = datetime.fromisoformat(_string(key, value))
        moment.astimezone(timezone.utc)  # the first and the last day of all years may be in none
    except (OverflowError, ValueError):
        raise _wrong(key, "a time such as 2026-07-29T14:30:00+00:00", value) from None
    if moment.tzinfo is None:
        raise _wrong(key, "a time with its offset from UTC", value)
    return moment.timestamp()


def _demand_table(key: str, value: object) -> _Table:
    if not isinstance(value, dict):
        raise _wrong(key, "an object", value)
    return value


def _demand_list(key: str, value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise _wrong(key, "a list", value)
    return value


def _string(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(key, "a string", value)
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a character, which stands for no byte of a name
        raise _wrong(key, "text", value) from None
    return value


def _flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _wrong(key, "true or false", value)
    return value


def _integer(key: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
        raise _wrong(key, f"a whole number from 0 to {MOST:g}", value)
    return value


def _number(key: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= MOST:
        raise _wrong(key, f"a number from 0 to {MOST:g}", value)
    return float(value)


def _wrong(key: str, kind: str, value: object) -> ValueError:
    return ValueError(f"{key} is not {kind}: {_shown(value)}")


def _shown(value: object) -> str:
    return "missing" if value is None else quoted(value if isinstance(value, str) else json.dumps(value))


_PLAIN: Mapping[object, Callable[[str, object], object]] = MappingProxyType(
    {str: _string, bool: _flag, int: _integer, float: _number}
)
