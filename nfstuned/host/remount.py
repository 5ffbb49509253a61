"""Unmounting and mounting by the tools of the system, and the users of a mount. Nothing here touches a mount.

The success of a tool proves nothing: mountinfo shows the result. Users are known by the mount that a file was
opened on (fdinfo) and the device that it is mapped from (maps), not by its name; psutil would stat(2) each
name, which hangs on a dead server. Only a working directory and a root have nothing but a name, which the
kernel prints without asking the server.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from nfstuned.host.network.reach import Place, ping, reach
from nfstuned.host.observe import observe_servers, observe_volumes
from nfstuned.host.read_ahead import identity
from nfstuned.host.root import Root
from nfstuned.host.tools import SYSTEMCTL_S, observe_states, run_tool
from nfstuned.model.change import (
    RELOAD,
    Argv,
    BusyUse,
    Connections,
    Hands,
    Part,
    PathUse,
    RemountPlan,
    Sight,
    Space,
)
from nfstuned.model.kernel import Mount, MountNode, Volume
from nfstuned.model.system import Reachable
from nfstuned.parse.fields import below, shell_line
from nfstuned.parse.proc.mounts import node_at, parse_mountinfo, parse_nodes, parse_volumes
from nfstuned.parse.proc.processes import (
    parse_exports,
    parse_layers,
    parse_mapped,
    parse_mount_id,
    parse_swaps,
    parse_unix,
)

REMOUNT_LOCK = "run/nfstuned/remount.lock"
UMOUNT_S = 60.0
"""It first writes all data that has not reached the server yet."""
MOUNT_S = 120.0
"""As long as mount.nfs itself tries; systemd gives up after 90 s."""
GONE_S = 10.0
"""Requests under way hold a superblock for a moment longer than its last mount."""
PATIENCE_S = 10.0
"""How long a server that stopped to answer is waited for, once for all mounts."""
ANSWER_S = 5.0
"""A server that takes longer for a request that does nothing is as good as dead to whoever waits for it."""
ANOTHER_MOUNT = "meanwhile another mount is there, or none"
"""Why nothing is done to a mount that is not the plan's."""
_STEP_S = 0.1
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class MountGround:
    """This host, as a remount needs it (app.nconnect.RemountGround)."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def obstacle(self) -> str:
        """Return why nothing at all can be unmounted from here; "" where it can."""
        if os.geteuid() != 0:
            return "only root can unmount, and see all users of a mount"
        return foreign_namespace(self._root)

    def nodes(self) -> tuple[MountNode, ...]:
        """Return all mounts of this mount namespace."""
        return mount_nodes(self._root)

    def sight(self, devices: frozenset[str], units: Sequence[str]) -> Sight:
        """Return who uses these superblocks, and the states of these units."""
        nodes, systemd = self.nodes(), self._root.exists("run/systemd/system")
        holders, rows = Holders(self._root, nodes), parse_volumes(observe_volumes(self._root))
        return Sight(
            nodes=nodes,
            spaces=holders.spaces(),
            uses=holders.uses(devices),
            paths=path_uses(self._root, nodes),
            volumes=frozenset(row.device for row in rows if isinstance(row, Volume)),
            systemd=systemd,
            units=observe_states(units) if systemd and units else {},
        )

    def hands(self, places: Sequence[Place], signals: Sequence[int]) -> Hands:
        """Return the calls for a plan; `places` must open, and `signals` grows when it is to end."""
        return MountHands(self._root, places, signals)


def foreign_namespace(root: Root) -> str:
    """Return which namespace keeps mounts and connections of the host out of reach; "" where none does."""
    for name, content in (("mnt", "mounts"), ("net", "connections")):
        if root.inode(f"proc/self/ns/{name}") != root.inode(f"proc/1/ns/{name}"):
            return (
                f"process 1 has other {content} than this process (a container?): run it on the host itself"
            )
    return ""


def mount_nodes(root: Root) -> tuple[MountNode, ...]:
    """Return all mounts of this mount namespace."""
    return parse_nodes(root.read_or_empty(f"{root.view}/mountinfo"))


def interruption(signals: Sequence[int]) -> str:
    """Return which of the signals came first, as a reason to end; "" without any."""
    return f"interrupted by {signal.Signals(signals[0]).name}" if signals else ""


@contextmanager
def uninterrupted() -> Iterator[list[int]]:
    """Note signals that would end this process while mounts are away; each is one more in the list."""
    seen: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        seen.append(number)

    before = {number: signal.signal(number, note) for number in _SIGNALS}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class MountHands:
    """The tools of this host. They do nothing while the server does not answer.

    Of its `places` the first must answer as an NFS server; where that is the end of a tunnel, the others
    must open.
    """

    def __init__(self, root: Root, places: Sequence[Place], signals: Sequence[int]) -> None:
        self._root = root
        self._places = tuple(places)
        self._signals = signals
        self._patience_s = PATIENCE_S

    def reload(self, plan: RemountPlan) -> str:
        """Let systemd read its files, and look at the units afterwards."""
        if problem := run_tool(RELOAD, SYSTEMCTL_S).problem:
            return f"{shell_line(RELOAD)}: {problem}"
        names = [part.unit for part in plan.going if part.unit]
        states = observe_states(names)
        for name in names:
            state = states.get(name)
            if state is None or not state.fragment:
                return f"{name}: systemd makes no unit from the line that asks for it"
            if state.objection:
                return f"{name} {state.objection}"
        return ""

    def unmount(self, part: Part) -> str:
        """Unmount it, unless a signal came or the server no longer answers."""
        if why := interruption(self._signals):
            return why
        mount = self._mount(part.point)
        if mount is None or mount.mount_id != part.mount_id:
            return ANOTHER_MOUNT
        return self._silent() or run_tool(part.leave, UMOUNT_S).problem

    def mount(self, command: Argv) -> str:
        """Mount by this command, unless the server does not answer."""
        while silent := self._silent():
            if self._patience_s <= 0:
                return silent
            started = time.monotonic()
            time.sleep(1)
            self._patience_s -= time.monotonic() - started
        return run_tool(command, MOUNT_S).problem

    def mounted(self, point: str) -> bool:
        """Return whether an NFS mount is there."""
        return self._mount(point) is not None

    def nconnect(self, point: str) -> int | None:
        """Return the number of connections in effect; None where nothing is mounted."""
        mount = self._mount(point)
        return None if mount is None else mount.options.number("nconnect") or 1

    def held(self, plan: RemountPlan) -> str:
        """Return the use that keeps the connections also after a while; "" where they are gone."""
        end = time.monotonic() + GONE_S
        while (why := self._held(plan.connections)) and time.monotonic() < end:
            time.sleep(_STEP_S)
        return why

    def _held(self, known: Connections) -> str:
        left = [device for device, inode in known.superblocks if identity(self._root, device) == inode]
        if left:
            return f"something still uses {', '.join(left)}, and its connections with it"
        mine = (known.version, known.address, known.port)
        rows = observe_servers(self._root)
        clients = sum(1 for row in rows if (row.version, row.address, row.port) == mine)
        if known.clients and clients >= known.clients:
            return f"something still uses the connections to {known.address} port {known.port}"
        return ""

    def _silent(self) -> str:
        """Return which server does not answer; "" where all do."""
        attempts = {
            (attempt.address, attempt.port): attempt for attempt in reach([[p] for p in self._places])
        }
        for place in self._places:
            attempt = attempts.get(place)
            if attempt is None or attempt.state is not Reachable.OPEN:
                why = "not tried" if attempt is None else attempt.detail or attempt.state.value
                return f"{place[0]} port {place[1]}: {why}"
        return ping(self._places[0], ANSWER_S) if self._places else ""

    def _mount(self, point: str) -> Mount | None:
        text = self._root.read_or_empty(f"{self._root.view}/mountinfo")
        mounts = (
            mount for mount in parse_mountinfo(text) if isinstance(mount, Mount) and mount.point == point
        )
        return next(iter(reversed(list(mounts))), None)


_PLACES = (("cwd", "has its working directory"), ("root", "has its root directory"))
_EXPORTS = ("proc/fs/nfsd/exports", "var/lib/nfs/etab")
_NETWORK = ("nfs", "nfs4", "cifs", "smb3")


@dataclass(slots=True, eq=False)
class _Process:
    """A process: its number, name and mount namespace."""

    pid: int
    name: str
    space: int

    @property
    def title(self) -> str:
        return f"{self.name} ({self.pid})"


@dataclass(slots=True, eq=False)
class Holders:
    """All processes and mount namespaces of a host, as they are when this is made."""

    root: Root
    nodes: tuple[MountNode, ...]
    """The mounts of this namespace."""
    _processes: list[_Process] = field(default_factory=list)
    _spaces: dict[int, tuple[str, tuple[MountNode, ...]]] = field(default_factory=dict)
    _own: int = 0

    def __post_init__(self) -> None:
        self._own = self._space("self")
        import psutil  # noqa: PLC0415 - nothing else needs it

        for entry in psutil.process_iter(["name"]):
            process = _Process(entry.pid, entry.info["name"] or "?", self._space(str(entry.pid)))
            self._processes.append(process)
            if process.space not in self._spaces:
                nodes = parse_nodes(self.root.read_or_empty(f"proc/{entry.pid}/mountinfo"))
                self._spaces[process.space] = (process.title, nodes)

    def spaces(self) -> tuple[Space, ...]:
        """Return the other mount namespaces that some process lives in."""
        others = (space for number, space in self._spaces.items() if number != self._own)
        return tuple(Space(process, nodes) for process, nodes in others if nodes)

    def uses(self, devices: frozenset[str]) -> tuple[BusyUse, ...]:
        """Return the uses of these superblocks by processes."""
        everywhere = [*self.nodes, *(node for _, nodes in self._spaces.values() for node in nodes)]
        ids = {node.mount_id: node.device for node in everywhere if node.device in devices}
        return tuple(use for process in self._processes for use in self._of(process, ids, devices))

    def _of(self, process: _Process, ids: dict[int, str], devices: frozenset[str]) -> Iterator[BusyUse]:
        folder = f"proc/{process.pid}"
        nodes = self.nodes if process.space == self._own else self._spaces[process.space][1]
        for link, use in _PLACES:
            path = self.root.link(f"{folder}/{link}")
            node = node_at(path, nodes) if path else None
            if node is not None and node.device in devices:
                yield BusyUse(node.device, f"{process.title} {use} at {path}")
        for number in self.root.names(f"{folder}/fd"):
            opened = ids.get(parse_mount_id(self.root.read_or_empty(f"{folder}/fdinfo/{number}")) or 0)
            if opened:
                yield BusyUse(opened, f"{process.title} has {self.root.link(f'{folder}/fd/{number}')} open")
        for device, path in parse_mapped(self.root.read_or_empty(f"{folder}/maps")).items():
            if device in devices:
                yield BusyUse(device, f"{process.title} has {path} mapped")

    def _space(self, pid: str) -> int:
        """Return the number of a process's mount namespace; 0 where it is gone."""
        try:
            return os.stat(self.root.path(f"proc/{pid}/ns/mnt")).st_ino
        except OSError:
            return 0


def path_uses(root: Root, nodes: Sequence[MountNode]) -> tuple[PathUse, ...]:
    """Return the kernel's own uses, without a process: swap, loop devices, exports, sockets, overlays."""
    swaps = parse_swaps(root.read_or_empty("proc/swaps"))
    loops = {
        name: root.read_or_empty(f"sys/block/{name}/loop/backing_file").strip("\n")
        for name in root.names("sys/block")
    }
    mounted = [node.point for node in nodes if node.fstype in _NETWORK]
    exports = [name for name in _EXPORTS if not below("/" + name, mounted)]
    exported = dict.fromkeys(path for name in exports for path in parse_exports(root.read_or_empty(name)))
    overlays = [node for node in nodes if node.fstype == "overlay"]
    return (
        *(PathUse(path, f"{path} is swapped to") for path in swaps),
        *(PathUse(path, f"/dev/{name} is made from {path}") for name, path in loops.items() if path),
        *(PathUse(path, f"this host's NFS server exports {path}") for path in exported),
        *(
            PathUse(path, f"a socket is bound to {path}")
            for path in parse_unix(root.read_or_empty(f"{root.view}/net/unix"))
        ),
        *(
            PathUse(path, f"the overlay at {node.point} is made of {path}")
            for node in overlays
            for path in parse_layers(node.options)
        ),
    )
