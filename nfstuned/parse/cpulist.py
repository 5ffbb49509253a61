"""Lists of processors: `/sys/devices/system/cpu/online` (Documentation/admin-guide/cputopology.rst)."""

from __future__ import annotations

import re

_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")


def parse_cpu_list(text: str) -> int | None:
    """Return how many processors "0-3,7" names; None where it is not such a list."""
    ranges = [_RANGE.fullmatch(part) for part in text.strip().split(",")]
    count = 0
    for match in ranges:
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        count += max(0, last - first + 1)
    return count
