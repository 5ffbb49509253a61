"""Rules NFS3xx: mount options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from nfstuned.core.mounts.options import (
    FLAVOURS,
    Version,
    aznfs_version,
    cache_times,
    last_of,
    version,
    version_text,
)
from nfstuned.core.nconnect.groups import is_azure_files, is_netapp
from nfstuned.core.rules.remedies import again, out_of_conf, where
from nfstuned.model.facts import Facts, Target
from nfstuned.model.finding import Fault
from nfstuned.model.kernel import Options
from nfstuned.parse.options import parse_options

_NETAPP_FAQ = "https://learn.microsoft.com/en-us/azure/azure-netapp-files/faq-nfs"
_AZNFS = "https://github.com/Azure/AZNFS-mount/blob/main/src/mountscript.sh"
_AZURE_VERSION = "vers=4,minorversion=1"
_NAMES_VERSION = re.compile(r"(?:nfs|mount)?vers|minorversion|v[234](?:\.[0-2])?")
_AZURE_TRANSFER = 1 << 20
"""Bytes of rsize and wsize, as the page on mounting says (read 2026-06-17)."""
_RESVPORT_MENDED = (5, 18, 0)


def wrong_version(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of a version that the vendor does not support; what is negotiated, the server decides."""
    for target in facts.nfs:
        asked = version(target.fstype, target.options)
        if is_azure_files(target):
            if target.live is None and target.fstype == "aznfs":
                yield from _refused_by_helper(target)
            elif asked is not None and asked not in {(4, 1), (4, None)}:
                yield _version_fault(target, "Azure Files only speaks NFS 4.1", _AZURE_VERSION, asked)
        elif is_netapp(target) and asked == (4, 2):
            fault = _version_fault(target, "Azure NetApp Files supports NFS 3 and 4.1", "vers=4.1", asked)
            yield replace(fault, source=_NETAPP_FAQ)


def _refused_by_helper(target: Target) -> Iterator[Fault]:
    """Yield an entry that mount.aznfs refuses: it wants to read 4.1 itself, nfsmount.conf is no help."""
    read = aznfs_version(_own(target))
    said = f"version {read}" if read else "no version"
    if read != "4.1":
        yield Fault(
            target.subject,
            f"mount.aznfs reads {said} in these options, wants 4.1 for Azure Files, and mounts nothing",
            observed=said,
            expected=_AZURE_VERSION,
            remedy=_versioned(target, _AZURE_VERSION),
            source=_AZNFS,
        )


def _version_fault(target: Target, why: str, wanted: str, asked: Version) -> Fault:
    return Fault(
        target.subject,
        f"{why}, and this {_state(target)} version {version_text(asked)}",
        observed=f"vers={version_text(asked)}",
        expected=wanted,
        remedy=f"{_versioned(target, wanted)}{again(target)}",
    )


def _versioned(target: Target, wanted: str) -> str:
    """Return how a version comes into the options; two of them would contradict each other."""
    pairs = (pair for pair in _own(target).pairs if _NAMES_VERSION.fullmatch(pair[0]))
    named = ",".join(name if value is None else f"{name}={value}" for name, value in pairs)
    how = f"in the place of {named} in" if named else "into"
    return f"write {wanted} {how} the options in {where(target)}"


def _own(target: Target) -> Options:
    """Return the options of the line that asks for a mount, without what nfsmount.conf adds."""
    return parse_options(target.request.options if target.request else "")


def wrong_security(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of Azure Files without sec=sys among their flavours."""
    for target in filter(is_azure_files, facts.nfs):
        flavours = (target.options.get("sec") or "sys").split(":")
        if "sys" not in flavours and FLAVOURS.issuperset(flavours):
            yield Fault(
                target.subject,
                f"sec={':'.join(flavours)} is asked for, and Azure Files over NFS knows only sec=sys: "
                "it has neither Kerberos nor identities",
                observed=f"sec={':'.join(flavours)}",
                expected="sec=sys",
                remedy=f"write sec=sys into the options in {where(target)}{again(target)}",
            )


def small_transfers(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of Azure Files with an rsize or wsize below 1 MiB; one of 0 means the server's own."""
    for target in filter(is_azure_files, facts.nfs):
        sizes = _sizes(target)
        low = {name: size for name, size in sizes.items() if 0 < size < _AZURE_TRANSFER}
        if low:
            yield Fault(
                target.subject,
                f"{_listed(low)}: a request carries less than the {_AZURE_TRANSFER} bytes that Azure Files "
                "takes, so that the same data need more of them",
                observed=_listed(low),
                expected=f"{_AZURE_TRANSFER}",
                remedy=f"write rsize={_AZURE_TRANSFER},wsize={_AZURE_TRANSFER} into the options in "
                f"{where(target)}{again(target)}",
            )


def large_transfers(facts: Facts) -> Iterator[Fault]:
    """Yield mounts with an rsize or wsize above what their profile allows (Azure NetApp Files: 262144)."""
    for target in facts.nfs:
        most = target.profile.rsize_max
        high = {name: size for name, size in _sizes(target).items() if most is not None and size > most}
        if high:
            yield Fault(
                target.subject,
                f"{_listed(high)} is above {most}, the most that the profile {target.profile.name} "
                "allows, and the vendor measured with no larger requests",
                observed=_listed(high),
                expected=f"at most {most}",
                remedy=f"write rsize={most},wsize={most} into the options in {where(target)}" + again(target),
            )


def reserved_port(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of Azure Files without noresvport on kernels whose reconnect needs it."""
    kernel = facts.snapshot.kernel
    if kernel is None or kernel.version >= _RESVPORT_MENDED:
        return
    for target in filter(is_azure_files, facts.nfs):
        if last_of(target.options, "resvport", "noresvport") != "noresvport":
            yield Fault(
                target.subject,
                f"noresvport is missing, and kernels before 5.18 (this is {kernel.text}) reconnect from the "
                "same port after the network failed, which can keep the share away",
                observed="resvport",
                expected="noresvport",
                remedy=f"add noresvport to the options in {where(target)}{again(target)}",
            )


def short_cache(facts: Facts) -> Iterator[Fault]:
    """Yield mounts that keep attributes for less time than their profile asks for."""
    for target in facts.nfs:
        least = target.profile.actimeo_min
        times = cache_times(target.options)
        low = {name: seconds for name, seconds in times.items() if least is not None and seconds < least}
        if low:
            mended = _cached(target, least, low)
            yield Fault(
                target.subject,
                f"attributes are cached for less than {least} s ({_listed(low)}): the server is asked for "
                "them again while a directory is still being read",
                observed=_noac(target) or _listed(low),
                expected=f"actimeo={least} or more",
                remedy=f"{mended}{again(target)}; keep it where other clients' changes must be seen sooner",
            )


def _cached(target: Target, least: int | None, low: Iterable[str]) -> str:
    """Return how a longer time comes into the options; beside noac none counts.

    nfsmount.conf puts what it has behind the mount's own options.
    """
    noac = _noac(target)
    added = out_of_conf(target, *low, noac)
    own = noac and not out_of_conf(target, noac)
    change = (
        f"write actimeo={least} in the place of {noac} in" if own else f"add actimeo={least} at the end of"
    )
    return f"{added and f'{added}, and '}{change} the options in {where(target)}"


def _noac(target: Target) -> str:
    noac = "noac"
    return noac if last_of(target.options, "ac", noac) == noac else ""


def soft_mount(facts: Facts) -> Iterator[Fault]:
    """Yield mounts whose requests fail after a time instead of waiting for the server."""
    for target in facts.nfs:
        how = last_of(target.options, "hard", "soft", "softerr")
        if how in {"soft", "softerr"}:
            mended = out_of_conf(target, how) or f"replace {how} by hard in the options in {where(target)}"
            yield Fault(
                target.subject,
                f"{how}: when the server does not answer in time, programs get an error in the middle of "
                "their work, and what they wrote may be lost without their knowing",
                observed=how,
                expected="hard",
                remedy=f"{mended}{again(target)}",
            )


def _sizes(target: Target) -> dict[str, int]:
    sizes = {name: target.options.number(name) for name in ("rsize", "wsize")}
    return {name: size for name, size in sizes.items() if size is not None}


def _listed(values: dict[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _state(target: Target) -> str:
    return "mount has" if target.live is not None else "entry asks for"
