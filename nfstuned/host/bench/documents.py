"""Suites of jobs in TOML (nfstuned/data/suites, in fio's terms), and measurements in JSON.

A document may be from another host or version: unknown keys are ignored, a field with a default may be
missing, and values that follow from the runs are computed and not read.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from datetime import timezone
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from nfstuned import data
from nfstuned.errors import ParseError
from nfstuned.model.bench import SCHEMA, Bench, Suite
from nfstuned.parse.fields import quoted

LARGEST = 16_000_000
"""Bytes of a document: 100 repeats of eight jobs take less than a tenth of it."""
_FOLDER, _ENDING = "suites", ".toml"
_UNITS = {"": 1, "k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZES = {"block": "block_bytes", "file": "file_bytes", "skip": "skip_bytes"}
_Value = TypeVar("_Value")


def names() -> tuple[str, ...]:
    """Return the names of the suites."""
    files = sorted(os.listdir(f"{data.__path__[0]}/{_FOLDER}"))
    return tuple(name.removesuffix(_ENDING) for name in files if name.endswith(_ENDING))


def suite(name: str, *, full: bool) -> Suite:
    """Return a suite, with its own times and sizes or, `full`, with those of its vendor's measurements."""
    values = data.read_table(f"{_FOLDER}/{name}{_ENDING}")
    every = {**values["every"], **(values["full"] if full else {})}
    jobs = [{**every, **row} for row in values["job"]]
    for job in jobs:
        job.update({key: parse_size(job[word]) for word, key in _SIZES.items() if word in job})
    return validated(Suite, {**values, "name": name, "jobs": jobs}, name)


def parse_size(text: str) -> int:
    """Return the bytes of "4k", "256M" or "4G" (powers of 1024). Raises ValueError."""
    match = re.fullmatch(r"([1-9][0-9]{0,8})([kKMGT]?)B?", text)
    if match is None:
        raise ValueError(f"{text!r} is not a size: write a number with k, M, G or T, as in 4k or 1G")
    return int(match[1]) * _UNITS[match[2]]


def read_bench(path: str) -> Bench:
    """Return the measurement in a file. Raises OSError, and ParseError for another file."""
    with open(path, "rb") as file:
        text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise ParseError(path, 0, f"more than {LARGEST // 10**6} MB, too long for a document of bench")
    return parse_bench(text, path)


def parse_bench(text: str | bytes, file: str) -> Bench:
    """Return the measurement of a document. Raises ParseError with the file, the key and the value."""
    try:
        document = json.loads(text)
        # A name may have stray bytes (surrogateescape); half of another character is no text.
        json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogateescape")
    except (RecursionError, ValueError) as error:
        raise ParseError(file, 0, f"not a document of bench: {error}") from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        shown = quoted(schema) if isinstance(schema, str) else "missing"
        raise ParseError(file, 0, f"schema is {shown}, expected {SCHEMA}")
    bench = validated(Bench, document, file)
    try:
        bench.time.astimezone(timezone.utc)
    except OverflowError:
        raise ParseError(file, 0, f"time is out of range: {bench.time}") from None
    jobs = [job.name for job in bench.suite.jobs]
    settings = [setting.name for setting in bench.settings]
    for name, times in (Counter(jobs) | Counter(settings)).items():
        if times > 1:
            raise ParseError(file, 0, f"{quoted(name)} is there twice")
    for index, run in enumerate(bench.runs):
        if run.job not in jobs or run.setting not in settings:
            shown = f"{quoted(run.job)} under {quoted(run.setting)}"
            raise ParseError(file, 0, f"runs[{index}] has an unknown job and setting: {shown}")
    return bench


def validated(kind: type[_Value], values: object, file: str) -> _Value:
    """Return a dataclass of untyped values. Raises ParseError with the key and the value."""
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        shown = quoted(json.dumps(first["input"], default=str)[:200])
        raise ParseError(file, 0, f"{key.removeprefix('.')}: {first['msg']}: {shown}") from None
