"""`apply --live` over a host of tests/hosts, whose connections are those of a model of the kernel.

`python -m tests.cli.living TREE FORMAT` runs it in a process of its own, for a terminal. With one word more,
somebody else adds a connection while it asks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nfstuned.app.change import Wish
from nfstuned.app.groups import GroupWish, LiveWay
from nfstuned.cli.apply import ALL, change, normalised_point
from nfstuned.host.change.live import SunrpcGround
from nfstuned.host.root import Root, WitnessRoot
from nfstuned.model.connections import ConnectionHands, LivePlan, Switches
from nfstuned.model.facts import Network
from nfstuned.model.kernel import MountNode
from tests.check.hosts import Told, load
from tests.core.living import Sunrpc
from tests.host.switches import connect

BASE = "nconnect-first-mount-v41"
DEVICES = ("0:46", "0:47")


@dataclass
class Ground:
    """What a host is beyond the files that every command reads; its connections are files all the same."""

    tree: Path
    kernel: Sunrpc
    refusal: str = ""
    before_looking: Callable[[], None] = lambda: None
    looks: int = 0
    plans: list[LivePlan] = field(default_factory=list)

    def obstacle(self) -> str:
        return self.refusal

    def nodes(self) -> tuple[MountNode, ...]:
        return SunrpcGround(Root(str(self.tree))).nodes()

    def switches(self, devices: frozenset[str]) -> Switches:
        if self.looks:
            self.before_looking()
        self.looks += 1
        return SunrpcGround(Root(str(self.tree))).switches(devices)

    def hands(self, plan: LivePlan, signals: Sequence[int]) -> ConnectionHands:
        assert not signals
        self.plans.append(plan)
        for line, name in zip(self.kernel.lines, sorted(plan.switch.names), strict=True):
            line.name = name
        return self.kernel


@dataclass
class Living:
    """A host on disk, its ground, and what the network says."""

    tree: Path
    ground: Ground
    network: Network

    def run(self, point: str = ALL, form: str = "text", *, dry_run: bool = False, yes: bool = False) -> int:
        """Run the command; return its exit status."""
        root, group = WitnessRoot(str(self.tree)), GroupWish(normalised_point(point), dry_run)
        wish, told = Wish(dry_run=dry_run, yes=yes), Told(self.network)
        return change(root, form, wish, lambda host: LiveWay(host, group, self.ground), told)

    def change(self, file: str, old: str, new: str) -> None:
        """Replace a text in a file, which must be there."""
        path = self.tree / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


def prepare(tree: Path, fails: Callable[[str, str], str] = lambda _step, _name: "") -> Living:
    """Build a host whose two mounts share two connections; the second one's line asks for four."""
    here = existing(load(BASE).build(tree), fails)
    # The kernel shows both so where the first mount was made with nconnect=2 and noresvport.
    here.change("proc/1/mountinfo", "proto=tcp", "proto=tcp,nconnect=2,noresvport")
    (tree / "proc/sys/kernel/osrelease").write_text("7.2.12+deb13-cloud-amd64\n")
    stats = tree / "proc/1/mountstats"
    lines = stats.read_text().splitlines(keepends=True)
    stats.write_text("".join(line * 2 if line.startswith("\txprt:") else line for line in lines))
    connect(tree, *DEVICES)
    return here


def existing(tree: Path, fails: Callable[[str, str], str] = lambda _step, _name: "") -> Living:
    """Return a host that was built already."""
    return Living(tree, Ground(tree, Sunrpc(fails=fails)), load(BASE).network)


def _another(host: Living) -> None:
    """Let somebody else add a connection."""
    connect(host.tree, count=3)


if __name__ == "__main__":
    here = existing(Path(sys.argv[1]))
    if len(sys.argv) > len(("program", "TREE", "FORMAT")):
        here.ground.before_looking = lambda: _another(here)
    sys.exit(here.run(form=sys.argv[2]))
