"""What a kernel does for NFS mounts by itself, told from its release alone.

For images only. A running host shows the values themselves, and those count: distributions bring back what
later kernels do.
"""

from __future__ import annotations

import re

from nfstuned.core.backports import RHEL_8_3, SINCE, el8_build
from nfstuned.model.kernel import KernelRelease

_SMALL_READ_AHEAD = (5, 4, 0)
"""c128e575514c "NFS: Optimise the default readahead size"."""
_PATCHED = re.compile(r"4\.12\.14-|(?:4\.15|4\.18|5\.[0-3])\.0-[0-9]+-")
"""SUSE's of SLES 12 SP4 to 15 SP1 and Ubuntu's of 18.04: what was brought to them depends on the update."""


def read_ahead_is_small(kernel: KernelRelease) -> bool | None:
    """Return whether mounts start with 128 KiB and not 15 * rsize; None where nobody knows."""
    return _since(kernel, _SMALL_READ_AHEAD)


def knows_nconnect(kernel: KernelRelease) -> bool | None:
    """Return whether mounts can have several connections; None where the release does not tell."""
    return _since(kernel, SINCE)


def _since(kernel: KernelRelease, first: tuple[int, int, int]) -> bool | None:
    if kernel.version >= first:
        return True
    build = el8_build(kernel)
    if build is not None:
        return build >= RHEL_8_3  # which has both
    return None if _PATCHED.match(kernel.text) else False
