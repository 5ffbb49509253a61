"""`nconnect remount` over a host of tests/hosts, whose mounts are made again by a model of the kernel.

`python -m tests.cli.remounting TREE FORMAT` runs it in a process of its own, for a terminal. With one word
more, somebody mounts something anew while it asks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nfstuned.app.change import Wish
from nfstuned.app.nconnect import GroupWish, RemountWay
from nfstuned.cli.nconnect import normalised_point, run_change
from nfstuned.host.root import Root
from nfstuned.model.change import BusyUse, Hands, Sight
from nfstuned.model.kernel import Mount, MountNode
from nfstuned.model.mounts import Request, UnitState
from nfstuned.model.system import Network
from nfstuned.parse.etc.requests import parse_fstab
from nfstuned.parse.proc.mounts import parse_mountinfo, parse_nodes
from tests.check.hosts import World, load
from tests.core.nconnect_hosts import Made
from tests.core.remounting import Kernel

NAME = "nconnect-first-mount-v41"
UNIT = UnitState(loaded=True, fragment="/run/systemd/generator/x.mount")


def nothing(_step: str, _point: str) -> str:
    return ""


@dataclass
class Ground:
    """What a host is beyond its files."""

    tree: Path
    kernel: Kernel
    refusal: str = ""
    uses: tuple[BusyUse, ...] = ()
    before_looking: Callable[[], None] = lambda: None
    asked: list[tuple[frozenset[str], tuple[str, ...]]] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)

    def obstacle(self) -> str:
        return self.refusal

    def nodes(self) -> tuple[MountNode, ...]:
        return parse_nodes((self.tree / "proc/1/mountinfo").read_text())

    def sight(self, devices: frozenset[str], units: Sequence[str]) -> Sight:
        self.before_looking()
        self.asked.append((devices, tuple(units)))
        known = dict.fromkeys(units, UNIT)
        return Sight(self.nodes(), uses=self.uses, volumes=devices, systemd=True, units=known)

    def hands(self, places: Sequence[tuple[str, int]], signals: Sequence[int]) -> Hands:
        assert not signals
        self.places.extend(places)
        return self.kernel


@dataclass
class Remounting:
    tree: Path
    ground: Ground
    network: Network

    def run(self, point: str = "", form: str = "text", *, dry_run: bool = False, yes: bool = False) -> int:
        root, group = Root(str(self.tree)), GroupWish(normalised_point(point) if point else None, dry_run)
        wish, told = Wish(dry_run=dry_run, yes=yes), World(self.network)
        return run_change(root, form, wish, lambda host: RemountWay(host, group, self.ground), told)


def prepare(tree: Path, fails: Callable[[str, str], str] = nothing) -> Remounting:
    return existing(load(NAME).build(tree), fails)


def existing(tree: Path, fails: Callable[[str, str], str] = nothing) -> Remounting:
    rows = parse_fstab((tree / "etc/fstab").read_text())
    lines = {row.point: row.options for row in rows if isinstance(row, Request)}
    text = (tree / "proc/1/mountinfo").read_text()
    mounts = [one for one in parse_mountinfo(text) if isinstance(one, Mount)]
    made = {
        one.point: Made(
            one.point, shown=f"nconnect={one.options.number('nconnect') or 1}", fstab=lines.get(one.point)
        )
        for one in mounts
    }
    return Remounting(tree, Ground(tree, Kernel(made, fails)), load(NAME).network)


def _mounted_anew(host: Remounting) -> None:
    """Let a mount have another number when the host is looked at for the second time."""
    if host.ground.asked:
        table = host.tree / "proc/1/mountinfo"
        table.write_text(table.read_text().replace("\n69 27 ", "\n99 27 "))


if __name__ == "__main__":
    here = existing(Path(sys.argv[1]))
    if len(sys.argv) > len(("program", "TREE", "FORMAT")):
        here.ground.before_looking = lambda: _mounted_anew(here)
    sys.exit(here.run(form=sys.argv[2]))
