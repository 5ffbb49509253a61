"""The best read-ahead with few measurements: throughput rises with it, and then stays, or falls again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

CLOSE = 0.03
"""Values whose throughput differs by less are as good as each other: the smallest of them wastes least."""
_POWERS = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)
MOST_TRIED = len(_POWERS) + 2
"""No search tries more values: the powers, the policy's and the present one."""


def candidates(target_kb: int | None, present_kb: int | None) -> tuple[int, ...]:
    """Return the values that may be the answer, the smallest first: powers of two, the policy's, the present.

    A power stands back for one of the others that is within an eighth of it.
    """
    given = {kb for kb in (target_kb, present_kb) if kb}
    powers = {power for power in _POWERS if not any(abs(kb - power) * 8 <= power for kb in given)}
    return tuple(sorted(given | powers))


def next_value(values: Sequence[int], measured: Mapping[int, float]) -> int | None:
    """Return the value to measure next; None when the best one's neighbours are all known.

    `values` are the candidates in order, `measured` the throughput of those that were measured. First come
    both ends and the middle, then the middles between the best and its nearest known neighbours.
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
    """Return the smallest value whose throughput is close to the best. Raises ValueError without any."""
    most = max(measured.values())
    return min(value for value, throughput in measured.items() if throughput >= most * (1 - CLOSE))
