"""Features of kernels for NFS mounts, by the release and the distribution alone.

The backports are those of the table in
https://learn.microsoft.com/en-us/azure/azure-netapp-files/performance-linux-mount-options.

For images only. A running host shows the values themselves, and those count: distributions backport changes
of later kernels.
"""

from __future__ import annotations

import re

from nfstuned.model.kernel import Distribution, KernelRelease

SINCE = (5, 3, 0)
"""28cc5cd8c68f "NFS: Add a mount option to specify number of TCP connections to use"."""
V4_0_SINCE = (5, 8, 0)
"""Earlier kernels take the option with NFS 4.0, and ignore it (dbc4fec6b6dd)."""

_EL8 = re.compile(r"4\.18\.0-([0-9]{1,6})\b.*\.el8")
RHEL_8_3 = 240
"""The build of RHEL 8.3's kernel."""
_SUSE = ("sles", "sled", "sles_sap", "opensuse-leap")
_SUSE_V3 = ("12.4", "12.5", "15.1")
_UBUNTU = (18, 4)


def el8_build(release: KernelRelease) -> int | None:
    """Return the build of an Enterprise Linux 8 kernel, 305 of "4.18.0-305.el8.x86_64"; None of any other.

    Red Hat brings much of later kernels to it, and the clones take the number over.
    """
    match = _EL8.match(release.text)
    return int(match[1]) if match else None


def knows_nconnect(release: KernelRelease, distribution: Distribution | None, version: str | None) -> bool:
    """Return whether a mount of that NFS version can have several connections; True where it may."""
    if release.version >= SINCE:
        return True
    build = el8_build(release)
    if build is not None:
        return build >= RHEL_8_3
    if distribution is None:
        return True
    if distribution.id in _SUSE and distribution.version_id in _SUSE_V3:
        return version is None or version == "3"
    numbers = tuple(int(part) for part in re.findall(r"[0-9]{1,6}", distribution.version_id))
    return distribution.id == "ubuntu" and numbers >= _UBUNTU


_SMALL_READ_AHEAD = (5, 4, 0)
"""c128e575514c "NFS: Optimise the default readahead size"."""
_PATCHED = re.compile(r"4\.12\.14-|(?:4\.15|4\.18|5\.[0-3])\.0-[0-9]+-")
"""SUSE's of SLES 12 SP4 to 15 SP1 and Ubuntu's of 18.04: their backports depend on the update."""


def read_ahead_is_small(kernel: KernelRelease) -> bool | None:
    """Return whether mounts start with 128 KiB and not 15 * rsize; None where nobody knows."""
    return _since(kernel, _SMALL_READ_AHEAD)


def has_nconnect(kernel: KernelRelease) -> bool | None:
    """Return whether mounts can have several connections; None where the release does not show it."""
    return _since(kernel, SINCE)


def _since(kernel: KernelRelease, first: tuple[int, int, int]) -> bool | None:
    if kernel.version >= first:
        return True
    build = el8_build(kernel)
    if build is not None:
        return build >= RHEL_8_3  # which has both
    return None if _PATCHED.match(kernel.text) else False
