"""Which kernels know nconnect: Linux 5.3 and later, and the distributions' kernels that took it over.

The backports are those of the table in
https://learn.microsoft.com/en-us/azure/azure-netapp-files/performance-linux-mount-options.
"""

from __future__ import annotations

import re

from nfstuned.errors import ParseError
from nfstuned.model.facts import Facts
from nfstuned.model.finding import Need
from nfstuned.model.kernel import Distribution, KernelRelease
from nfstuned.parse.kernel import parse_release

SINCE = (5, 3, 0)
V4_0_SINCE = (5, 8, 0)
"""Earlier kernels take the option with NFS 4.0, and ignore it (dbc4fec6b6dd)."""

_EL8 = re.compile(r"4\.18\.0-([0-9]{1,6})\b.*\.el8")
_RHEL_8_3 = 240
"""The build of RHEL 8.3's kernel; the clones take the number over."""
_SUSE = ("sles", "sled", "sles_sap", "opensuse-leap")
_SUSE_V3 = ("12.4", "12.5", "15.1")
_UBUNTU = (18, 4)


def kernel(facts: Facts) -> KernelRelease | None:
    """Return the running kernel, of an image the newest installed one; None where there is none."""
    if Need.IMAGE not in facts.has:
        return facts.snapshot.kernel
    if not facts.system.kernels:
        return None
    try:
        return parse_release(facts.system.kernels[-1].release)
    except ParseError:
        return None


def knows_nconnect(release: KernelRelease, distribution: Distribution | None, version: str | None) -> bool:
    """Return whether a mount of that NFS version can have several connections; True where it may."""
    if release.version >= SINCE:
        return True
    build = _EL8.match(release.text)
    if build is not None:
        return int(build[1]) >= _RHEL_8_3
    if distribution is None:
        return True
    if distribution.id in _SUSE and distribution.version_id in _SUSE_V3:
        return version is None or version == "3"
    return distribution.id == "ubuntu" and _numbers(distribution.version_id) >= _UBUNTU


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]{1,6}", text))
