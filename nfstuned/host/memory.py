"""The memory of this process, as far as the kernel lets it be asked for (PR_SET_THP_DISABLE in prctl(2))."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_PR_SET_THP_DISABLE = 41


def without_huge_pages() -> None:
    """Have no huge pages, where the kernel can do without.

    It would give a small heap that lives for minutes pages of 2 MiB, most of which nobody ever uses.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)
