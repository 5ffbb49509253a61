"""Programs that wait uninterruptibly, as for a silent server, and the superblocks that they have files of.

Nothing here waits itself: a task in the kernel may hold the lock of its memory, on which cmdline, environ and
maps wait (fs/proc/base.c), and so none of them is read. The names of links in /proc ask no server.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from nfstuned.host.root import Root
from nfstuned.parse.proc.mountinfo import node_at, parse_nodes
from nfstuned.parse.proc.processes import parse_mount_id, parse_state

_UNINTERRUPTIBLE = "D"
_PLACES = ("cwd", "root")
_MOST_PROCESSES, _MOST_FILES = 100, 100
"""How many of each are looked at."""


def observe_waiters(root: Root, devices: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    """Return by superblock the programs that wait and have files or folders of it: "tar (812)".

    What waits to open its first file there cannot be told from what waits for anything else. Only root sees
    the files of all users' programs.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for pid, name in _waiting(root):
        for device in _devices(root, pid) & devices:
            found[device].append(f"{name} ({pid})")
    return {device: tuple(names) for device, names in found.items()}


def _waiting(root: Root) -> Iterator[tuple[str, str]]:
    """Yield the processes of which a thread waits, the oldest number first."""
    left = _MOST_PROCESSES
    for pid in sorted((name for name in root.names("proc") if name.isdecimal()), key=int):
        for task in root.names(f"proc/{pid}/task"):
            name, state = parse_state(root.read_or_empty(f"proc/{pid}/task/{task}/stat"))
            if state == _UNINTERRUPTIBLE:
                yield pid, name
                left -= 1
                break
        if not left:
            return


def _devices(root: Root, pid: str) -> frozenset[str]:
    """Return the superblocks of what a process has open, and of its folders."""
    nodes = parse_nodes(root.read_or_empty(f"proc/{pid}/mountinfo"))
    by_id = {node.mount_id: node.device for node in nodes}
    opened = (
        by_id.get(parse_mount_id(root.read_or_empty(f"proc/{pid}/fdinfo/{number}")) or 0)
        for number in root.names(f"proc/{pid}/fdinfo")[:_MOST_FILES]
    )
    paths = (root.link(f"proc/{pid}/{place}") for place in _PLACES)
    places = (node_at(path, nodes) for path in paths if path)
    return frozenset(filter(None, (*opened, *(node.device for node in places if node))))
