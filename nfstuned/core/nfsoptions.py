"""What the mount options of NFS mean: version, security flavours, cache times, flags (nfs(5))."""

from __future__ import annotations

import re

from nfstuned.model.kernel import Options, decimal

Version = tuple[int, int | None]
"""Major and minor version; the minor one is None where mount.nfs negotiates it."""

FLAVOURS = frozenset(
    {
        *("none", "null", "sys", "krb5", "krb5i", "krb5p"),
        *("lkey", "lkeyi", "lkeyp", "spkm3", "spkm3i", "spkm3p"),
    }
)
"""The security flavours that the kernel's NFS client knows (nfs_secflavor_tokens, fs/nfs/fs_context.c)."""
CACHE_DEFAULTS = {"acregmin": 3, "acregmax": 60, "acdirmin": 30, "acdirmax": 60}
"""In seconds (NFS_DEF_ACREGMIN and so on, include/linux/nfs_fs.h); the kernel does not show a default."""
_NUMBER = re.compile(r"([234])(?:\.([0-2]))?")
_VERSION_NAMES = ("vers", "nfsvers")


def version(fstype: str, options: Options) -> Version | None:
    """Return the version that options name, the last one of several; None where they name none.

    `vers=4` without a minor version, and the type nfs4, leave that to mount.nfs, which begins with 4.2.
    """
    found: Version | None = (4, None) if fstype == "nfs4" else None
    minor: int | None = None
    for name, value in options.pairs:
        text = value or "" if name in _VERSION_NAMES else name[1:] if name.startswith("v") else ""
        match = _NUMBER.fullmatch(text)
        if match and (name in _VERSION_NAMES or value is None):
            found = (int(match[1]), int(match[2]) if match[2] else None)
        elif name == "minorversion":
            minor = decimal(value)
    if found is not None and found[0] == 4 and found[1] is None:  # noqa: PLR2004 - NFS 4 has minor versions
        return 4, minor
    return found


def is_v3(fstype: str, options: Options) -> bool:
    """Whether options name version 3, as mount.aznfs reads them for its type; the type nfs4 never is."""
    if fstype == "aznfs":
        return aznfs_version(options) == "3"
    return fstype != "nfs4" and (version(fstype, options) or (0, None))[0] == 3  # noqa: PLR2004 - the version


def aznfs_version(options: Options) -> str:
    """Return the version that mount.aznfs reads in its options, "" for none: 4.1 and 3 are all that it takes.

    It looks for "vers=", also within "nfsvers=" and "mountvers=", knows no v4.1, and puts minorversion behind
    (get_version_from_mount_options in src/mountscript.sh of Azure/AZNFS-mount).
    """
    major = minor = ""
    for name, value in options.pairs:
        if value is not None and name.endswith("vers"):
            major = value
        elif value is not None and name.endswith("minorversion"):
            minor = value
    return f"{major}.{minor}" if major and minor else major


def version_text(found: Version) -> str:
    """Return a version as people write it."""
    return f"{found[0]}" if found[1] is None else f"{found[0]}.{found[1]}"


def has_kerberos(options: Options) -> bool:
    """Whether options have Kerberos, or a list of flavours in which it is."""
    return "krb5" in (options.get("sec") or "")


def cache_times(options: Options) -> dict[str, int]:
    """Return the four attribute cache times that options come to, in seconds."""
    times, cached = dict(CACHE_DEFAULTS), True
    for name, value in options.pairs:
        if name in {"ac", "noac"}:
            cached = name == "ac"
        elif (seconds := decimal(value)) is not None:
            if name in times:
                times[name] = seconds
            elif name == "actimeo":
                times = dict.fromkeys(times, seconds)
    return times if cached else dict.fromkeys(times, 0)


def last_of(options: Options, *names: str) -> str:
    """Return which of several options that contradict each other stands last; "" where none is there."""
    return next((name for name, _ in reversed(options.pairs) if name in names), "")
