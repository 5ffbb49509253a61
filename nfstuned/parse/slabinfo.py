"""`/proc/slabinfo`: how many objects of each kind the kernel holds (slabinfo(5)); only root may read it."""

from __future__ import annotations

import re

_CACHE = re.compile(r"^(\S+) +([0-9]{1,20}) ", re.MULTILINE)


def parse_slabinfo(text: str) -> dict[str, int]:
    """Return the active objects of each cache; headers and lines of another form are left out."""
    return {name: int(active) for name, active in _CACHE.findall(text)}
