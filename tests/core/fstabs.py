"""The fstab files of tests/data/fstab, and the answers for the servers in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from nfstuned.core.nconnect.fstab import fstab_users, plan_fstab, with_counts
from nfstuned.host.policy import load_policy
from nfstuned.host.root import Root
from nfstuned.model.change import Change
from nfstuned.model.kernel import KernelRelease
from nfstuned.model.mounts import Result, Snapshot
from nfstuned.model.policy import Assignment, Match, Policy
from nfstuned.model.system import Answer, Network
from tests.host_file import parse_files

FOLDER = Path(__file__).parents[1] / "data/fstab"
FILES = {
    name: file.content for name, file in parse_files((FOLDER / "files.txt").read_text(), "files.txt").items()
}
BUILTIN = load_policy(Root("/nonexistent"))
NETAPP = Assignment(Match(server=("10.1.2.0/24", "10.23.0.0/16")), "azure-netapp-files", "policy 1")
POLICY = replace(BUILTIN, assignments=(NETAPP,))
EVERYWHERE = replace(
    BUILTIN,
    profiles=(*BUILTIN.profiles, replace(BUILTIN.profile("azure-netapp-files"), name="everywhere")),
    assignments=(Assignment(Match(), "everywhere", "policy 1"),),
)
"""Every server, also those of Azure Files by name, gets the numbers of Azure NetApp Files."""
SNAPSHOT = Snapshot(kernel=KernelRelease((6, 12, 0), "6.12.0"))


def private(host: str, address: str) -> Answer:
    return Answer(host, (address,), (host.replace(".", ".privatelink.", 1),))


NETWORK = Network(
    answers=(
        private("sa1.file.core.windows.net", "10.10.10.10"),
        private("sa2.file.core.windows.net", "10.10.10.11"),
        private("sa1.file.core.usgovcloudapi.net", "10.10.10.12"),
        private("sa2.file.core.chinacloudapi.cn", "10.10.10.13"),
        private("fs-vlmjh6.z22.file.storage.azure.net", "10.10.10.14"),
        Answer(
            "sapublic.file.core.windows.net",
            ("52.239.238.8",),
            ("file.xyz1prdstr01a.store.core.windows.net",),
        ),
        Answer("sagone.file.core.windows.net", (), error="NXDOMAIN"),
    )
)


@dataclass(frozen=True)
class Edited:
    text: str
    changes: tuple[Change, ...]
    counts: Mapping[int, int]

    @property
    def skipped(self) -> dict[int, str]:
        """The lines that were left, and why."""
        return {
            int(change.target.rpartition(":")[2]): change.reason
            for change in self.changes
            if change.result is not Result.PLANNED
        }


def edited(
    text: str, policy: Policy = POLICY, snapshot: Snapshot = SNAPSHOT, network: Network = NETWORK
) -> Edited:
    plan = plan_fstab(fstab_users(text, snapshot, policy), network)
    return Edited(with_counts(text, plan.counts), plan.changes, plan.counts)


def decoded(name: str) -> str:
    return FILES[name].decode("utf-8", "surrogateescape")
