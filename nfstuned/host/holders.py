"""The users of superblocks, as /proc and /sys show them, without a look at a mount.

Files are known by the mount they were opened on (fdinfo) and the device that they are mapped from (maps), not
by their names; psutil would stat(2) each name, which hangs on a dead server. Only a working directory and a
root have nothing but a name, which the kernel prints without asking the server.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nfstuned.host.root import Root
from nfstuned.model.kernel import MountNode
from nfstuned.model.remount import BusyUse, PathUse, Space
from nfstuned.parse.fields import below
from nfstuned.parse.proc.mountinfo import node_at, parse_nodes
from nfstuned.parse.proc.processes import (
    parse_exports,
    parse_layers,
    parse_mapped,
    parse_mount_id,
    parse_swaps,
    parse_unix,
)

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
        *(PathUse(path, f"/dev/{name} is made of {path}") for name, path in loops.items() if path),
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
