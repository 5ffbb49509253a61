"""Find the best read-ahead with few measurements.

Throughput is expected to rise with the read-ahead up to some value, and above it to stay or to fall.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

CLOSE = 0.03
"""A share of the best throughput: values within it of the best are equal, and the smallest wastes least."""
_POWERS_KB = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)
MOST_TRIED = len(_POWERS_KB) + 2
"""No search tries more values: the powers, the policy's and the present one."""
LIKELY_TRIED = 6
"""About how many values a search tries, for the estimate of its time."""


def candidates(target_kb: int | None, present_kb: int | None) -> tuple[int, ...]:
    """Return the values that may be the answer, the smallest first: powers of two, the policy's, the present.

    A power of two is left out where `target_kb` or `present_kb` differs from it by an eighth of it or less.
    """
    given = {kb for kb in (target_kb, present_kb) if kb}
    powers = {power for power in _POWERS_KB if not any(abs(kb - power) * 8 <= power for kb in given)}
    return tuple(sorted(given | powers))


def next_value(values: Sequence[int], measured: Mapping[int, float]) -> int | None:
    """Return the value to measure next; None when both neighbours of the best value are measured.

    `values` are the candidates in order, `measured` has the throughput of each measured value. Both ends and
    the middle come first. Later values halve the wider gap between the best value, which has the highest
    throughput, and the nearest measured value on either side.
    """
    last = len(values) - 1
    for index in (0, last, last // 2):
        if values[index] not in measured:
            return values[index]
    known = [index for index, value in enumerate(values) if value in measured]
    best = max(known, key=lambda index: measured[values[index]])
    near = (
        max((index for index in known if index < best), default=best),
        min((index for index in known if index > best), default=best),
    )
    gaps = [(abs(index - best), (index + best) // 2) for index in near if abs(index - best) > 1]
    return values[max(gaps)[1]] if gaps else None


def best_value(measured: Mapping[int, float]) -> int:
    """Return the smallest value within CLOSE of the highest throughput. Raises ValueError for no values."""
    most = max(measured.values())
    return min(value for value, throughput in measured.items() if throughput >= most * (1 - CLOSE))
