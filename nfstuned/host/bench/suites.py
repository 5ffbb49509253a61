"""The suites of `nfstuned bench`: TOML files in nfstuned/data/suites, with fio's words where fio has one."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any

import nfstuned
from nfstuned.model.bench import Engine, Job, Pattern, Suite, Varies
from nfstuned.model.policy import Source

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = os.path.join(os.path.dirname(nfstuned.__file__), "data", "suites")
_ENDING = ".toml"
_UNITS = {"": 1, "k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def names() -> tuple[str, ...]:
    """Return the names of the suites."""
    return tuple(sorted(name.removesuffix(_ENDING) for name in os.listdir(FOLDER) if name.endswith(_ENDING)))


def suite(name: str, *, full: bool) -> Suite:
    """Return a suite, with its own times and sizes or, `full`, with those of its vendor's measurements."""
    with open(os.path.join(FOLDER, name + _ENDING), "rb") as file:
        values: dict[str, Any] = tomllib.load(file)
    every = {**values["every"], **(values["full"] if full else {})}
    return Suite(
        name=name,
        about=values["about"],
        jobs=tuple(_job({**every, **row}) for row in values["job"]),
        varies=Varies(values.get("varies", Varies.NOTHING.value)),
        searches=values.get("searches", False),
        repeats=values["repeats"],
        sources=tuple(
            Source(row["url"], row["read"], title=row["title"]) for row in values.get("sources", ())
        ),
    )


def _job(row: Mapping[str, Any]) -> Job:
    return Job(
        name=row["name"],
        pattern=Pattern(row["pattern"]),
        block_bytes=parse_size(row["block"]),
        engine=Engine(row.get("engine", Engine.READ_WRITE.value)),
        direct=row.get("direct", False),
        depth=row.get("depth", 1),
        threads=row.get("threads", 1),
        files=row.get("files", 1),
        file_bytes=parse_size(row["file"]),
        skip_bytes=parse_size(row["skip"]) if "skip" in row else 0,
        runtime_s=float(row["runtime"]),
        ramp_s=float(row.get("ramp", 0)),
    )


def parse_size(text: str) -> int:
    """Return the bytes of "4k", "256M" or "4G" (powers of 1024). Raises ValueError."""
    match = re.fullmatch(r"([1-9][0-9]{0,8})([kKMGT]?)B?", text)
    if match is None:
        raise ValueError(f"{text!r} is no size: a number with k, M, G or T, as in 4k or 1G")
    return int(match[1]) * _UNITS[match[2]]
