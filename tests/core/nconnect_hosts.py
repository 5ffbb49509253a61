"""Hosts for the rules about nconnect: mounts as the kernel shows them, beside what utab and fstab ask for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nfstuned.app.facts import Scope
from nfstuned.core.mounts.targets import targets
from nfstuned.core.rules.catalogue import RULES
from nfstuned.host.config import builtin_policy
from nfstuned.model import kernel
from nfstuned.model.facts import Facts, Fault, Target
from nfstuned.model.mounts import UTAB, Request, Snapshot, Superblock
from nfstuned.model.policy import Assignment, Match, Policy, Profile
from nfstuned.model.system import Answer, Network

AZURE = "sa1.file.core.windows.net"
NAS, NAS_ADDRESS = "nas", "10.0.0.5"
POLICY = Policy(
    profiles=(
        Profile("azure-files", nconnect=4, nconnect_max=4),
        Profile("azure-netapp-files", nconnect=8, nconnect_max=16),
        Profile("generic"),
    ),
    assignments=(Assignment(Match(server=("10.9.0.0/16",)), "azure-netapp-files", "policy 1"),),
    providers=builtin_policy().providers,
)
KERNEL = kernel.KernelRelease((6, 12, 0), "6.12.0")
DEBIAN = kernel.Distribution("debian", "12", "Debian")
LIVE = Scope().has


@dataclass(frozen=True)
class Made:
    """One live mount: what the kernel shows, and what utab says was asked for."""

    point: str
    asked: str | None = ""
    shown: str = ""
    source: str = f"{NAS}:/srv"
    age_s: int | None = None
    fstab: str | None = None
    space: str = "nas"
    at: str = NAS_ADDRESS
    connections: int = 1
    flags: str = "rw,relatime"
    port: int | None = None
    """The client's; None for the one that the options show."""


def facts(*made: Made, lines: tuple[str, ...] = (), **changes: object) -> Facts:
    """Return the facts of a host with these mounts, and these lines of fstab from 100 on."""
    superblocks, stats, utab, fstab = [], [], [], []
    for number, one in enumerate(made):
        device = f"0:{50 + number}"
        shown = kernel.parse_options(f"{one.shown or 'vers=4.1,proto=tcp'},addr={one.at}")
        mount = kernel.Mount(60 + number, 27, device, "/", one.point, "nfs4", one.source, shown, one.flags)
        space = (kernel.NfsClient(4, one.at, 2049, 2, one.space),)
        volume = kernel.Volume(4, one.at, one.port or shown.number("port") or 2049, device, "0:0")
        superblocks.append(Superblock(device, number, 128, (mount,), volume, space))
        transports = (kernel.Transport("tcp", None, 1, 0, 9, 9, 0, 9, 0),) * one.connections
        stanza = kernel.MountStats(one.source, one.point, "nfs4", "1.1", one.age_s, transports=transports)
        stats.append(stanza)
        if one.asked is not None:
            utab.append(Request(one.source, one.point, one.asked or "rw", UTAB, number + 1))
        if one.fstab is not None:
            fstab.append(Request(one.source, one.point, one.fstab, "/etc/fstab", number + 1))
    for number, line in enumerate(lines, 100):
        source, point, options = line.split()
        fstab.append(Request(source, point, options, "/etc/fstab", number))
    seen = Snapshot(tuple(superblocks), stats=tuple(stats), requests=(*utab, *fstab))
    snapshot = replace(seen, kernel=KERNEL, distribution=DEBIAN)
    found = Facts(LIVE, snapshot, POLICY, targets(snapshot, POLICY))
    return replace(found, **changes)  # type: ignore[arg-type]  # keyword arguments of any field


def on_host(found: Facts, **changes: object) -> Facts:
    """Return a host with another snapshot, and its mounts as they follow from that."""
    snapshot = replace(found.snapshot, **changes)  # type: ignore[arg-type]  # keyword arguments of any field
    return replace(found, snapshot=snapshot, targets=targets(snapshot, found.policy))


def answered(host: str, address: str, *chain: str) -> Network:
    return Network(answers=(Answer(host, (address,), chain),))


def faults(rule: str, found: Facts) -> list[Fault]:
    return list(next(one for one in RULES if one.id == rule).judge(found))


def subjects(rule: str, found: Facts) -> list[str]:
    return [fault.subject for fault in faults(rule, found)]


def only(found: Facts) -> Target:
    (target,) = found.targets
    return target
