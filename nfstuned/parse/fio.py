"""What fio(1) says of a job: `--output-format=json` of 3.0 and later (HOWTO, "Interpreting the output")."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from nfstuned.errors import ParseError
from nfstuned.model.bench import Delivered, Pattern

_P99 = "99.000000"
_NS_PER_MS = 1e6
_MS_PER_S = 1e3


def parse_fio(text: str, pattern: Pattern) -> Delivered:
    """Return what a job with group_reporting delivered. Raises ParseError.

    fio writes its notes and errors before the document, to the same stream.
    """
    begin = text.find("{")
    try:
        document = json.loads(text[begin:]) if begin >= 0 else None
    except (RecursionError, ValueError) as error:
        raise ParseError("fio", 0, f"its output is no JSON: {error}") from None
    jobs = document.get("jobs") if isinstance(document, Mapping) else None
    if not isinstance(jobs, Sequence) or not jobs or not isinstance(jobs[0], Mapping):
        raise ParseError("fio", 0, f"its output has no job: {text.strip()[-200:]!r}")
    job = jobs[0]
    side = job.get("read" if pattern.reads else "write")
    if not isinstance(side, Mapping):
        raise ParseError("fio", 0, f"its output has no figures of {pattern.value}")
    latency = side.get("lat_ns")
    latency = latency if isinstance(latency, Mapping) else {}
    return Delivered(
        bytes_per_s=_number(side, "bw_bytes"),
        operations_per_s=_number(side, "iops"),
        latency_ms=_number(latency, "mean") / _NS_PER_MS,
        latency_p99_ms=_percentile(side),
        seconds=_number(side, "runtime") / _MS_PER_S,
        error=int(_number(job, "error")),
    )


def _percentile(side: Mapping[str, object]) -> float | None:
    """Return the 99th percentile: of the whole latency where fio took it, else of the completion's."""
    for name in ("lat_ns", "clat_ns"):
        table = side.get(name)
        percentiles = table.get("percentile") if isinstance(table, Mapping) else None
        if isinstance(percentiles, Mapping) and _P99 in percentiles:
            return _number(percentiles, _P99) / _NS_PER_MS
    return None


def _number(table: Mapping[str, object], key: str) -> float:
    value = table.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ParseError("fio", 0, f"its {key} is no number: {value!r}")
    return float(value)
