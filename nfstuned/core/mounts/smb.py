"""The meaning of an SMB mount's options, and the kernel's sessions that it uses (mount.cifs(8)).

A live mount shows the options in effect (cifs_show_options in fs/smb/client/cifsfs.c), and leaves out some
that a file asks for: `serverino` is only printed where it is on, `max_channels` only above 1, `sec` only
where the mount named it or has no user, and `actimeo` is two options where they differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from nfstuned.core.policy.endpoint import as_address, plain, split_source
from nfstuned.model.facts import Target
from nfstuned.model.kernel import Options, decimal
from nfstuned.model.mounts import Snapshot
from nfstuned.model.system import SmbSession

DEFAULT_CACHE_S = 1
"""CIFS_DEF_ACTIMEO in fs/smb/client/fs_context.h."""
_OLD_DIALECTS = {0x202: "2.0.2", 0x210: "2.1", 0x300: "3.0", 0x302: "3.0.2"}
_OLD_VERS = {"1.0": "1.0", "1": "1.0", "2.0": "2.0.2", "2": "2.0.2", "2.1": "2.1", "3.0": "3.0"}
_OLD_VERS |= {"3.02": "3.0.2", "3.0.2": "3.0.2"}
_NTLM = ("ntlm", "ntlmi", "ntlmv2", "ntlmv2i", "ntlmssp", "ntlmsspi")
_LOGIN = ("credentials", "cred", "username", "user", "password", "pass")
_NUMBERS = re.compile(r"\d{1,6}(?:[.-]\d{1,6})*")


def asked_channels(options: Options) -> int | None:
    """Return how many channels options ask for; None where they do not mention channels.

    `multichannel` raises the number to two at least, and `max_channels` above 1 works without it; otherwise
    the last option counts. From commit 1ef15fbe6771 on the kernel refuses contradictions
    (fs/smb/client/fs_context.c).
    """
    asked: int | None = None
    for name, value in options.pairs:
        if name == "nomultichannel":
            asked = 1
        elif name == "multichannel":
            asked = max(asked or 1, 2)
        elif name == "max_channels":
            number = decimal(value)
            asked = asked if number is None else number
    return asked


def wanted_channels(target: Target) -> int | None:
    """Return how many channels a mount was asked for; None where neither file nor kernel names a number."""
    asked = asked_channels(target.wanted)
    return asked if asked is not None else asked_channels(target.options)


CACHE_TIMES = ("acregmax", "acdirmax", "actimeo")


def attribute_cache_s(target: Target) -> int | None:
    """Return the shorter of the times for which attributes of files and folders are kept, in seconds.

    The kernel ignores `actimeo` where an earlier option, another `actimeo` too, moved a time from its default
    (smb3_fs_context_parse_param in fs/smb/client/fs_context.c).
    """
    # A live mount shows the times in effect: an absent one is unknown.
    default = DEFAULT_CACHE_S if target.live is None else None
    times = dict.fromkeys(("acregmax", "acdirmax"), default)
    for name, value in target.options.pairs:
        seconds = decimal(value)
        if seconds is None:
            continue
        if name in times:
            times[name] = seconds
        elif name == "actimeo" and {default, DEFAULT_CACHE_S}.issuperset(times.values()):
            times = dict.fromkeys(times, seconds)
    return min((time for time in times.values() if time is not None), default=None)


def sessions_of(target: Target, sessions: Iterable[SmbSession]) -> tuple[SmbSession, ...]:
    """Return the sessions that a live mount may use: those to its address that have its share."""
    address = as_address(target.endpoint.address or "")
    if target.live is None or address is None:
        return ()
    mine = share_name(target.source)
    return tuple(
        session
        for session in sessions
        if as_address(session.address) == address and mine in map(share_name, session.shares)
    )


def channels(target: Target, sessions: Iterable[SmbSession]) -> int:
    """Return how many channels a mount has, or would have."""
    numbers = (session.channels for session in sessions_of(target, sessions))
    return max(numbers, default=asked_channels(target.options) or 1)


def old_dialect(target: Target, sessions: tuple[SmbSession, ...]) -> str:
    """Return the dialect where it is surely below 3.1.1, else "".

    `vers=3` and `vers=default` only limit the mount: the session has the dialect that was agreed on.
    """
    named = _OLD_VERS.get(target.options.get("vers") or "", "")
    dialects = {session.dialect for session in sessions}
    if named or not dialects or not dialects <= _OLD_DIALECTS.keys():
        return named
    return next(name for dialect, name in _OLD_DIALECTS.items() if dialect in dialects)


def signs(target: Target, sessions: tuple[SmbSession, ...]) -> bool:
    """Return whether packets are signed; encrypted ones are not."""
    options = target.options
    if "seal" in options or any(session.encrypted for session in sessions):
        return False
    if sessions:
        return all(session.signed for session in sessions)
    return "sign" in options or (options.get("sec") or "").endswith("i")


def ntlm(target: Target) -> str:
    """Return the option that means a login by NTLM, "" for another login or where that is not sure.

    A file that names a login and no `sec` gets ntlmssp (mount.cifs(8)). A live mount without `sec` does not
    show its login.
    """
    security = target.options.get("sec")
    if security is not None:
        return f"sec={security}" if security in _NTLM else ""
    options = target.options
    if target.live is not None or "guest" in options or not any(name in options for name in _LOGIN):
        return ""
    return "sec=ntlmssp (the default)"


def share_name(source: str) -> tuple[str, str]:
    """Return server and share of a UNC path in a form for comparisons, without a folder below the share."""
    host, path = split_source(source)
    return plain(host), path.strip("/").partition("/")[0].lower()


class _Listed(NamedTuple):
    """A distribution of Microsoft's list: the first kernel of each series that qualifies."""

    id: str
    release: str
    """VERSION_ID, or the part of it before the dot."""
    first_kernels: tuple[tuple[int, ...], ...]


# https://learn.microsoft.com/en-us/azure/storage/files/smb-performance, read 2026-01-15. For Ubuntu
# 24.04 the list gives the 6.8 series for AKS alone; other hosts run the same package.
_LISTED = (
    _Listed("ubuntu", "24.04", ((6, 8, 0, 1042), (6, 14, 0, 1017))),
    _Listed("ubuntu", "22.04", ((6, 8, 0, 1044),)),
    _Listed("azurelinux", "3.0", ((6, 6, 106, 1),)),
    _Listed("rhel", "9", ((5, 14, 0, 611, 5, 1),)),
    _Listed("rhel", "10", ((6, 12, 0, 124, 8, 1),)),
)
_SERIES_NUMBERS = 3
"""The numbers that make a series."""


class KernelSupport(NamedTuple):
    """Whether Microsoft's list has the running kernel for multichannel; None where the list is silent."""

    supported: bool | None = None
    first_kernels: str = ""
    """The first kernels that are listed for this distribution: "6.8.0-1042 or 6.14.0-1017"."""


def multichannel_support(snapshot: Snapshot) -> KernelSupport:
    """Return whether Microsoft's list has this host's kernel.

    The list names five releases of three distributions. Of Ubuntu it means the azure kernels, which count
    their last number on their own: another flavour of the same series cannot be compared, an older series is
    below the list.
    """
    distribution, kernel = snapshot.distribution, snapshot.kernel
    if distribution is None or kernel is None:
        return KernelSupport()
    releases = {distribution.version_id, distribution.version_id.partition(".")[0]}
    listed = next((row for row in _LISTED if row.id == distribution.id and row.release in releases), None)
    if listed is None:
        return KernelSupport()
    match = _NUMBERS.match(kernel.text)
    running = tuple(int(part) for part in re.split("[.-]", match[0])) if match else ()
    comparable = listed.id != "ubuntu" or "-azure" in kernel.text
    texts = []
    for first in listed.first_kernels:
        # As their distributions write them: Azure Linux has four numbers before the hyphen.
        joint = "." if listed.id == "azurelinux" else "-"
        numbers = [*map(str, first)]
        texts.append(".".join(numbers[:_SERIES_NUMBERS]) + joint + ".".join(numbers[_SERIES_NUMBERS:]))
    supported = _supported(running, listed.first_kernels, comparable=comparable)
    return KernelSupport(supported, " or ".join(texts))


def _supported(
    running: tuple[int, ...], first_kernels: tuple[tuple[int, ...], ...], *, comparable: bool
) -> bool | None:
    if len(running) <= _SERIES_NUMBERS:
        return None
    if running[:_SERIES_NUMBERS] < min(first_kernels)[:_SERIES_NUMBERS]:
        return False
    if not comparable:
        return None
    for first in first_kernels:
        if running[:_SERIES_NUMBERS] == first[:_SERIES_NUMBERS]:
            return running >= first
    return running > max(first_kernels)


def credentials_file(target: Target) -> str:
    """Return the absolute path of the credentials file that a line names (mount.cifs(8)), or ""."""
    path = target.wanted.get("credentials") or target.wanted.get("cred") or ""
    return path if target.is_smb and path.startswith("/") else ""


def has_login(options: Options) -> bool:
    """Whether mount.cifs takes a login from options or the file that they name."""
    return "cred" in options or "credentials" in options or has_password(options)


def has_password(options: Options) -> bool:
    """Whether mount.cifs asks nobody for a password, whatever a file has (parse_options in mount.cifs.c)."""
    return any(
        name == "guest"
        or name.startswith("pass")
        or (name == "sec" and (value or "").startswith(("krb5", "none")))
        or (name in ("user", "username") and "%" in (value or ""))
        for name, value in options.pairs
    )


def credentials(targets: Iterable[Target]) -> tuple[str, ...]:
    """Return the files with logins that lines name, each once."""
    return tuple(dict.fromkeys(path for target in targets if (path := credentials_file(target))))
