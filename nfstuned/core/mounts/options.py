"""The meaning of NFS mount options, and the values that they take (nfs(5), data/mount-options.toml)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from nfstuned import data
from nfstuned.model.kernel import MountStats, Options, decimal, nfs_version

FLAVOURS = frozenset(
    {
        *("none", "null", "sys", "krb5", "krb5i", "krb5p"),
        *("lkey", "lkeyi", "lkeyp", "spkm3", "spkm3i", "spkm3p"),
    }
)
"""The security flavours that the kernel's NFS client knows (nfs_secflavor_tokens, fs/nfs/fs_context.c)."""
CACHE_DEFAULTS = {"acregmin": 3, "acregmax": 60, "acdirmin": 30, "acdirmax": 60}
"""In seconds (NFS_DEF_ACREGMIN and so on, include/linux/nfs_fs.h); the kernel does not show a default."""


def is_v3(fstype: str, options: Options) -> bool:
    """Whether options name version 3, as mount.aznfs reads them for its type; the type nfs4 never is."""
    if fstype == "aznfs":
        return aznfs_version(options) == "3"
    return fstype != "nfs4" and (nfs_version(fstype, options) or (0, None))[0] == 3  # noqa: PLR2004 - the version


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


def security(options: Options) -> str:
    """Return the flavours of NFS that options allow, with colons between them; "" where they name none.

    A second `sec` adds to the first (nfs_parse_security_flavors in fs/nfs/fs_context.c).
    """
    return ":".join(value for name, value in options.pairs if name == "sec" and value)


def has_kerberos(options: Options) -> bool:
    """Whether options have Kerberos, or a list of flavours in which it is."""
    return "krb5" in security(options)


def carried(shown: Options, stats: MountStats | None) -> int:
    """Return how many connections carry a live mount's requests: its nconnect, or more that were added.

    `shown` are the options that the kernel shows, `stats` is its stanza of mountstats, None for
    nothing. A connection that was added counts once it carried requests. To a mount that was made without
    nconnect the kernel gives it nothing to carry (rpc_clnt_add_xprt alone sets round-robin, and add_xprt of
    sysfs does not call it). Those of max_connect lead to other addresses, and are not counted.
    """
    number = shown.number("nconnect") or 1
    if number == 1 or stats is None or "max_connect" in shown:
        return number
    return max(number, sum(1 for transport in stats.transports if transport.receives))


def cache_times(options: Options) -> dict[str, int]:
    """Return the four attribute cache times that options mean, in seconds."""
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


WITHOUT_OLD_SMB = (5, 11, 0)
"""From which kernel on SMB has no other names for its options."""
WITHOUT_NTLM, DROPPED_FLAVOURS = (5, 15, 0), frozenset({"ntlm", "ntlmi"})
"""Linux 5.15 took these out of cifs_secflavor_tokens ("bad security option", fs/smb/client/fs_context.c)."""
NO_VALUE = "no value"
_U32 = 2**32 - 1
_CHANNELS, MOST_CHANNELS = "max_channels", 16
"""CIFS_MAX_CHANNELS in fs/smb/client/cifsglob.h."""
_MANY = f"a number from 1 to {MOST_CHANNELS}"
# kstrtouint() with any base; older kernels knew only decimal numbers.
_NUMBER = re.compile(r"\+?(?:0x(?P<hex>[0-9a-f]{1,16})|(?P<digits>0|[1-9][0-9]*))", re.ASCII | re.IGNORECASE)
_OCTAL = re.compile(r"\+?0[0-9]+", re.ASCII)
"""One kernel reads it to the base of 8 and another to the base of 10: not judged."""


@dataclass(frozen=True, slots=True)
class OptionNames:
    """The names of mount options, by the program or the protocol that takes them."""

    common: frozenset[str]
    nfs: frozenset[str]
    rare_nfs: frozenset[str]
    aznfs: frozenset[str]
    smb: frozenset[str]
    renamed_smb: dict[str, str]


@cache
def option_names() -> OptionNames:
    """Return the names of all known options."""
    tables = data.read_table(_FILE)
    nfs, smb = tables["nfs"], tables["smb"]
    return OptionNames(
        common=_split(tables["common"]["names"]),
        nfs=_split(nfs["names"]),
        rare_nfs=_split(nfs["rare"]),
        aznfs=_split(nfs["aznfs"]),
        smb=_split(smb["names"]),
        renamed_smb=smb["renamed"],
    )


@cache
def _nfs() -> dict[str, Any]:
    """Return the table of NFS with each list of names as a set."""
    table = data.read_table(_FILE)["nfs"]
    lists = {key: _split(value) if isinstance(value, str) else value for key, value in table.items()}
    words = {key: {name: _split(text) for name, text in table[key].items()} for key in _WORDS}
    return {**lists, **words}


def _split(text: str) -> frozenset[str]:
    words = text.split()
    plain = {word.removeprefix("[no]") for word in words}
    return frozenset(plain | {"no" + word[4:] for word in words if word.startswith("[no]")})


_FILE = "mount-options.toml"
_WORDS = ("words", "words_though_sloppy")


def wanted(name: str, value: str | None) -> str:
    """Return the value that an option of NFS takes instead of its own; "" where that may be right."""
    nfs = _nfs()
    if value is None:
        return "a value" if name in nfs["with_value"] or name in nfs["sizes"] else ""
    if name in nfs["without_value"]:
        return NO_VALUE
    if name in nfs["sizes"]:
        return "" if _within(value, 0, _U32) else "a number without a unit"
    if name in nfs["bounds"]:
        least, most = nfs["bounds"][name]
        return "" if _within(value, least, most) else f"a number from {least} to {most}"
    if name == "sec":
        return "flavours that nfs(5) names" if _word(value.split(":"), FLAVOURS) else ""
    return _word([value], nfs["words"].get(name) or nfs["words_though_sloppy"].get(name))


def wanted_though_sloppy(name: str, value: str | None) -> str:
    """Return the value that an option takes also where `sloppy` lets the kernel pass over the unreadable."""
    nfs = _nfs()
    number = name in nfs["bounds"] and _number(value or "") is not None
    read = name == "sec" or name in nfs["words_though_sloppy"] or number
    return wanted(name, value) if value is not None and read else ""


def wanted_by_smb(name: str, value: str | None) -> str:
    """Return the value that an option of SMB takes instead of its own; "" where that may be right."""
    if name == _CHANNELS:
        return "" if value is not None and _within(value, 1, MOST_CHANNELS) else _MANY
    words = data.read_table(_FILE)["smb"]["words"]
    return "" if value is None or name not in words else _word([value], _split(words[name]))


def _word(values: Iterable[str], known: frozenset[str] | None) -> str:
    if known is None or known.issuperset(filter(None, values)):
        return ""
    *others, last = sorted(known)
    return f"{', '.join(others)} or {last}"


def _within(text: str, least: int, most: int) -> bool:
    number = _number(text)
    return bool(_OCTAL.fullmatch(text)) or (number is not None and least <= number <= most)


def _number(text: str) -> int | None:
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    return int(match["hex"], 16) if match["hex"] else decimal(match["digits"])
