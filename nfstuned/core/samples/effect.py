"""The effect of a change of a read-ahead: a mount's reads before and after it."""

from __future__ import annotations

from nfstuned.core.samples.sample import figure, ratio, rtt_ms, speed
from nfstuned.model.effect import Effect, Pace
from nfstuned.model.samples import Sample

_ALIKE = 0.1
"""The shares of written and of direct bytes of two intervals with the same load differ by less."""
_ENOUGH_BYTES = 16 << 20
_NEAR_S = 3600.0
"""Between two intervals with the same load lies less time."""


def is_reading(sample: Sample) -> bool:
    """Whether the server sent enough under a single read-ahead, so that the interval shows its pace."""
    sent = (sample.server_read_bytes_per_s or 0.0) * sample.interval_s
    return sample.read_ahead_kb is not None and sent >= _ENOUGH_BYTES


def effect(before: Sample, after: Sample) -> Effect | None:
    """Return the effect that two samples show; None without reads in both, and of the same read-ahead."""
    if before.read_ahead_kb == after.read_ahead_kb or not (is_reading(before) and is_reading(after)):
        return None
    return Effect(_pace(before), _pace(after), _unlike(before, after))


def _pace(sample: Sample) -> Pace:
    return Pace(
        sample.read_ahead_kb or 0,
        sample.read_bytes_per_s or 0.0,
        sample.server_read_bytes_per_s or 0.0,
        rtt_ms(sample, "read"),
        sample.over_fetch_ratio,
    )


def _unlike(before: Sample, after: Sample) -> str:
    """Return the way in which the load is another one; "" where the counters show none."""
    if after.time - after.interval_s - before.time > _NEAR_S:
        return "more than an hour lies between the two"
    if bool(before.read_bytes_per_s) != bool(after.read_bytes_per_s):
        return "programs mapped files in only one of the two"
    for share, did in ((_written, "wrote"), (_direct, "read past the page cache")):
        if abs(share(before) - share(after)) >= _ALIKE:
            return f"programs {did} another part of the bytes"
    return ""


def _written(sample: Sample) -> float:
    written = sample.server_write_bytes_per_s or 0.0
    return written / (written + (sample.server_read_bytes_per_s or 0.0))


def _direct(sample: Sample) -> float:
    return (sample.direct_read_bytes_per_s or 0.0) / (sample.read_bytes_per_s or 1.0)


def effect_text(shown: Effect) -> str:
    """Return an effect for people: "read-ahead 15360 -> 512 KiB: read 8.5 -> 22.1 MB/s, ..."."""
    before, after = shown.before, shown.after
    begin = f"read-ahead {before.read_ahead_kb} -> {after.read_ahead_kb} KiB"
    if shown.unlike:
        return f"{begin}: before and after cannot be compared, {shown.unlike}"
    parts = [f"read {speed(before.read_bytes_per_s)} -> {speed(after.read_bytes_per_s)}"]
    if not before.read_bytes_per_s:
        parts = [
            f"server {speed(before.server_bytes_per_s)} -> {speed(after.server_bytes_per_s)} for mapped files"
        ]
    if before.rtt_ms is not None and after.rtt_ms is not None:
        parts.append(f"READ {figure(before.rtt_ms)} -> {figure(after.rtt_ms)} ms")
    if before.over_fetch_ratio is not None and after.over_fetch_ratio is not None:
        parts.append(f"over-fetch {ratio(before.over_fetch_ratio)} -> {ratio(after.over_fetch_ratio)}")
    return f"{begin}: {', '.join(parts)}"
