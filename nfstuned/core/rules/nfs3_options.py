"""Rules NFS3xx: mount options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from nfstuned.core.mounts.options import (
    CACHE_DEFAULTS,
    FLAVOURS,
    HAS_CONTEXT,
    cache_times,
    refuses_udp,
    security,
)
from nfstuned.core.mounts.requests import Intents
from nfstuned.core.nconnect.transport import members
from nfstuned.core.rules.rule import (
    ADVICE,
    ERROR,
    INFO,
    KERNEL,
    WARNING,
    Manual,
    known_provider,
    mount_again,
    of_conf,
    out_of_conf,
    place_of,
    place_to_change,
    rule,
    then_remount,
    where,
)
from nfstuned.model.facts import Facts, Fault, Need, Target
from nfstuned.model.kernel import (
    LEASE_OPS,
    ONLY_V3,
    KernelRelease,
    Options,
    Version,
    aznfs_version,
    nfs_version,
    option_text,
    parse_options,
    version_text,
    whole,
)
from nfstuned.model.mounts import AZNFS, Maker
from nfstuned.model.policy import Provider

_NETAPP_FAQ = "https://learn.microsoft.com/en-us/azure/azure-netapp-files/faq-nfs"
_AZNFS = "https://github.com/Azure/AZNFS-mount/blob/main/src/mountscript.sh"
_TRIDENT = "https://github.com/NetApp/trident/blob/master/utils/nfs/utils.go"
_AZURE_VERSION = "vers=4,minorversion=1"
_NAMES_VERSION = re.compile("|".join((r"(?:nfs)?vers|minorversion|v[234](?:\.[0-2])?", *ONLY_V3)))
_AZURE_TRANSFER = 1 << 20
"""Bytes of rsize and wsize, by the page on mounting (read 2026-06-17)."""
_LEAST_TRANSFER, _ORACLES_TRANSFER = 1 << 16, 1 << 15
"""Bytes for every other server, and Oracle's own number for its databases' files (note 359515.1)."""
_UNLESS_ORACLE = ", unless Oracle's note 359515.1 asks for it"
_SIZES = ("rsize", "wsize")
_LEAST_SIZE, _DEFAULT_SIZE = 1 << 10, 1 << 12
"""NFS_MIN_FILE_IO_SIZE, and NFS_DEF_FILE_IO_SIZE instead of less."""
_BY_PAGES = (6, 0, 0)
"""nfs_io_size() of fs/nfs/internal.h rounds down to pages, and below a page, as nfs_block_size() of older
kernels does, down to a power of two."""
_LARGE_PAGES = ((16, re.compile(r"\b16k\b|-rpi-2712$")), (64, re.compile(r"\b64kb?\b|\bppc64le\b")))
"""The releases of kernels with pages of 16 and 64 KiB."""
_TIMES = ("actimeo", *CACHE_DEFAULTS)
_LEAST_TIMEO, _RETRANS = 50, 2
"""In tenths of a second; the kernel's own timeo is 600 over TCP, and its retrans 2 (NFS_DEF_TCP_RETRANS)."""
_RELIED_ON = "keep it where several hosts must see each other's changes at once, as in Oracle's clusters"
ATTRIBUTES_PERCENT, ATTRIBUTES_PER_S = 75, 50
"""The share and the rate from which attributes dominate a mount's requests, as for SMB (SMB611)."""
_LONGEST_ASKED_S = 600
"""The longest time that a vendor's page asks for: Azure NetApp Files', for data of this host alone."""
_SETTLED_S = 60
"""The requests of a shorter time do not show a mount's usual work."""


@rule("NFS301", "version-not-supported", ERROR, source=Manual.MOUNTING)
def wrong_version(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of a version that the vendor does not support; the server decides a negotiated version."""
    intents = Intents((), facts.snapshot.settings)
    for target in facts.nfs:
        asked = nfs_version(target.fstype, target.options)
        if target.is_azure_files:
            read = aznfs_version(_own(target))
            if target.live is None and target.fstype == "aznfs":
                # mount.aznfs wants to read 4.1 in the line itself; nfsmount.conf is no help.
                shown = f"version {read}" if read else "no version"
                if read != "4.1":
                    yield Fault(
                        target.subject,
                        f"mount.aznfs reads {shown} in these options, expects 4.1 for Azure Files, and "
                        "mounts nothing",
                        observed=shown,
                        expected=_AZURE_VERSION,
                        remedy=_versioned(target, _AZURE_VERSION),
                        source=_AZNFS,
                    )
            elif asked is not None and asked not in {(4, 1), (4, None)}:
                yield _version_fault(target, "Azure Files supports only NFS 4.1", _AZURE_VERSION, asked)
        elif (
            (made := target.request.versions if target.request else ())
            and asked
            and not _is_among(asked, made)
        ):
            why = f"the driver makes only volumes of NFS {' and '.join(made)}"
            yield _version_fault(target, why, f"vers={made[-1]}", asked)._replace(source=_TRIDENT)
        elif (provider := _provider(target, facts)) and asked and not _is_among(asked, provider.versions):
            why = f"{provider.title} supports only NFS {' and '.join(provider.versions)}"
            fault = _version_fault(target, why, f"vers={provider.versions[-1]}", asked)
            yield fault._replace(source=provider.limits)
        elif target.is_netapp and asked == (4, 2):
            fault = _version_fault(target, "Azure NetApp Files supports NFS 3 and 4.1", "vers=4.1", asked)
            yield fault._replace(source=_NETAPP_FAQ)
        elif target.is_netapp and target.live is None and _begins_with_4_2(target, asked, intents):
            yield Fault(
                target.subject,
                "the entry names no version: mount.nfs asks for 4.2 first, which Azure NetApp Files "
                "accepts and does not support",
                observed="no version" if asked is None else "vers=4",
                expected="vers=4.1, or vers=3 for a volume of NFSv3",
                remedy=_versioned(target, "vers=4.1 (of an NFSv3 volume vers=3)"),
                source=_NETAPP_FAQ,
            )


def _provider(target: Target, facts: Facts) -> Provider | None:
    """Return the provider of a mount's server, by the administrator's policy or by the server."""
    return known_provider(facts, target.profile.base, target.endpoint.provider)


def _is_among(asked: Version, versions: Sequence[str]) -> bool:
    """Whether servers have a version, any where none is listed; an open minor version is negotiated."""
    major = str(asked[0])
    texts = {version_text(asked), major} if not asked[1] else {version_text(asked)}
    return not versions or any(
        version in texts or (asked[1] is None and version.startswith(f"{major}.")) for version in versions
    )


def _begins_with_4_2(target: Target, asked: Version | None, intents: Intents) -> bool:
    """Whether mount.nfs asks for 4.2 first, as it does where neither an entry nor Defaultvers asks for less.

    Docker calls mount(2) itself, for which the type nfs is version 3 and nfs4 is 4.0. With vers=4 a default
    of another major version does not count (nfs_default_version in utils/mount/stropts.c). NFS214 reports a
    default that is not a version.
    """
    if asked not in {None, (4, None)} or target.request is None or target.maker is Maker.DOCKER:
        return False
    named = intents.default_version(target.request)
    default = nfs_version("nfs", Options((("vers", named),))) if named is not None else (4, 2)
    if asked is not None and default is not None and default[0] != asked[0]:
        return True
    return default in {(4, None), (4, 2)}


def _version_fault(target: Target, why: str, wanted: str, asked: Version) -> Fault:
    names = [option.name for option in target.asked if _NAMES_VERSION.fullmatch(option.name)]
    added = of_conf(target, *names)
    state = f"{added[-1].origin} asks for" if added else "this entry asks for"
    return Fault(
        place_of(target, *names),
        f"{why}, and {'this mount has' if target.live else state} version {version_text(asked)}",
        observed=f"vers={version_text(asked)}",
        expected=wanted,
        remedy=f"{_versioned(target, wanted)}{then_remount(target)}",
    )


def _versioned(target: Target, wanted: str) -> str:
    """Return how to write a version into the options, instead of the versions that are there."""
    pairs = (pair for pair in _own(target).pairs if _NAMES_VERSION.fullmatch(pair[0]))
    named = ",".join(option_text(*pair) for pair in pairs)
    how = f"instead of {named} in" if named else "into"
    return f"write {wanted} {how} the options in {where(target)}"


def _own(target: Target) -> Options:
    """Return the options of the line that asks for a mount, without those that nfsmount.conf adds."""
    return parse_options(target.request.options if target.request else "")


@rule("NFS302", "security-not-supported", ERROR, source=Manual.NFS)
def wrong_security(facts: Facts) -> Iterator[Fault]:
    """Yield mounts without a flavour of their vendor's among their flavours."""
    for target in facts.nfs:
        flavours = (security(target.options) or "sys").split(":")
        provider = _provider(target, facts)
        known = provider.flavours if provider and FLAVOURS.issuperset(flavours) else ()
        if provider and known and not set(known).intersection(flavours):
            right = f"sec={':'.join(known)}"
            yield Fault(
                place_of(target, "sec"),
                f"the options have sec={':'.join(flavours)}, and {provider.title} supports only {right}",
                observed=f"sec={':'.join(flavours)}",
                expected=right,
                remedy=f"write {right} into the options in {place_to_change(target)}",
                source=provider.limits,
            )


@rule("NFS303", "transfer-size-low", WARNING, source=Manual.MOUNTING)
def small_transfers(facts: Facts) -> Iterator[Fault]:
    """Yield mounts with an rsize or wsize below 64 KiB in their lines, of Azure Files below 1 MiB.

    0 is the server's own size, and UDP and version 2 have small requests by themselves. A live mount that
    asked for no size, or with an unknown request, has the server's limit, which no line changes: it is
    reported where another mount of the server has more.
    """
    kernel = facts.snapshot.kernel
    large = [kb for kb, names in _LARGE_PAGES if kernel and names.search(kernel.text)]
    page = max([facts.snapshot.page_kb, *large]) << 10
    if kernel and kernel.version < _BY_PAGES:
        page = _AZURE_TRANSFER
    for target in facts.nfs:
        azure = target.is_azure_files
        least = _AZURE_TRANSFER if azure else _LEAST_TRANSFER
        if not azure and (target.protocol == "udp" or target.version == "2"):
            continue
        asked, sizes = target.wanted.numbers(_SIZES), _sizes(target.options, kernel)
        low = {name: size for name, size in sizes.items() if 0 < size < least}
        given = dict.fromkeys(low, 0)
        if low and (azure or not target.wanted.pairs):
            others = [mount.options.numbers(_SIZES) for mount in members(target, facts)]
            given = {name: max((other.get(name, 0) for other in others), default=0) for name in low}
        low = {
            name: size for name, size in low.items() if 0 < asked.get(name, 0) < least or given[name] > size
        }
        if low:
            taken = [size if size >= _LEAST_SIZE else _DEFAULT_SIZE for size in low.values()]
            carried = min(size & -page if size >= page else 1 << size.bit_length() - 1 for size in taken)
            why = (
                f"a request carries less than the {least} bytes that Azure Files accepts: the same data "
                "need more requests"
                if azure
                else f"the same data need up to {-(-_AZURE_TRANSFER // carried)} times as many requests as "
                "without these options, if client and server then agree on their largest size"
            )
            oracles = not azure and min(low.values()) >= _ORACLES_TRANSFER
            full = f"write rsize={least},wsize={least} into the options in {place_to_change(target)}"
            yield Fault(
                place_of(target, *low),
                f"{_listed(low)}: {why}",
                observed=_listed(low),
                expected=f"{least}" if azure else f"{least} or more",
                remedy=full if azure else f"{_without(target, *low)}{_UNLESS_ORACLE if oracles else ''}",
                source="" if azure else Manual.NFS,
                severity=ADVICE if oracles else None,
            )


def _sizes(options: Options, kernel: KernelRelease | None) -> dict[str, int]:
    """Return rsize and wsize; those with a 0 in front mean something else to a kernel without fs_context."""
    old = kernel is not None and kernel.version < HAS_CONTEXT
    zeros = [name for name in _SIZES if old and (options.get(name) or "").startswith("0")]
    return options.numbers([name for name in _SIZES if name not in zeros])


@rule("NFS304", "transfer-size-high", WARNING, source=Manual.NETAPP)
def large_transfers(facts: Facts) -> Iterator[Fault]:
    """Yield mounts with an rsize or wsize above their profile's limit (Azure NetApp Files: 262144)."""
    for target in facts.nfs:
        most = target.profile.rsize_max
        high = {
            name: size
            for name, size in _sizes(target.options, facts.snapshot.kernel).items()
            if most is not None and size > most
        }
        if high:
            yield Fault(
                place_of(target, *high),
                f"{_listed(high)} is above {most}, the most that the profile {target.profile.name} allows: "
                "larger requests can raise the latency and lower the throughput",
                observed=_listed(high),
                expected=f"at most {most}",
                remedy=f"write rsize={most},wsize={most} into the options in {place_to_change(target)}",
            )


@rule("NFS305", "noresvport-missing", WARNING, source=Manual.MOUNTING)
def reserved_port(facts: Facts) -> Iterator[Fault | Need]:
    """Yield mounts without noresvport of a provider that asks for it, for the kernels that it names.

    It is advice where the provider asks for it on every kernel, or its own client sets the option on each.
    """
    kernel = facts.snapshot.kernel
    for target in facts.nfs:
        provider = _provider(target, facts)
        if (
            provider is None
            or not provider.noresvport
            or target.options.last_of("resvport", "noresvport") == "noresvport"
        ):
            continue
        before, why, severity = provider.noresvport_before, "", None
        if not before:
            severity = ADVICE
            why = (
                f", and {provider.title} asks for it on every kernel: after a failover of the network or "
                "of a server the client reconnects from the same port, and the share can stay away for "
                "minutes, or until a reboot"
            )
        else:
            if kernel is None:
                yield from facts.lacks(KERNEL)
            if target.version == "4.0" and target.version in provider.versions:
                why = (
                    ", and NFS 4.0 reconnects from the same port after a failure of the network, so the "
                    "share can stay away"
                )
            elif kernel is not None and kernel.version < tuple(map(int, before.split("."))):
                why = (
                    f", and kernels before {before} (this is {kernel.text}) reconnect from the same port "
                    "after a failure of the network, so the share can stay away"
                )
            elif provider.noresvport_by_client:
                severity = ADVICE
                why = (
                    f", which {provider.title} recommends for every kernel: those before {before} "
                    "reconnect from the same port after a failure of the network, so the share can stay "
                    "away"
                )
        if why:
            own = _own(target)
            change = "add noresvport to"
            if "resvport" in own:
                given = "noresvport" in own
                change = "remove resvport from" if given else "write noresvport instead of resvport in"
            yield Fault(
                place_of(target, "resvport"),
                f"noresvport is missing{why}",
                observed="resvport",
                expected="noresvport",
                remedy=f"{change} the options in {place_to_change(target)}",
                source=provider.noresvport,
                severity=severity,
            )


@rule("NFS306", "attribute-cache-short", ADVICE, source=Manual.MOUNTING)
def short_cache(facts: Facts) -> Iterator[Fault]:
    """Yield mounts that keep attributes for less time than their profile asks for, or nothing at all.

    It matters where an option sets the time, or where requests for attributes dominate. The kernel's default
    times are fine for most work.
    """
    for target in facts.nfs:
        least = target.profile.actimeo_min
        times = cache_times(target.options)
        low = {name: seconds for name, seconds in times.items() if least is not None and seconds < least}
        chosen = {name for name, seconds in low.items() if seconds != CACHE_DEFAULTS[name]}
        load = _attribute_load(target, facts)
        if low and (chosen or load):
            noac = _noac(target)
            shown = ", ".join((noac, *_short_times(target, least))) if noac else _listed(low)
            yield Fault(
                place_of(target, "noac", "actimeo", *low),
                f"attributes are cached for less than {least} s ({shown}): the "
                f"client asks for them again while it still reads a directory{load}",
                observed=shown,
                expected=f"actimeo={least} or more",
                remedy=f"{_cached(target, least, low)}{then_remount(target)}; keep it if other clients' "
                "changes must be visible sooner",
            )
        off = {"lookupcache": "lookupcache=none"} if target.options.get("lookupcache") == "none" else {}
        if least is None and not any(times.values()):
            zeros = {name: f"{name}=0" for name in _TIMES if target.wanted.number(name) == 0}
            own = ({"noac": "noac"} if _noac(target) else {}) | zeros
            off |= own or dict.fromkeys(_TIMES, "actimeo=0")
        if off:
            shown = ",".join(dict.fromkeys(off.values()))
            uncached = "names" if shown == "lookupcache=none" else "names and attributes"
            writes = "noac" in off and _is_writable(target)
            slow = ", and each write waits for the server's disk" if writes else ""
            yield Fault(
                place_of(target, *off),
                f"{shown}: {uncached} are not cached: each lookup, open and check of a file asks the "
                f"server{slow}",
                observed=shown,
                expected="the kernel's own caches",
                remedy=f"{_without(target, *off, *(_synchronous(target) if writes else ()))}; {_RELIED_ON}",
                source=Manual.NFS,
            )


@rule("NFS324", "attribute-cache-long", INFO, source=Manual.NFS)
def long_cache(facts: Facts) -> Iterator[Fault]:
    """Yield writable mounts that keep attributes for longer than any vendor asks for."""
    for target in facts.nfs:
        most = max(_LONGEST_ASKED_S, target.profile.actimeo_min or 0)
        times = cache_times(target.options)
        long = {name: times[name] for name in ("acregmax", "acdirmax") if times[name] > most}
        if not long or not _is_writable(target) or target.options.get("lookupcache") == "none":
            continue
        nocto = target.options.last_of("cto", "nocto") == "nocto"
        opened = (
            ", even when a program opens them (nocto)"
            if nocto
            else ", until a program opens the changed file"
        )
        known = target.wanted if target.wanted.pairs else target.options
        names = [name for name in ("actimeo", *long) if name in known] or list(long)
        yield Fault(
            place_of(target, *names),
            f"{_listed(long)}: changes of files by other clients may stay unnoticed for up to "
            f"{max(long.values()) // 60} min{opened}",
            observed=_listed(long),
            expected=f"at most {most}",
            remedy=f"{_without(target, *names)}; keep it if only this host writes, or the data hardly change",
        )


def _attribute_load(target: Target, facts: Facts) -> str:
    """Return the part of a mount's requests that ask for attributes, "" where it is small or not known.

    The requests are those between two looks, where there were two, else those since the mount.
    """
    device = target.superblock.device if target.superblock is not None else ""
    samples = facts.measured.samples if facts.measured else ()
    sample = next((sample for sample in samples if sample.device == device), None)
    if sample is not None:
        seconds = sample.interval_s
        counts = {name: rate.per_s * seconds for name, rate in sample.ops.items()}
    elif target.stats is not None and target.stats.age_s:
        seconds = max(target.stats.age_s, _SETTLED_S)
        counts = {name: float(op.ops) for name, op in target.stats.ops.items()}
    else:
        return ""
    attributes = counts.get("GETATTR", 0.0)
    every = sum(number for name, number in counts.items() if name not in LEASE_OPS)
    if attributes < ATTRIBUTES_PER_S * seconds or attributes * 100 < ATTRIBUTES_PERCENT * every:
        return ""
    return f" ({attributes * 100 / every:.0f} % of its requests, {attributes / seconds:.0f} a second)"


def _cached(target: Target, least: int | None, low: Iterable[str]) -> str:
    """Return how to write a longer time into the options; with noac no time counts.

    nfsmount.conf's options follow the mount's own.
    """
    noac = _noac(target)
    added = out_of_conf(target, *low, noac)
    slow = ("" if out_of_conf(target, noac) else noac, *_synchronous(target))
    times = _short_times(target, least)
    # Behind times of single kinds a new actimeo is the last.
    singles = not any(slow) and not any(text.startswith("actimeo=") for text in times)
    own = "" if singles else ",".join((*filter(None, slow), *times))
    change = f"write actimeo={least} instead of {own} in" if own else f"add actimeo={least} at the end of"
    return f"{added and f'{added}, and '}{change} the options in {where(target)}"


def _short_times(target: Target, least: int | None) -> list[str]:
    """Return the options of a mount's own line for times below a number."""
    pairs = ((name, whole(value), value) for name, value in _own(target).pairs if name in _TIMES)
    return [
        option_text(name, value)
        for name, seconds, value in pairs
        if least is not None and seconds is not None and seconds < least
    ]


def _without(target: Target, *names: str) -> str:
    """Return how to take options out of the line that asks for a mount, or of nfsmount.conf.

    A live mount may have an option that its line does not have.
    """
    known = target.wanted if target.wanted.pairs else target.options
    own = [name for name in names if name in known]
    change = out_of_conf(target, *names)
    if not change and not own:
        return f"{mount_again(target)} ({where(target)} does not ask for that)"
    change = change or f"remove {' and '.join(own)} from the options in {where(target)}"
    return change + then_remount(target)


def _synchronous(target: Target) -> tuple[str, ...]:
    """Return the `sync` that the line of a mount with `noac` has as well, and with which writes stay slow."""
    return ("sync",) if _noac(target) and _own(target).last_of("sync", "async") == "sync" else ()


def _noac(target: Target) -> str:
    return "noac" if target.options.last_of("ac", "noac") == "noac" else ""


def _is_writable(target: Target) -> bool:
    """Whether neither the options nor the mount itself are read-only."""
    flags = target.live.flags if target.live is not None else ""
    return target.options.last_of("rw", "ro") != "ro" and "ro" not in flags.split(",")


@rule("NFS307", "soft-mount", WARNING, source="nfs(5)")
def soft_mount(facts: Facts) -> Iterator[Fault]:
    """Yield mounts that fail requests after a time instead of waiting for the server: read-only as advice."""
    for target in facts.nfs:
        how, writable = target.options.last_of("hard", "soft", "softerr"), _is_writable(target)
        if how in {"soft", "softerr"}:
            change = out_of_conf(target, how) or f"replace {how} by hard in the options in {where(target)}"
            effect = (
                "in the middle of their work, and their writes may be lost unnoticed"
                if writable
                else "instead of data"
            )
            exception = "" if writable else "; keep it if they can handle that"
            yield Fault(
                place_of(target, how),
                f"{how}: when the server does not answer in time, programs get an error {effect}",
                observed=how,
                expected="hard",
                remedy=f"{change}{then_remount(target)}{exception}",
                severity=None if writable else ADVICE,
            )


@rule("NFS316", "sync-mount", ADVICE, source=Manual.NFS)
def synchronous(facts: Facts) -> Iterator[Fault]:
    """Yield writable mounts with `sync`; a live mount with `noac`, which NFS306 reports, shows it too."""
    for target in facts.nfs:
        if _is_writable(target) and target.options.last_of("sync", "async") == "sync" and not _noac(target):
            yield Fault(
                place_of(target, "sync"),
                "sync: each write of a program waits until the server has the data on its disk: each small "
                "write takes a round trip (sync in /etc/exports is another option, for the server)",
                observed="sync",
                expected="no sync",
                remedy=f"{_without(target, 'sync')}; keep it for a program that relies on it and, unlike "
                "databases, neither calls fsync(2) nor opens files with O_SYNC",
            )


@rule("NFS317", "timeout-short", WARNING, source=Manual.NFS)
def short_timeout(facts: Facts) -> Iterator[Fault]:
    """Yield mounts over TCP or RDMA with a timeo below 5 s: advice where they are hard."""
    for target in facts.nfs:
        timeo, retrans = target.options.number("timeo"), target.options.number("retrans")
        if timeo is None or not 0 < timeo < _LEAST_TIMEO or target.protocol == "udp":
            continue
        how = target.options.last_of("hard", "soft", "softerr")
        soft = how in {"soft", "softerr"}
        limit = f"{timeo * (1 + (_RETRANS if retrans is None else retrans)) / 10:g} s"
        effect = (
            f"with {how} a request fails after {limit} without an answer, as while a server fails over or "
            f"is busy{', and writes are lost' if _is_writable(target) else ''}"
            if soft
            else f"after {limit} without an acknowledgement the client drops the connection and sends all "
            "its requests again, although the transport repeats lost packets by itself"
        )
        yield Fault(
            place_of(target, "timeo"),
            f"timeo={timeo} is {timeo / 10:g} s instead of 60 s: {effect}",
            observed=f"timeo={timeo}",
            expected="timeo=600, the default",
            remedy=_without(target, "timeo"),
            severity=None if soft else ADVICE,
        )


@rule("NFS312", "over-udp", WARNING, source=Manual.NFS)
def over_udp(facts: Facts) -> Iterator[Fault]:
    """Yield mounts over UDP: an error where the kernel refuses them, as every kernel does with version 4."""
    kernel = facts.snapshot.kernel
    for target in facts.nfs:
        if target.protocol != "udp":
            continue
        four = (nfs_version(target.fstype, target.options) or (0,))[0] == 4  # noqa: PLR2004 - the version
        refuses = four or (None if kernel is None else refuses_udp(kernel))
        refused = target.live is None and refuses is not False
        # proto=tcp does not take an IPv6 address.
        tcp = "proto=tcp6" if (target.options.get("proto") or "").endswith("6") else "proto=tcp"
        first = (
            "since Linux 5.6 the kernel has NFS over UDP switched off, unless it was built otherwise, and "
            "refuses the mount; where it is on, "
            if refused
            else ""
        )
        why = f"NFS over UDP: {first}a lost or wrongly joined fragment corrupts data (nfs(5))"
        over = [one.name for one in target.asked if one.text.removeprefix("proto=") in {"udp", "udp6"}]
        change = out_of_conf(target, *over) or f"write {tcp} instead of udp in the options in {where(target)}"
        yield Fault(
            place_of(target, *over),
            "version 4 of NFS over UDP: the kernel refuses the mount" if four else why,
            observed="udp",
            expected="tcp",
            remedy=f"{change}{then_remount(target)}",
            severity=ERROR if refused and refuses else None,
        )


@rule("NFS314", "locks-local", INFO, source=Manual.NFS)
def local_locks(facts: Facts) -> Iterator[Fault]:
    """Yield writable NFSv3 mounts with locks that the server does not know."""
    for target in facts.nfs:
        provider = _provider(target, facts)
        # Azure Files has no version 3 (NFS301), and Blob storage no lock service.
        if target.is_azure_files or (provider and not provider.locks):
            continue
        nolock = target.options.last_of("lock", "nolock") == "nolock"
        any_version = target.live is None and nfs_version(target.fstype, target.options) is None
        if nolock and _is_writable(target) and (target.is_v3 or any_version):
            change = out_of_conf(target, "nolock") or f"remove nolock from the options in {where(target)}"
            yield Fault(
                place_of(target, "nolock"),
                f"{'with version 3 ' if any_version else ''}locks of programs stay on this host: another "
                "host that writes to the same files does not see them, and both may write at once",
                observed="nolock",
                expected="lock, where several hosts write",
                remedy=f"{change}{then_remount(target)}; keep it if only this host writes, or the server has "
                "no lock service",
            )


@rule("NFS319", "lock-service-missing", WARNING, source=Manual.NFS)
def no_lock_service(facts: Facts) -> Iterator[Fault]:
    """Yield mounts with locks of NFS 3 at a server without a lock service.

    mount.aznfs adds nolock itself.
    """
    for target in facts.nfs:
        provider, options = _provider(target, facts), target.options
        local = options.last_of("lock", "nolock") == "nolock" or options.get("local_lock") == "all"
        if provider is None or provider.locks or local or (target.fstype == AZNFS and not target.live):
            continue
        change = "write nolock instead of lock in" if "lock" in _own(target) else "add nolock to"
        yield Fault(
            place_of(target, "lock"),
            f"{provider.title} has no lock service, and nolock is missing: programs that lock a file get "
            "an error, and the mount fails if rpc.statd does not run",
            observed="lock",
            expected="nolock",
            remedy=f"{change} the options in {place_to_change(target)}",
            source=provider.limits,
        )


def _listed(values: dict[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())
