"""Hosts whose mounts are to be made again, and a model of a kernel that does it: the first mount decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from nfstuned.core.nconnect.remount import cases, plan_remount
from nfstuned.model.change import Argv, LeftGroup, Part, RemountPlan, Sight
from nfstuned.model.facts import Facts
from nfstuned.model.kernel import MountNode, parse_options
from nfstuned.model.mounts import UnitState
from nfstuned.parse.etc.units import unit_path
from nfstuned.parse.fields import shell_line, unit_name
from tests.core.nconnect_hosts import Made, facts

ROOT = MountNode(27, 1, "8:1", "/", "ext4", "/dev/vda1", "rw", shared=1)


def tree(found: Facts) -> tuple[MountNode, ...]:
    """Return the mounts of a host as mountinfo has them, each in the innermost one around it."""
    nodes = [ROOT]
    for target in sorted(found.nfs, key=lambda one: one.point):
        if target.live is None:
            continue
        mount = target.live
        outer = [node for node in nodes if mount.point.startswith(node.point.rstrip("/") + "/")]
        parent = max(outer, key=lambda node: len(node.point))
        number, point = mount.mount_id, mount.point
        node = MountNode(number, parent.mount_id, mount.device, point, "nfs4", mount.source, "rw")
        nodes.append(node._replace(shared=100 + number))
    return tuple(nodes)


def sight(found: Facts, *, systemd: bool = True, **changes: object) -> Sight:
    """Return what is seen of a host where nobody uses anything."""
    units = {
        unit_name(target.point): UnitState(loaded=True, fragment="/run/systemd/generator/x.mount")
        for target in found.nfs
        if target.request is not None
    }
    volumes = frozenset(block.device for block in found.snapshot.superblocks if block.volume is not None)
    seen = Sight(nodes=tree(found), volumes=volumes, systemd=systemd, units=units)
    return replace(seen, **changes)  # type: ignore[arg-type]  # keyword arguments of any field


def planned(found: Facts, seen: Sight | None = None, at: str | None = None) -> list[RemountPlan | LeftGroup]:
    return [plan_remount(case) for case in cases(found, seen or sight(found), at)]


def the_plan(*made: Made, seen: Sight | None = None) -> RemountPlan:
    """Return the plan of the one group of a host with these mounts."""
    return plan_of(facts(*made), seen)


def why(*made: Made, seen: Sight | None = None) -> str:
    """Return why a host's one group is left alone."""
    return left_alone(facts(*made), seen).reason


def left_alone(found: Facts, seen: Sight | None = None) -> LeftGroup:
    (left,) = planned(found, seen)
    assert isinstance(left, LeftGroup), left
    return left


def plan_of(found: Facts, seen: Sight | None = None, point: str | None = None) -> RemountPlan:
    (plan,) = planned(found, seen, point)
    assert isinstance(plan, RemountPlan), plan
    return plan


def argv(ways: Sequence[Argv]) -> list[str]:
    return [shell_line(way) for way in ways]


@dataclass
class Kernel:
    """The mounts of one server. `fails` is asked before each step: "", or how the step goes wrong.

    "refused": it says so and does nothing. "silent": it says nothing and does nothing. "late": it says that
    it failed, and has done it.
    """

    made: dict[str, Made]
    fails: Callable[[str, str], str] = lambda _step, _point: ""
    mounts: dict[str, int] = field(default_factory=dict)
    count: int = 1
    """The connections of the group as long as there is a mount."""
    calls: list[str] = field(default_factory=list)
    kept: bool = False
    """Something that no mount shows holds the connections."""

    def __post_init__(self) -> None:
        first = parse_options(next(iter(self.made.values())).shown).number("nconnect") or 1
        self.count = first
        self.mounts = dict.fromkeys(self.made, first)

    def reload(self, plan: RemountPlan) -> str:
        assert plan.reload
        return self._step("reload", "", lambda: None)

    def unmount(self, part: Part) -> str:
        point = unit_path(part.leave[-1]) if part.unit else part.leave[-1]
        assert point == part.point
        assert not list(self._inner(point)), "busy: something is mounted in it"
        return self._step("unmount", point, lambda: self.mounts.pop(point))

    def mount(self, command: Argv) -> str:
        point, options = self._asked(command)
        assert point in self.made, "never a mount that was not there"
        assert point not in self.mounts, "it would lie on top of itself"
        outer = [one for one in self.made if point.startswith(f"{one}/")]
        assert all(one in self.mounts for one in outer), "it would lie below what it lies in"
        return self._step("mount", point, lambda: self._make(point, options))

    def mounted(self, point: str) -> bool:
        return point in self.mounts

    def held(self, plan: RemountPlan) -> str:
        del plan
        said = self._step("held", "", lambda: None)
        self.kept = self.kept or bool(said)
        return said or ("something holds it" if self.mounts else "")

    def nconnect(self, point: str) -> int | None:
        return self.mounts.get(point)

    def _step(self, step: str, point: str, do: Callable[[], object]) -> str:
        self.calls.append(f"{step} {point}".strip())
        how = self.fails(step, point)
        if how in {"", "late"}:
            do()
        return "" if how in {"", "silent"} else f"{step} refused"

    def _make(self, point: str, options: str) -> None:
        if not self.mounts and not self.kept:
            self.count = parse_options(options).number("nconnect") or 1
        self.mounts[point] = self.count

    def _inner(self, point: str) -> Iterator[str]:
        return (one for one in self.mounts if one.startswith(f"{point}/"))

    def _asked(self, way: Argv) -> tuple[str, str]:
        words = way
        if words[:2] == ("systemctl", "start"):
            point = unit_path(words[-1])
            return point, self.made[point].fstab or ""
        assert words[0] == "mount"
        if "-o" not in words:
            return words[-1], self.made[words[-1]].fstab or ""
        assert "addr=" not in words[words.index("-o") + 1]
        return words[-1], words[words.index("-o") + 1]
