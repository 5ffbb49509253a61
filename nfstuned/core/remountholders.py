"""Who keeps the superblocks of a group: processes, what no process shows, and other mount namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from nfstuned.core.remountcase import Case
from nfstuned.model.remount import Node, Space
from nfstuned.parse.mountinfo import node_at

_MOST = 5
"""More would hide the rest of the line; who unmounts them all sees the others the next time."""


def users(case: Case) -> str:
    """Return who uses the mounts of a group, "" for nobody."""
    by_path = (
        use.what
        for use in case.sight.paths
        if (node := node_at(use.path, case.sight.nodes)) is not None and node.device in case.devices
    )
    by_device = (use.what for use in case.sight.uses if use.device in case.devices)
    found = list(dict.fromkeys((*by_device, *by_path)))
    rest = len(found) - _MOST
    more = f"; and {rest} more" if rest > 0 else ""
    return f"in use: {'; '.join(found[:_MOST])}{more}" if found else ""


def hidden(case: Case) -> str:
    """Return superblocks of the same server that no mount shows: they keep the connections."""
    mine = {
        (one.superblock.volume.version, one.superblock.volume.address, one.superblock.volume.port)
        for one in case.group
        if one.superblock is not None and one.superblock.volume is not None
    }
    spaces = [one.superblock.servers for one in case.group if one.superblock is not None]
    found = [
        block.device
        for block in case.facts.snapshot.superblocks
        if not block.mounts
        and block.volume is not None
        and (block.volume.version, block.volume.address, block.volume.port) in mine
        and block.servers in spaces
    ]
    if not found:
        return ""
    return (
        f"{', '.join(found)} of the same server is still in use without a mount, which umount -l left behind"
    )


def elsewhere(case: Case) -> str:
    """Return the mount namespaces that have a mount of the group which does not vanish with this one's."""
    groups = _receiving(case)
    found = [
        f"{space.process} has {node.point} in a mount namespace of its own"
        for space in case.sight.spaces
        for node in _private(space, case.devices, groups)
    ]
    if not found:
        return ""
    return f"in use: {found[0]}" + (f", and {len(found) - 1} more are like it" if len(found) > 1 else "")


def _receiving(case: Case) -> frozenset[int]:
    """Return the peer groups in which an unmounting of the parts is seen: it happens in the outer mount."""
    known = {node.mount_id: node for node in case.sight.nodes}
    nodes = (node for target in case.parts if (node := case.node(target)) is not None)
    outer = (known.get(node.parent_id) for node in nodes)
    found = {node.shared for node in outer if node is not None and node.shared is not None}
    everywhere = [node for space in case.sight.spaces for node in space.nodes]
    return frozenset(_with_slaves(found, (*everywhere, *case.sight.nodes)))


def _with_slaves(found: set[int], nodes: Iterable[Node]) -> set[int]:
    """Return peer groups with those that receive from them, and from these in turn."""
    slaves = [
        (node.master, node.shared) for node in nodes if node.master is not None and node.shared is not None
    ]
    more = True
    while more:
        new = {shared for master, shared in slaves if master in found} - found
        found, more = found | new, bool(new)
    return found


def _private(space: Space, devices: frozenset[str], groups: frozenset[int]) -> Iterator[Node]:
    known = {node.mount_id: node for node in space.nodes}
    for node in space.nodes:
        if node.device in devices and not _vanishes(node, known, devices, groups):
            yield node


def _vanishes(node: Node, known: Mapping[int, Node], devices: frozenset[str], groups: frozenset[int]) -> bool:
    """Return whether a mount goes with the one of this namespace: the outer one receives from there."""
    parent = known.get(node.parent_id)
    if parent is None:
        return False
    if parent.shared in groups or parent.master in groups:
        return True
    # What the kernel mounted within one of them goes with that.
    return parent.device in devices and parent is not node and _vanishes(parent, known, devices, groups)
