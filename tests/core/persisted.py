"""Hosts whose servers may get a section of nfstuned's own drop-in, and what is planned for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nfstuned.core.nconnect.persist import DropIn, PersistPlan, plan_persist, section_uses
from nfstuned.model.mounts import FSTAB, PERSISTED, Request, Result, Setting, Snapshot
from nfstuned.model.policy import Policy
from nfstuned.model.system import Network, NfsUtils
from tests.core.fstabs import NETWORK, POLICY, SNAPSHOT

SA1, SA2 = "sa1.file.core.windows.net", "sa2.file.core.windows.net"
PUBLIC = "sapublic.file.core.windows.net"
ANF, ANF2 = "10.1.2.4", "10.1.2.5"
NEW, OLD, OLDEST = NfsUtils((2, 8, 3), True), NfsUtils((2, 6, 2), True), NfsUtils((2, 3, 3), False)
"""Debian 13's, Debian 12's, and one that knows no drop-ins."""


def fstab(*lines: str) -> tuple[Request, ...]:
    """Return entries of fstab from "source point options"."""
    found = []
    for number, line in enumerate(lines, 1):
        source, point, options = line.split()
        found.append(Request(source, point, options, FSTAB, number))
    return tuple(found)


def host(*lines: str, **changes: object) -> Snapshot:
    """Return a host that only fstab asks for mounts on, unless told otherwise."""
    snapshot = replace(SNAPSHOT, requests=fstab(*lines))
    return replace(snapshot, **changes)  # type: ignore[arg-type]  # keyword arguments of any field


def conf(section: str, argument: str | None, value: str, file: str = "/etc/nfsmount.conf") -> Setting:
    """Return an administrator's `nconnect=value`."""
    return Setting(section, argument, "nconnect", value, file, 2)


def ours(sections: Mapping[str, int]) -> tuple[Setting, ...]:
    """Return what mount.nfs and observe read in nfstuned's file."""
    return tuple(
        Setting("server", name, "nconnect", str(count), PERSISTED, number)
        for number, (name, count) in enumerate(sorted(sections.items()), 9)
    )


def planned(  # noqa: PLR0913 - a test names what it is about
    snapshot: Snapshot,
    held: Mapping[str, int] | None = None,
    utils: NfsUtils | None = NEW,
    *,
    prune: bool = False,
    policy: Policy = POLICY,
    network: Network = NETWORK,
) -> PersistPlan:
    found = section_uses(replace(snapshot, settings=(*snapshot.settings, *ours(held or {}))), policy)
    return plan_persist(found, network, utils, DropIn(held or {}, prune))


def after(plan: PersistPlan, held: Mapping[str, int] | None = None) -> dict[str, int]:
    return plan.sections(DropIn(held or {}))


def told(plan: PersistPlan, result: Result = Result.SKIPPED) -> dict[str, str]:
    """Return the reasons by server of what came to a result."""
    return {change.target: change.reason for change in plan.changes if change.result is result}


def said(plan: PersistPlan) -> Sequence[tuple[str, object, object, Result]]:
    """Return all that the plan says but for its reasons."""
    return [(change.target, change.old, change.new, change.result) for change in plan.changes]
