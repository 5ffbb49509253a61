"""`nfstuned.bench/1` back to a measurement (docs/json.md), also from another host or version.

The values that follow from the runs are computed, so that a document's medians and differences are not read.
Unknown keys are left alone, and a field that has a default may be missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
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


def parse_bench(text: str, file: str) -> Bench:
    """Return the measurement of a document. Raises ParseError with the file, the key and the value."""
    try:
        document = json.loads(text)
        return _bench(_value(dict, "the document", document))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        shown = quoted(text[:200].strip())
        raise ParseError(file, 0, f"not JSON: {error.msg} at {place}: {shown}") from None
    except RecursionError:
        raise ParseError(file, 0, "nested too deep") from None
    except _FieldError as error:
        raise ParseError(file, 0, str(error)) from None
    except ValueError:  # json.loads, of a number
        raise ParseError(file, 0, "a number has too many digits") from None


class _FieldError(Exception):
    """A key with its wrong value."""


def _bench(document: Mapping[str, object]) -> Bench:
    if document.get("schema") != SCHEMA:
        raise _FieldError(f"schema is {_shown(document.get('schema'))}, expected {SCHEMA}")
    suite: Suite = _value(Suite, "suite", {"about": "", **_value(dict, "suite", document.get("suite"))})
    settings: tuple[BenchSetting, ...] = _value(
        tuple[BenchSetting, ...], "settings", document.get("settings")
    )
    jobs_by_name, settings_by_name = _by_name("suite.jobs", suite.jobs), _by_name("settings", settings)
    runs, readings = [], {}
    for index, item in enumerate(_value(list, "runs", document.get("runs"))):
        key = f"runs[{index}]"
        table = _value(dict, key, item)
        step = BenchStep(
            _value(int, f"{key}.turn", table.get("turn")),
            _named(f"{key}.job", table.get("job"), jobs_by_name),
            _named(f"{key}.setting", table.get("setting"), settings_by_name),
        )
        delivered = _value(Delivered | None, f"{key}.delivered", table.get("delivered"))
        beside = _value(Beside, f"{key}.beside", table.get("beside"))
        runs.append(Run(step, delivered, beside, _value(str, f"{key}.problem", table.get("problem"))))
    # The limit of a job is in the row of its last setting.
    for index, item in enumerate(_value(list, "results", document.get("results"))):
        key = f"results[{index}]"
        table = _value(dict, key, item)
        job: Job = _named(f"{key}.job", table.get("job"), jobs_by_name)
        readings[job.name] = _value(str, f"{key}.limit", table.get("limit"))
    return Bench(
        time=_moment("time", document.get("time")),
        subject=_value(MeasuredMount, "mount", document.get("mount")),
        suite=suite,
        settings=settings,
        runs=tuple(runs),
        ended=_value(str, "ended", document.get("ended")),
        readings=MappingProxyType({name: limit for name, limit in readings.items() if limit}),
        rate_bytes_per_s=_value(int | None, "rate_bytes_per_s", document.get("rate_bytes_per_s")),
    )


def _by_name(key: str, values: Sequence[Any]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for index, value in enumerate(values):
        if value.name in named:
            raise _FieldError(f"{key}[{index}].name: {quoted(value.name)} is there twice")
        named[value.name] = value
    return named


def _named(key: str, value: object, among: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a job or a setting
    name = _value(str, key, value)
    if name not in among:
        raise _FieldError(f"{key}: {quoted(name)} is none of {', '.join(map(quoted, among)) or 'none'}")
    return among[name]


def _moment(key: str, value: object) -> float:
    try:
        moment = datetime.fromisoformat(_value(str, key, value))
        moment.astimezone(timezone.utc)  # the first and the last day of all years may be in none
    except (OverflowError, ValueError):
        raise _wrong(key, "a time such as 2026-07-29T14:30:00+00:00", value) from None
    if moment.tzinfo is None:
        raise _wrong(key, "a time with its offset from UTC", value)
    return moment.timestamp()


def _value(kind: Any, key: str, value: object) -> Any:  # noqa: ANN401 - a value of the type `kind`
    """Return a value of a field's type: a plain value, an object of fields, a list, or null."""
    if get_origin(kind) is UnionType:
        if value is None:
            return None
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    if get_origin(kind) is tuple:
        items = _value(list, key, value)
        return tuple(_value(get_args(kind)[0], f"{key}[{index}]", item) for index, item in enumerate(items))
    if is_dataclass(kind):
        table, types = _value(dict, key, value), get_type_hints(kind)
        values = {
            field.name: _value(types[field.name], f"{key}.{field.name}", table.get(field.name))
            for field in fields(kind)
            if field.name in table or (field.default is MISSING and field.default_factory is MISSING)
        }
        make: Any = kind
        return make(**values)
    if issubclass(kind, Enum):
        words = {each.value: each for each in kind}
        if not isinstance(value, str) or value not in words:
            raise _wrong(key, f"one of {', '.join(words)}", value)
        return words[value]
    name, is_right = _PLAIN[kind]
    if not is_right(value):
        raise _wrong(key, name, value)
    if isinstance(value, str):
        try:
            value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # half of a character, which stands for no byte of a name
            raise _wrong(key, "text", value) from None
    return float(value) if kind is float else value  # type: ignore[arg-type]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST


_PLAIN: Mapping[type, tuple[str, Callable[[object], bool]]] = MappingProxyType({
    str: ("a string", lambda value: isinstance(value, str)),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    int: (f"a whole number from 0 to {MOST:g}", lambda value: isinstance(value, int) and _is_number(value)),
    float: (f"a number from 0 to {MOST:g}", _is_number),
    dict: ("an object", lambda value: isinstance(value, dict)),
    list: ("a list", lambda value: isinstance(value, list)),
})  # fmt: skip


def _wrong(key: str, kind: str, value: object) -> _FieldError:
    return _FieldError(f"{key} is not {kind}: {_shown(value)}")


def _shown(value: object) -> str:
    return "missing" if value is None else quoted(value if isinstance(value, str) else json.dumps(value))
