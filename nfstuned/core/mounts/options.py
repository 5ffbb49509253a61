"""The mount options of NFS and SMB: their names, which values they take, and what they mean (nfs(5)).

NFS: nfs_fs_parameters of fs/nfs/fs_context.c up to Linux 6.17, with what older kernels had and nfs(5). SMB:
smb3_fs_parameters of fs/smb/client/fs_context.c up to Linux 6.14, with mount.cifs(8). A name with "[no]" is
two names.

NFS: nfs_fs_parameters and nfs_fs_context_parse_param of fs/nfs/fs_context.c. What mount.nfs takes out before
the kernel sees it (`bg`, a protocol without a value for NFS 3) is left out. SMB: mount.cifs(8).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from nfstuned.model.kernel import MountStats, Options, decimal


def _names(text: str) -> frozenset[str]:
    words = text.split()
    plain = {word.removeprefix("[no]") for word in words}
    return frozenset(plain | {"no" + word[4:] for word in words if word.startswith("[no]")})


COMMON = _names("""
    defaults ro rw [no]auto [no]user [no]users [no]owner [no]group _netdev nofail comment helper uhelper
    [no]exec [no]suid [no]dev sync async dirsync [no]atime [no]diratime [no]relatime [no]strictatime
    [no]lazytime [no]mand [no]iversion [no]symfollow silent loud remount bind rbind move private
    rprivate shared rshared slave rslave unbindable runbindable sub context fscontext defcontext
    rootcontext seclabel
""")
"""mount(8), libmount's tables, and the labels of security modules."""

NFS = _names("""
    [no]ac [no]acl acdirmax acdirmin acregmax acregmin actimeo addr bg bsize clientaddr [no]cto fg
    [no]fsc hard [no]intr local_lock [no]lock lookupcache [no]migration minorversion mountaddr mounthost
    mountport mountproto mountvers namlen nconnect max_connect nfsvers port [no]posix proto [no]rdirplus
    rdma [no]resvport retrans retry rsize sec [no]sharecache sloppy soft softerr [no]softreval source
    tcp timeo [no]trunkdiscovery udp v2 v3 v4 v4.0 v4.1 v4.2 vers write wsize xprtsec cert_serial
    privkey_serial [no]alignwrite fatal_neterrors nfsprog mountprog
""")

RARE_NFS = _names("""
    [no]sharetransport [no]quota usrquota grpquota remoteports localports localports_failover
    spread_reads spread_writes pconnect mdconnect [no]idlexprt sigdown noextend
""")
"""Names that some distribution's or vendor's kernel takes: nobody can say from here that they are wrong."""

AZNFS = _names("notls clean")
"""What mount.aznfs keeps for itself."""

SMB = _names("""
    acdirmax [no]acl acregmax actimeo addr [no]autotune backupgid backupuid blocksend [no]brl bsize
    cache cifsacl closetimeo codepage compress cred credentials cruid dfs dir_mode dirmode
    dmask dom domain domainauto [no]dynperm echo_interval esize file_mode fmask [no]forcegid forcemand
    forcemandatorylock [no]forceuid fsc gid guest [no]handlecache handletimeout [no]hard
    idsfromsid ignore_signature ignorecase [no]intr iocharset ip [no]lease [no]linux locallease
    [no]mapchars [no]mapposix max_cached_dirs max_channels max_credits mfsymlinks min_enc_offload
    modefromsid modesid [no]multichannel multiuser [no]nativesocket netbiosname noac noautotune
    noblocksend nocase nodelete nodfs nosharesock nosparse pass pass2 password password2 path [no]perm
    [no]persistenthandles port [no]posix [no]posixpaths prefixpath rasize rdma reparse
    [no]resilienthandles retrans rootfs rsize rwpidforward seal sec [no]serverino servern [no]setuids
    setuidfromacl [no]sfu sign signloosely sloppy snapshot [no]soft source srcaddr
    [no]strictsync symlink symlinkroot target [no]tcpnodelay uid unc [no]unicode [no]unix upcall_target
    user [no]user_xattr username ver vers witness workgroup wsize
""")

OLD_SMB, WITHOUT_OLD_SMB = {"nolock": "nobrl"}, (5, 11, 0)
"""Other names of SMB's options in cifs_mount_option_tokens of fs/cifs/connect.c, which smb3_fs_parameters of
Linux 5.11 left out."""

SMB_VERSIONS = frozenset({"1.0", "2.0", "2.1", "3.0", "3.02", "3.0.2", "3.1.1", "3.11", "3", "default"})
SMB_FLAVOURS = frozenset(
    {
        *("none", "krb5", "krb5i", "ntlm", "ntlmi", "ntlmv2", "ntlmv2i", "ntlmssp", "ntlmsspi", "nontlm"),
    }
)
WITHOUT_NTLM = (5, 15, 0)
DROPPED_FLAVOURS = frozenset({"ntlm", "ntlmi"})
"""What Linux 5.15 took out of cifs_secflavor_tokens ("bad security option", fs/smb/client/fs_context.c)."""


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
_VERSION_NUMBER = re.compile(r"([234])(?:\.([0-2]))?")
_VERSION_NAMES = ("vers", "nfsvers")
ONLY_V3 = ("mountaddr", "mounthost", "mountport", "mountproto", "mountvers")
"""Options of the protocol that only version 3 has beside it."""


def version(fstype: str, options: Options) -> Version | None:
    """Return the version that options name, the last of several; None where they name none.

    `vers=4` without a minor version, and the type nfs4, leave that to mount.nfs, which begins with 4.2. What
    only version 3 has names it where nothing else does (nfs_set_version in utils/mount/stropts.c).
    """
    asked: Version | None = (4, None) if fstype == "nfs4" else None
    minor: int | None = None
    for name, value in options.pairs:
        text = value or "" if name in _VERSION_NAMES else name[1:] if name.startswith("v") else ""
        match = _VERSION_NUMBER.fullmatch(text)
        if match and (name in _VERSION_NAMES or value is None):
            asked = (int(match[1]), int(match[2]) if match[2] else None)
        elif name == "minorversion":
            minor = decimal(value)
    if asked is not None and asked[0] == 4 and asked[1] is None:  # noqa: PLR2004 - NFS 4 has minor versions
        return 4, minor
    if asked is None and fstype == "nfs" and any(name in ONLY_V3 for name, _ in options.pairs):
        return 3, None
    return asked


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


def version_text(numbers: Version) -> str:
    """Return a version as people write it."""
    return f"{numbers[0]}" if numbers[1] is None else f"{numbers[0]}.{numbers[1]}"


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

    `shown` are the options that the kernel shows, `stats` is what mountstats has of the mount, None for
    nothing. A connection that was added counts once it carried requests. To a mount that was made without
    nconnect the kernel gives it nothing to carry (rpc_clnt_add_xprt alone sets round-robin, and add_xprt of
    sysfs does not call it). Those of max_connect lead to other addresses, and are not counted.
    """
    number = shown.number("nconnect") or 1
    if number == 1 or stats is None or "max_connect" in shown:
        return number
    return max(number, sum(1 for transport in stats.transports if transport.receives))


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
_CHANNELS, MOST_CHANNELS = "max_channels", 16
"""CIFS_MAX_CHANNELS in fs/smb/client/cifsglob.h."""
_MANY = f"a number from 1 to {MOST_CHANNELS}"
_SMB_CACHES = frozenset({"loose", "none", "ro", "singleclient", "strict"})
_SMB_WORDS = {"vers": SMB_VERSIONS, "sec": SMB_FLAVOURS, "cache": _SMB_CACHES}
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
    if name == _CHANNELS:
        return "" if value is not None and _within(value, 1, MOST_CHANNELS) else _MANY
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
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    return int(match["hex"], 16) if match["hex"] else decimal(match["digits"])
