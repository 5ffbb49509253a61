"""The meaning and the values of NFS mount options (nfs(5)), and the kernels that know them.

A kernel's features are judged by its release and distribution alone, with the backports in the table of
https://learn.microsoft.com/en-us/azure/azure-netapp-files/performance-linux-mount-options. That is for images
only: a running host shows the values themselves, and distributions backport changes of later kernels.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple

from nfstuned import data
from nfstuned.model.kernel import Distribution, KernelRelease, MountStats, Options, option_text, whole
from nfstuned.model.mounts import SMB_TYPES

FLAVOURS = frozenset(
    {
        *("none", "null", "sys", "krb5", "krb5i", "krb5p"),
        *("lkey", "lkeyi", "lkeyp", "spkm3", "spkm3i", "spkm3p"),
    }
)
"""The security flavours that the kernel's NFS client knows (nfs_secflavor_tokens, fs/nfs/fs_context.c)."""
CACHE_DEFAULTS = {"acregmin": 3, "acregmax": 60, "acdirmin": 30, "acdirmax": 60}
"""In seconds (NFS_DEF_ACREGMIN and so on, include/linux/nfs_fs.h); the kernel does not show a default."""


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

    `shown` are the options that the kernel shows, `stats` is its stanza of mountstats, None where
    it is unknown. An added connection counts once it had replies: without nconnect the kernel sends nothing
    over it (only rpc_clnt_add_xprt sets round-robin, and add_xprt of sysfs does not call it). Connections of
    max_connect lead to other addresses, and are not counted.
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
        elif (seconds := whole(value)) is not None:
            if name in times:
                times[name] = seconds
            elif name == "actimeo":
                times = dict.fromkeys(times, seconds)
    return times if cached else dict.fromkeys(times, 0)


def contradictions(options: Options, fstype: str) -> tuple[tuple[str, str], ...]:
    """Return the options of one line that a later one undoes, each with the later one.

    None undoes the `sec=none` of SMB: a later flavour leaves `nullauth` (cifs_parse_security_flavors).
    """
    tables = data.read_table(_FILE)
    common, own = tables["common"], tables["smb" if fstype in SMB_TYPES else "nfs"]
    repeated = f"{common['repeated']} {own['repeated']}".split()
    groups = {name: group for group in common["opposites"] for name in group.split()}
    last: dict[str, tuple[str, str | None]] = {}
    undone: dict[tuple[str, str], None] = {}
    names = {name for name, _ in options.pairs}
    for name, value in reversed(options.pairs):
        stem = name.removeprefix("no")
        key = groups.get(name) or (stem if {stem, f"no{stem}"} <= names else name)
        later = last.setdefault(key, (name, value))
        several = name in repeated or name.startswith(FREE)
        several |= fstype in SMB_TYPES and (name, value) == ("sec", "none")
        if later != (name, value) and not several:
            undone.setdefault((option_text(name, value), option_text(*later)))
    return tuple(reversed(undone))


_SIGNING = ("sign", "ignore_signature", "signloosely")


def unsigned(options: Options) -> tuple[str, str] | None:
    """Return the option of SMB that asks for signing, and the flavour behind it that takes it back.

    Each `sec` sets signing: on with an `i` at its end, else off (cifs_parse_security_flavors).
    """
    asked, taken_back = "", None
    for name, value in options.pairs:
        if name in _SIGNING or (name == "sec" and (value or "").endswith("i")):
            asked, taken_back = name if name != "sec" else "", None
        elif name == "sec" and asked:
            asked, taken_back = "", (asked, option_text(name, value))
    return taken_back


FREE = ("x-", "X-", "smackfs", "verity.")
"""The starts of options that other programs than the kernel's file system take."""
WITHOUT_OLD_SMB = (5, 11, 0)
"""The first kernel without the older names of options of SMB."""
WITHOUT_NTLM, DROPPED_FLAVOURS = (5, 15, 0), frozenset({"ntlm", "ntlmi"})
"""Linux 5.15 took these out of cifs_secflavor_tokens ("bad security option", fs/smb/client/fs_context.c)."""
NO_VALUE, A_VALUE = "no value", "a value"
HAS_CONTEXT = (5, 6, 0)
"""NFS has fs_context since this kernel: numbers may be octal or hexadecimal, and no text may be empty."""
_U32 = 2**32 - 1
_OCTAL = re.compile(r"\+?0[0-9]+", re.ASCII)
"""Some kernels read it in base 8, others in base 10: not judged."""


_FOR_SYSTEMD = re.compile(r"(?:x-|comment=(?:x-)?)(s[a-z]+)[-._:](.+)")
"""A name with the prefix of systemd's options, or one that is like it, and the rest of the name."""
_ALIKE = 0.88
"""How alike the rests are at least, for difflib: "automount-timeout" may mean either timeout."""


class OptionNames(NamedTuple):
    """The names of mount options, by the program or the protocol that takes them."""

    common: frozenset[str]
    systemd: frozenset[str]
    nfs: frozenset[str]
    rare_nfs: frozenset[str]
    dead_nfs: frozenset[str]
    dead_v4: frozenset[str]
    aznfs: frozenset[str]
    efs: frozenset[str]
    multipath: frozenset[str]
    smb: frozenset[str]
    renamed_smb: dict[str, str]
    smb_modes: dict[str, str]

    def meant(self, *, smb: bool) -> frozenset[str]:
        """Return the names that a misspelt name may mean: of those with an effect, on every kernel.

        No password is among them, as it should not stand in the line at all.
        """
        of_smb = (self.smb | self.smb_modes.keys()) - {"pass", "pass2", "password", "password2"}
        return self.common | (of_smb if smb else self.nfs - self.dead_nfs)

    def meant_for_systemd(self, text: str) -> str:
        """Return systemd's name that a misspelt name, or `comment=` with its value, means.

        "" where it is right, or means none: systemd compares byte by byte.
        """
        parts = _FOR_SYSTEMD.fullmatch(text.lower())
        if parts is None or text in self.systemd or not get_close_matches(parts[1], ["systemd"], 1, 0.8):
            return ""
        names = {known.partition("systemd.")[2]: known for known in sorted(self.systemd)}
        close = get_close_matches(parts[2], names, 1, _ALIKE)
        # Another comment may be a person's own words.
        return names[close[0]] if close and (not text.startswith("comment") or close == ["automount"]) else ""


@cache
def option_names() -> OptionNames:
    """Return the names of all known options."""
    tables = data.read_table(_FILE)
    nfs, smb = tables["nfs"], tables["smb"]
    multipath = _split(nfs["multipath"])
    return OptionNames(
        common=_split(tables["common"]["names"]),
        systemd=_split(tables["common"]["systemd"]),
        nfs=_split(nfs["names"]),
        rare_nfs=_split(nfs["rare"]) | multipath,
        dead_nfs=_split(nfs["dead"]),
        dead_v4=_split(nfs["dead_v4"]),
        aznfs=_split(nfs["aznfs"]),
        efs=_split(tables["efs"]["names"]),
        multipath=multipath,
        smb=_split(smb["names"]),
        renamed_smb=smb["renamed"],
        smb_modes=smb["modes"],
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
    """Return the value that an option of NFS takes instead of `value`; "" where that may be right."""
    nfs = _nfs()
    if value is None:
        return A_VALUE if name in nfs["with_value"] or name in nfs["sizes"] else ""
    if not value and name in nfs["with_text"]:
        return A_VALUE
    if name in nfs["without_value"]:
        return NO_VALUE
    if name in nfs["sizes"] or name in nfs["bounds"]:
        return _wanted_number(nfs["bounds"].get(name), value)
    if name == "sec":
        named = filter(None, value.split(":")) if value else [value]
        return "the flavours of nfs(5)" if _word(named, FLAVOURS) else ""
    return _word([value], nfs["words"].get(name) or nfs["words_though_sloppy"].get(name))


def wanted_though_sloppy(name: str, value: str | None) -> str:
    """Return the result of `wanted`, only for values that the kernel refuses even with `sloppy`."""
    nfs = _nfs()
    number = name in nfs["bounds"] and whole(value) is not None
    read = name == "sec" or name in nfs["words_though_sloppy"] or number
    # The kernel's own parser passes over a missing text, and mount.nfs over none.
    read = read if value else name in nfs["words_though_sloppy"] and name != "xprtsec"
    return wanted(name, value) if value is not None and read else ""


_ABSOLUTE = "an absolute path (~ is not expanded)"


def wanted_by_smb(name: str, value: str | None) -> str:
    """Return the value that an option of SMB takes instead of `value`; "" where that may be right."""
    smb = data.read_table(_FILE)["smb"]
    if name in smb["sizes"].split() or name in smb["bounds"]:
        return _wanted_number(smb["bounds"].get(name), value or "")
    if name in {"cred", "credentials"}:
        return _ABSOLUTE if (value or "").startswith("~") else ""
    if name == "iocharset":
        meant = re.sub("[-_]", "", value or "").lower()
        return "utf8" if meant == "utf8" != value else ""
    if (name, value) == ("sec", "krb5p"):
        return "krb5 and the option seal"
    words = smb["words"]
    known = _split(words.get(name, ""))
    # No finding proposes values that later kernels refuse.
    if value is None or name not in words or value in known:
        return ""
    return _word([value], known - DROPPED_FLAVOURS)


def _word(values: Iterable[str], known: frozenset[str] | None) -> str:
    if known is None or known.issuperset(values):
        return ""
    *others, last = sorted(known)
    return f"{', '.join(others)} or {last}"


def _wanted_number(bounds: Sequence[int] | None, text: str) -> str:
    """Return the number that an option takes instead of a text; without bounds one of 32 bits."""
    least, most = bounds or (0, _U32)
    if _within(text, least, most):
        return ""
    return f"a number from {least} to {most}" if bounds else "a number without a unit"


def _within(text: str, least: int, most: int) -> bool:
    number = whole(text)
    return bool(_OCTAL.fullmatch(text)) or (number is not None and least <= number <= most)


def refused_by_efs(options: Options) -> tuple[dict[str, str], list[list[str]]]:
    """Return the options for mount.efs that lack another, each with it, and pairs that it refuses."""
    efs, names = data.read_table(_FILE)["efs"], {name for name, _ in options.pairs}
    lacking = dict[str, str]()
    for name, needed in efs["needs"].items():
        if name in {*names, *lacking.values()} and needed not in names:
            lacking[name] = needed
    return lacking, [pair for text in efs["apart"] if names.issuperset(pair := text.split())]


NCONNECT_SINCE = (5, 3, 0)
"""28cc5cd8c68f "NFS: Add a mount option to specify number of TCP connections to use"."""
NCONNECT_V4_0_SINCE = (5, 8, 0)
"""Earlier kernels take the option with NFS 4.0, and ignore it (dbc4fec6b6dd)."""

_MAINLINE = (
    r"[0-9.]+(?:-rc[0-9]+)?\+?(?:"
    # Debian's; Arch's; Alpine's; Ubuntu's, which has features of later kernels in its 4.15 to 5.3 alone.
    r"(?:\+deb[0-9]+)?(?:-[0-9]+|-0\.(?:bpo|deb[0-9]+)\.[0-9]+)?(?:-cloud|-rt)?-(?:amd64|arm64|armmp|686|686-pae)"
    r"|[.-]arch[0-9][0-9.-]*|-[0-9]+-(?:lts|virt)"
    r"|-[0-9]+-(?:generic|generic-64k|generic-hwe|lowlatency|kvm|virtual|azure|azure-fde|aws|gcp|oracle|raspi)"
    r")?"
)
"""The releases of kernels with the options of the mainline kernel of their version, and no later ones."""
_OLDEST = KernelRelease((0, 0, 0), "0")

_EL8 = r"4\.18\.0-([0-9]{1,6})\b.*\.el8"
_EL7 = re.compile(r"(?:2\.6\.32|3\.10\.0)-.*\.el[67]\b")
"""The releases of Enterprise Linux 6 and 7: Red Hat brought nconnect to 8.3 first."""
_WITHOUT_BACKPORTS = rf"{_EL7.pattern}|4\.15\.0-[0-9]+-generic"
"""Those and Ubuntu 18.04's own, to which nconnect alone of the NFS options came."""
RHEL_8_3 = 240
"""The build of RHEL 8.3's kernel."""
_SUSE = ("sles", "sled", "sles_sap", "opensuse-leap")
_SUSE_BACKPORTS = ("12.4", "12.5", "15", "15.0", "15.1")
"""Those with 4.12.14, which has nconnect for all versions of NFS (https://www.suse.com/support/kb/doc?id=000019933)."""
_UBUNTU = (18, 4)


def el8_build(release: KernelRelease) -> int | None:
    """Return the build of an Enterprise Linux 8 kernel, 305 of "4.18.0-305.el8.x86_64"; None of any other.

    Red Hat brings much of later kernels to it, and the clones take the number over.
    """
    match = re.match(_EL8, release.text)
    return int(match[1]) if match else None


def newer_options(options: Options, release: KernelRelease) -> dict[str, str]:
    """Return the options of NFS that a kernel refuses, each with the first kernel that takes it.

    One that is older without a value has its value. nconnect is `knows_nconnect`'s. Of a kernel that may have
    features of later ones only those options are certain that came after its distribution had taken the last
    of them over.
    """
    if not _has_backports(release) or re.match(_WITHOUT_BACKPORTS, release.text):
        return _newer_than(release.version, options)
    lines = _nfs()["backports"].items()
    last = next((version for line, version in lines if re.match(line, release.text)), None)
    return _newer_than(_numbers(last), options) if last else {}


def unjudged_options(options: Options, release: KernelRelease, refused: Collection[str]) -> dict[str, str]:
    """Return the options of NFS that are newer than a kernel's version and not among `refused` ones."""
    newer = _newer_than(release.version, options)
    return {name: since for name, since in newer.items() if name not in refused}


def _newer_than(version: tuple[int, ...], options: Options) -> dict[str, str]:
    nfs = _nfs()
    newer = dict[str, str]()
    for name, value in options.pairs:
        key = name if value is None or name in nfs["since"] else f"{name}="
        since = nfs["since"].get(key) if name != "nconnect" else None
        if since and version < _numbers(nfs["perhaps_since"].get(key, since)):
            newer[name if key == name else option_text(name, value)] = since
    return newer


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def is_dated(options: Options) -> bool:
    """Whether a kernel's version decides if it takes one of the options; nconnect is not asked about."""
    return bool(newer_options(options, _OLDEST))


def _has_backports(release: KernelRelease) -> bool:
    """Whether a kernel may have options of later kernels than its version has."""
    return not re.fullmatch(_MAINLINE, release.text) or bool(re.match(_PATCHED, release.text))


def knows_nconnect(release: KernelRelease, distribution: Distribution | None) -> bool:
    """Return whether a kernel takes nconnect (with 4.0 it may ignore it); True where it may."""
    if release.version >= NCONNECT_SINCE:
        return True
    build = el8_build(release)
    if build is not None:
        return build >= RHEL_8_3
    if distribution is None:
        return _has_backports(release) and not _EL7.match(release.text)
    if distribution.id in _SUSE and distribution.version_id in _SUSE_BACKPORTS:
        return True
    numbers = tuple(int(part) for part in re.findall(r"[0-9]{1,6}", distribution.version_id))
    return distribution.id == "ubuntu" and numbers >= _UBUNTU


_WITHOUT_UDP = (5, 6, 0)
_RED_HAT = r".*\.(?:el(?:9|[1-9][0-9])|fc[0-9]+).*"
_SUSES_KERNEL = re.compile(r".*-default\b.*")


def refuses_udp(release: KernelRelease) -> bool | None:
    """Return whether a kernel refuses NFS over UDP; None where its configuration is not known.

    NFS_DISABLE_UDP_SUPPORT (fs/nfs/Kconfig) is on by default: Debian's linux-config-6.1, Red Hat's
    redhat/configs/common/generic and Ubuntu from 20.10 on have it, SUSE's config/x86_64/default does not.
    """
    if release.version < _WITHOUT_UDP or _SUSES_KERNEL.fullmatch(release.text):
        return False
    return True if re.fullmatch(_RED_HAT, release.text) or not _has_backports(release) else None


_SMALL_READ_AHEAD = (5, 4, 0)
"""c128e575514c "NFS: Optimise the default readahead size"."""
_PATCHED = r"4\.12\.14-|(?:4\.15|4\.18|5\.[0-3])\.0-[0-9]+-"
"""SUSE's of SLES 12 SP4 to 15 SP1 and Ubuntu's of 18.04: their backports depend on the update."""


def read_ahead_is_small(kernel: KernelRelease) -> bool | None:
    """Return whether mounts start with 128 KiB and not 15 * rsize; None where nobody knows."""
    return _since(kernel, _SMALL_READ_AHEAD)


def has_nconnect(kernel: KernelRelease) -> bool | None:
    """Return whether mounts can have several connections; None where the release does not show it."""
    return _since(kernel, NCONNECT_SINCE)


def _since(kernel: KernelRelease, first: tuple[int, int, int]) -> bool | None:
    if kernel.version >= first:
        return True
    build = el8_build(kernel)
    if build is not None:
        return build >= RHEL_8_3  # which has both
    return None if re.match(_PATCHED, kernel.text) else False
