"""A sample as JSON, and as a person would say it."""

from __future__ import annotations

from dataclasses import asdict

from nfstuned.model.samples import Sample

QUIET_OPS = frozenset({"NULL", "RENEW", "SEQUENCE"})
"""What a client sends now and then for a mount that nobody uses."""

_TIMED = {"READ": ("READ", "READ_PLUS"), "WRITE": ("WRITE",)}
"""The operations whose round trips a person wants to know. NFSv4.2 reads with READ_PLUS."""

_ROUNDS_TO_1000, _ROUNDS_TO_100, _ROUNDS_TO_TENTH = 999.5, 99.95, 0.095


def is_idle(sample: Sample) -> bool:
    """Tell whether nobody used the superblock: no bytes, and no operation but the lease's renewal."""
    moved = sample.read_bytes_per_s + sample.write_bytes_per_s
    moved += sample.server_read_bytes_per_s + sample.server_write_bytes_per_s
    return not moved and all(
        name in QUIET_OPS and not op.retrans_per_s and not op.errors_per_s for name, op in sample.ops.items()
    )


def to_json(sample: Sample) -> dict[str, object]:
    """Return the sample as a JSON object of the schema `nfstuned.sample/1` (docs/architecture.md)."""
    return {
        "schema": "nfstuned.sample/1",
        "time": sample.time,
        "interval_s": sample.interval_s,
        "device": sample.device,
        "mount_points": list(sample.mount_points),
        "source": sample.source,
        "read_bytes_per_s": sample.read_bytes_per_s,
        "write_bytes_per_s": sample.write_bytes_per_s,
        "server_read_bytes_per_s": sample.server_read_bytes_per_s,
        "server_write_bytes_per_s": sample.server_write_bytes_per_s,
        "over_fetch_ratio": sample.over_fetch_ratio,
        "ops": {name: asdict(op) for name, op in sample.ops.items()},
        "transport": asdict(sample.transport),
    }


def one_line(sample: Sample) -> str:
    """Return the sample as a person would say it, in one printable line, with decimal units.

    The server's part is left out where it is the programs' own figure. The times are round trips.
    """
    parts = [
        "read " + _both(sample.read_bytes_per_s, sample.server_read_bytes_per_s),
        "write " + _both(sample.write_bytes_per_s, sample.server_write_bytes_per_s),
        *_latencies(sample),
    ]
    retrans = sum(op.retrans_per_s for op in sample.ops.values())
    if retrans:
        parts.append(f"{_figure(retrans)} retransmissions/s")
    connections = sample.transport.connections
    parts.append("1 connection" if connections == 1 else f"{connections} connections")
    return f"{_place(sample)}: {', '.join(parts)}"


def _place(sample: Sample) -> str:
    """Name the superblock by its first mount point, with the octal escapes of the kernel's own files."""
    first = sample.mount_points[0] if sample.mount_points else sample.device
    others = len(sample.mount_points) - 1
    shown = "".join(
        char
        if char.isprintable()
        else "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))
        for char in first
    )
    return f"{shown} and {others} more" if others > 0 else shown


def _latencies(sample: Sample) -> list[str]:
    """Name the mean round trips of READ (with READ_PLUS) and WRITE, or else the most frequent operation."""
    parts: list[str] = []
    for label, names in _TIMED.items():
        used = [sample.ops[name] for name in names if name in sample.ops]
        timed = [(op.per_s, op.rtt_ms) for op in used if op.rtt_ms is not None]
        count = sum(per_s for per_s, _ in timed)
        if count:
            parts.append(f"{label} {_figure(sum(per_s * rtt for per_s, rtt in timed) / count)} ms")
    if parts or not sample.ops:
        return parts
    name, op = max(sample.ops.items(), key=lambda item: item[1].per_s)
    often = f"{_figure(op.per_s)} {name}/s"
    return [often if op.rtt_ms is None else f"{often} of {_figure(op.rtt_ms)} ms"]


def _both(programs: float, server: float) -> str:
    asked, moved = _speed(programs), _speed(server)
    return asked if asked == moved else f"{asked} (server {moved})"


def _speed(bytes_per_s: float) -> str:
    if not bytes_per_s:
        return "0"
    value, unit = bytes_per_s, "B/s"
    for larger in ("kB/s", "MB/s", "GB/s", "TB/s"):
        if value < _ROUNDS_TO_1000:
            break
        value, unit = value / 1000, larger
    return f"{_figure(value)} {unit}"


def _figure(value: float) -> str:
    """Round to a tenth below 100, to a whole number above; what is small keeps one digit."""
    if value >= _ROUNDS_TO_100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= _ROUNDS_TO_TENTH else f"{value:.1g}"
