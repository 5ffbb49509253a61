"""A sample as JSON, as fields of the journal, and as a line for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from operator import mul
from types import MappingProxyType
from typing import Any, cast

from nfstuned.core.mounts.volumes import pods_of, volume_name
from nfstuned.model.kernel import LEASE_OPS
from nfstuned.model.mounts import KubeletNames, PodVolume
from nfstuned.model.samples import SCHEMA, OpRate, Sample, TransportRate, fields_of
from nfstuned.parse.fields import Secretless, mask_secrets, octal_escapes

WATCHING_OPS = frozenset({"GETATTR", "ACCESS", "STATFS", "FSSTAT", "FSINFO", "PATHCONF", "SERVER_CAPS"})
"""Operations for the mount point itself, by df, a monitoring agent, a remount or a shell's prompt."""

WATCHING_MOST_PER_S = 1.0
"""Below this rate nobody works on the mount: an agent sends one or two operations every five seconds."""

KINDS: Mapping[str, frozenset[str]] = MappingProxyType({
    "read": frozenset({"READ", "READ_PLUS"}),
    "write": frozenset({"WRITE"}),
    "metadata": frozenset({
        "GETATTR", "SETATTR", "LOOKUP", "LOOKUPP", "LOOKUP_ROOT", "ACCESS", "READLINK", "SYMLINK", "LINK",
        "CREATE", "MKDIR", "MKNOD", "REMOVE", "RMDIR", "RENAME", "READDIR", "READDIRPLUS",
        "FSSTAT", "STATFS", "FSINFO", "PATHCONF", "SERVER_CAPS", "GETACL", "SETACL",
        "GETXATTR", "SETXATTR", "LISTXATTRS", "REMOVEXATTR",
    }),
})  # fmt: skip
"""The operations of NFSv3 and NFSv4 by their subject; every other one is of the kind "other".

NFSv4.2 reads with READ_PLUS where the kernel was built with it, and READ then stays at 0.
"""
ALL_KINDS = (*KINDS, "other")
_KIND_OF: Mapping[str, str] = {name: kind for kind, names in KINDS.items() for name in names}

_TIMED = {"READ": "read", "WRITE": "write"}
"""The operations with a round trip in the line for people, and their kinds."""

_MOST_NAMES = 256
"""Cached names of operations: the kernel has some hundred."""
_ROUNDS_TO_1000, _ROUNDS_TO_100, _ROUNDS_TO_TENTH = 999.5, 99.95, 0.095
_ROUNDS_TO_100000 = 99999.5
"""The least values that are printed as 1000, 100, 0.1 and 100000."""


def is_idle(sample: Sample) -> bool:
    """Return whether nobody used the superblock: no bytes, and no more than upkeep and monitoring.

    Upkeep is the renewal of the lease, at any rate. Monitoring is less than one operation a second at the
    mount point. Operations that were sent again, timed out or failed are use, and so is waiting.
    """
    if sample.read_bytes_per_s or sample.write_bytes_per_s or sample.stalled_s:
        return False
    if sample.server_read_bytes_per_s or sample.server_write_bytes_per_s:
        return False
    if not sample.ops:
        return True
    watched = 0.0
    for name, op in sample.ops.items():
        if op.retrans_per_s or op.errors_per_s or op.timeouts_per_s:
            return False
        if name not in LEASE_OPS:
            watched += op.per_s
    return sample.ops.keys() <= LEASE_OPS | WATCHING_OPS and watched < WATCHING_MOST_PER_S


def stalled_percent(sample: Sample) -> float | None:
    """Return the part of the interval in which users waited for the server; None where nobody watched."""
    if sample.stalled_s is None or not sample.interval_s:
        return None
    return 100.0 * min(sample.stalled_s, sample.interval_s) / sample.interval_s


def kind_of(name: str) -> str:
    """Return the kind of an operation: read, write, metadata or other."""
    return _KIND_OF.get(name, "other")


def kinds(sample: Sample) -> dict[str, OpRate]:
    """Return the operations of each kind as one: read, write, metadata, other; without kinds not used.

    Rates are sums, times are means over all operations of the kind with a known time.
    """
    ops = sample.ops
    return {kind: combine([ops[name] for name in names]) for kind, names in _by_kind(ops).items()}


def _by_kind(ops: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of operations by their kind, in the order of ALL_KINDS."""
    names: dict[str, list[str]] = {kind: [] for kind in ALL_KINDS}
    for name in ops:
        names[_KIND_OF.get(name, "other")].append(name)
    return {kind: of_kind for kind, of_kind in names.items() if of_kind}


def rtt_ms(sample: Sample, kind: str) -> float | None:
    """Return the mean round trip of the operations of a kind; None where none ended."""
    ops = [op for name in KINDS[kind] if (op := sample.ops.get(name)) is not None]
    return combine(ops).rtt_ms if ops else None


def combine(ops: list[OpRate]) -> OpRate:
    """Return several operations as a single one: rates are sums, times are means over all with a time."""
    if len(ops) == 1:
        return ops[0]
    columns = list(zip(*ops, strict=False)) or [()] * len(_TOGETHER)
    often = columns[0]
    return OpRate._make([of(often, column) for of, column in zip(_TOGETHER, columns, strict=False)])


def mean(often: Sequence[float], times: Sequence[float | None]) -> float | None:
    """Return the mean of times, each as often as it came; None where none is known."""
    if None in times:
        known = [(per_s, time) for per_s, time in zip(often, times, strict=True) if time is not None]
        often, times = [per_s for per_s, _ in known], [time for _, time in known]
    every = sum(often)
    return sum(map(mul, often, times)) / every if every else None


def _sum_of_known(_: Sequence[float], rates: Sequence[float | None]) -> float | None:
    known = rates if None not in rates else [rate for rate in rates if rate is not None]
    return sum(cast("Sequence[float]", known)) if known else None


_TOGETHER: tuple[Callable[[Sequence[float], Any], float | None], ...] = tuple(
    mean
    if field.unit == "ms"
    else _sum_of_known
    if field.type == float | None
    else lambda _, rates: sum(rates)
    for field in fields_of(OpRate)
)


def _fields(value: Sample | TransportRate) -> dict[str, object]:
    """Return the fields of a sample or of its transport by their keys, with secrets."""
    table: type = type(value)
    return {field.key: getattr(value, field.key) for field in fields_of(table)}


def _object(value: Sample | TransportRate) -> dict[str, object]:
    """Return the fields of a sample or of its transport by their keys."""
    shown = _fields(value)
    return {key: mask_secrets(each) if isinstance(each, str) else each for key, each in shown.items()}


def sample_to_json(sample: Sample) -> dict[str, object]:
    """Return the sample as a JSON object of the schema `nfstuned.sample/1` (docs/json.md)."""
    return {
        "schema": SCHEMA,
        **_object(sample),
        "mount_points": list(map(mask_secrets, sample.mount_points)),
        "kinds": {kind: op._asdict() for kind, op in kinds(sample).items()},
        "ops": {name: op._asdict() for name, op in sample.ops.items()},
        "transport": _object(sample.transport),
    }


def to_line(sample: Sample, host: str = "") -> bytes:
    """Return the sample of a host as one line of JSON, with its line break; ASCII, stray bytes escaped."""
    shown = sample_to_json(sample) | ({"host": host} if host else {})
    return json.dumps(shown, separators=(",", ":")).encode("ascii") + b"\n"


def to_fields(sample: Sample) -> dict[str, object]:
    """Return every number of the sample by the name of its journal field, in lower case.

    The transport's keys are fields of their own, `kinds`, `ops` and `mount_points` are JSON. `mount_point` is
    the first of them, for `journalctl NFSTUNED_MOUNT_POINT=`. `parse/samples.py` reads it back.
    Plain texts are not masked: the journal masks all that it is given.
    """
    points, ops = sample.mount_points, sample.ops
    # For json.dumps each operation would have to be a dictionary; it takes twice the time.
    texts = {name: _as_json(op) for name, op in ops.items()}
    of_kind = {
        kind: texts[names[0]] if len(names) == 1 else _as_json(combine([ops[name] for name in names]))
        for kind, names in _by_kind(ops).items()
    }
    return {
        "mount_point": points[0] if points else None,
        **_fields(sample),
        **_fields(sample.transport),
        "mount_points": json.dumps(list(map(mask_secrets, points))),
        "kinds": _joined(of_kind),
        "ops": _joined(texts),
    }


def _as_json(op: OpRate) -> str:
    return (_OPERATION % op).replace("None", "null")


def _joined(texts: Mapping[str, str]) -> Secretless:
    """Return a JSON object of figures that are JSON already."""
    return Secretless(f"{{{', '.join([_key(name) + text for name, text in texts.items()])}}}")


@lru_cache(_MOST_NAMES)
def _key(name: str) -> str:
    return f"{encode_basestring_ascii(mask_secrets(name))}: "


_OPERATION = f"{{{', '.join([json.dumps(field.key) + ': %r' for field in fields_of(OpRate)])}}}"


def one_line(sample: Sample) -> str:
    """Return the sample for people, in one printable line, with decimal units.

    The server's throughput is left out where it equals the programs' throughput. The times are round trips.
    """
    parts = [
        "read " + throughput(sample.read_bytes_per_s, sample.server_read_bytes_per_s),
        "write " + throughput(sample.write_bytes_per_s, sample.server_write_bytes_per_s),
        *_latencies(sample),
    ]
    retrans = sum([op.retrans_per_s for op in sample.ops.values()])
    if retrans:
        parts.append(f"{figure(retrans)} retransmissions/s")
    connections = sample.transport.connections
    if connections is not None:
        parts.append("1 connection" if connections == 1 else f"{connections} connections")
    return f"{label(sample)}: {', '.join(parts)}"


def named(sample: Sample, volumes: Sequence[PodVolume]) -> Sample:
    """Return a sample with the names of its first volume; unchanged where no pod has a volume there."""
    if not volumes:
        return sample
    return replace(sample, **volumes[0]._asdict(), pods=len(pods_of(sample.mount_points)))


def names_of(sample: Sample) -> KubeletNames:
    """Return the name of a sample's pod by the pod's UID; of several pods the first has it."""
    uids = pods_of(sample.mount_points)[:1] if sample.pod else ()
    return KubeletNames(dict.fromkeys(uids, f"{sample.namespace}/{sample.pod}"), {})


def label(sample: Sample) -> str:
    """Name the superblock by its volume and pod, or else by its first mount point."""
    points = sample.mount_points or (sample.device,)
    return volume_name(points, names_of(sample), sample.source) or label_of(points)


def label_of(points: Sequence[str]) -> str:
    """Name a superblock by its first mount point, with the octal escapes of the kernel's own files."""
    first, *others = points
    name = octal_escapes(mask_secrets(first))
    return f"{name} and {len(others)} more" if others else name


def _latencies(sample: Sample) -> list[str]:
    """Name the mean round trips of READ (with READ_PLUS) and WRITE, or else the most frequent operation."""
    timed = ((operation, rtt_ms(sample, kind)) for operation, kind in _TIMED.items())
    parts = [f"{operation} {figure(rtt)} ms" for operation, rtt in timed if rtt is not None]
    if parts or not sample.ops:
        return parts
    name, op = max(sample.ops.items(), key=lambda item: item[1].per_s)
    often = f"{figure(op.per_s)} {name}/s"
    return [often if op.rtt_ms is None else f"{often} of {figure(op.rtt_ms)} ms"]


def throughput(programs: float | None, server: float | None) -> str:
    """Return a throughput as programs saw it, with the server's part where that differs; "-" if unknown."""
    if programs is None or server is None:
        return "-"
    asked = speed(programs)
    moved = asked if server == programs else speed(server)
    return asked if asked == moved else f"{asked} (server {moved})"


def speed(bytes_per_s: float) -> str:
    """Return a throughput with its decimal unit, as in "8.0 MB/s"; "0" for none."""
    if not bytes_per_s:
        return "0"
    value, unit = bytes_per_s, "B/s"
    for larger in ("kB/s", "MB/s", "GB/s", "TB/s"):
        if value < _ROUNDS_TO_1000:
            break
        value, unit = value / 1000, larger
    return f"{figure(value)} {unit}"


def amount(number_of_bytes: float) -> str:
    """Return an amount of data with its decimal unit: "1.2 TB"."""
    return speed(number_of_bytes).removesuffix("/s")


def ratio(value: float) -> str:
    """Round to a hundredth below 100, then as `figure`; in 5 characters at most."""
    if value < _ROUNDS_TO_100:
        return f"{value:.2f}"
    return figure(value) if value < _ROUNDS_TO_100000 else f"{value:.0e}"


_LEAST_SHOWN = 0.001


def figure(value: float) -> str:
    """Round to a tenth below 100, to a whole number above; a small number keeps one digit, down to 0.001."""
    if 0 < value < _LEAST_SHOWN:
        return f"<{_LEAST_SHOWN}"
    if value >= _ROUNDS_TO_100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= _ROUNDS_TO_TENTH else f"{value:.1g}"
