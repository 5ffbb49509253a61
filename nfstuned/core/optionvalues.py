"""Which values mount options take: the kernel refuses the whole mount for another one.

NFS: nfs_fs_parameters and nfs_fs_context_parse_param of fs/nfs/fs_context.c. What mount.nfs takes out before
the kernel sees it (`bg`, a protocol without a value for NFS 3) is left out. SMB: mount.cifs(8).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from nfstuned.core.nfsoptions import FLAVOURS
from nfstuned.core.optionnames import SMB_FLAVOURS, SMB_VERSIONS
from nfstuned.model.kernel import decimal

NO_VALUE = "no value"
_INT, _U32 = 2**31 - 1, 2**32 - 1
_BOUNDED = {
    "nconnect": (1, 16),
    "max_connect": (1, 16),
    "minorversion": (0, 2),
    "port": (0, 65535),
    "mountport": (0, 65535),
    "retrans": (0, _INT),
    "timeo": (1, _INT),
}
_SIZES = frozenset(
    ("acdirmax", "acdirmin", "acregmax", "acregmin", "actimeo", "bsize", "namlen", "rsize", "wsize")
)
_VERSIONS = frozenset({"2", "3", "4", "4.0", "4.1", "4.2"})
_PROTOCOLS = frozenset({"tcp", "tcp6", "udp", "udp6", "rdma", "rdma6"})
_TOKENS = {
    "lookupcache": frozenset({"all", "none", "pos", "positive"}),
    "local_lock": frozenset({"all", "flock", "posix", "none"}),
    "write": frozenset({"lazy", "eager", "wait"}),
}
_WORDS = {
    "vers": _VERSIONS,
    "nfsvers": _VERSIONS,
    "proto": _PROTOCOLS,
    "mountproto": _PROTOCOLS,
    "xprtsec": frozenset({"none", "tls", "mtls"}),
}
_NEVER_ALONE = _SIZES | _TOKENS.keys() | {"nconnect", "max_connect", "retrans", "timeo", "sec", "xprtsec"}
_FLAGS = frozenset(
    f"{prefix}{name}"
    for name in ("ac", "acl", "cto", "lock", "migration", "posix", "resvport", "sharecache")
    for prefix in ("", "no")
) | {"hard", "soft", "softerr", "softreval", "nordirplus"}
_SMB_WORDS = {"vers": SMB_VERSIONS, "sec": SMB_FLAVOURS}
# kstrtouint() with any base; older kernels knew only decimal numbers.
_NUMBER = re.compile(r"\+?(?:0x(?P<hex>[0-9a-f]{1,16})|(?P<digits>0|[1-9][0-9]*))", re.ASCII | re.IGNORECASE)
_OCTAL = re.compile(r"\+?0[0-9]+", re.ASCII)
"""What is a number to the base of 8 for one kernel and of 10 for another: not judged."""


def wanted(name: str, value: str | None) -> str:
    """Return what an option of NFS takes in place of its value; "" where the value may be right."""
    if value is None:
        return "a value" if name in _NEVER_ALONE else ""
    if name in _FLAGS:
        return NO_VALUE
    if name in _SIZES:
        return "" if _within(value, 0, _U32) else "a number without a unit"
    if name in _BOUNDED:
        least, most = _BOUNDED[name]
        return "" if _within(value, least, most) else f"a number from {least} to {most}"
    if name == "sec":
        return "flavours that nfs(5) names" if _word(value.split(":"), FLAVOURS) else ""
    return _word([value], (_TOKENS | _WORDS).get(name))


def wanted_though_sloppy(name: str, value: str | None) -> str:
    """Return what an option takes also where `sloppy` lets the kernel pass over what it cannot read."""
    read = name == "sec" or name in _WORDS or (name in _BOUNDED and _number(value or "") is not None)
    return wanted(name, value) if value is not None and read else ""


def wanted_by_smb(name: str, value: str | None) -> str:
    """Return what an option of SMB takes in place of its value; "" where the value may be right."""
    return "" if value is None else _word([value], _SMB_WORDS.get(name))


def _word(values: Iterable[str], known: frozenset[str] | None) -> str:
    if known is None or known.issuperset(filter(None, values)):
        return ""
    *others, last = sorted(known)
    return f"{', '.join(others)} or {last}"


def _within(text: str, least: int, most: int) -> bool:
    number = _number(text)
    return bool(_OCTAL.fullmatch(text)) or (number is not None and least <= number <= most)


def _number(text: str) -> int | None:
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    return int(found["hex"], 16) if found["hex"] else decimal(found["digits"])
