"""The reasons against unmounting a transport group: processes, other namespaces, a silent server."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nfstuned.core.mounts.options import has_kerberos
from nfstuned.core.mounts.targets import made_by
from nfstuned.core.nconnect.first_mount import unseen_superblocks
from nfstuned.core.nconnect.server import hard_objection
from nfstuned.core.nconnect.transport import is_tunnel, was_recorded
from nfstuned.core.policy.endpoint import as_address, is_loopback
from nfstuned.model.change import Sight
from nfstuned.model.facts import Facts, Target
from nfstuned.model.kernel import NFS_PORT, MountNode
from nfstuned.model.mounts import Maker
from nfstuned.model.system import Network, Reachable
from nfstuned.parse.fields import count, some, unit_name
from nfstuned.parse.proc.mounts import node_at

_MOST = 5
"""More would hide the rest of the line; a later run names the others."""


@dataclass(frozen=True, slots=True)
class Goal:
    """The number of connections that a group has, the number that it should have, and why."""

    old: int
    new: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A transport group that is to be mounted again: all its live mounts, and those to unmount and mount."""

    facts: Facts
    sight: Sight
    group: tuple[Target, ...]
    parts: tuple[Target, ...]
    """In this mount namespace, the outermost first."""
    own: tuple[Target, ...]
    """The mounts that the kernel makes where a server has a file system in another; it unmounts them, too."""
    goal: Goal

    @property
    def devices(self) -> frozenset[str]:
        """The superblocks of the group."""
        return frozenset(target.live.device for target in self.group if target.live is not None)

    @property
    def units(self) -> tuple[str, ...]:
        """The names of the mount units that files ask for."""
        return tuple(unit_name(target.point) for target in self.parts if target.request is not None)

    @property
    def nodes(self) -> Mapping[int, MountNode]:
        """The mounts of this mount namespace by their ids."""
        return {node.mount_id: node for node in self.sight.nodes}

    def nodes_of(self, targets: Iterable[Target]) -> list[MountNode]:
        """Return the entries of mounts in mountinfo, where this namespace has them."""
        return [node for target in targets if (node := self.sight.node(target.live)) is not None]

    def remount_obstacle(self) -> str:
        """Return why a group cannot be unmounted and mounted again as it was; "" where it can."""
        checks = (
            *(self._out_of_reach, self._unfit_part, self._not_made_again, self._nested),
            *(self._units, self._users, self._elsewhere, self._unseen),
        )
        return next((why for check in checks if (why := check())), "")

    def _out_of_reach(self) -> str:
        """Return which mounts of a group this process cannot unmount."""
        if any(part.point == "/" for part in self.parts):
            return "the root file system cannot be unmounted"
        here = {target.identity for target in (*self.parts, *self.own)}
        points = [target.point for target in self.group if target.identity not in here]
        if points:
            return f"another mount namespace has a mount of the same connections at {some(points)}"
        points = [
            part.point for part in self.parts if part.live and part.live.device not in self.sight.volumes
        ]
        return f"{some(points)} was mounted in another network namespace" if points else ""

    def _unfit_part(self) -> str:
        """Return why a mount should not have several connections; fewer are always possible."""
        if self.goal.new < self.goal.old:
            return ""
        targets = ((target, hard_objection(target, self.facts)) for target in self.parts)
        return next((f"{target.point}: {why.reason}" for target, why in targets if why is not None), "")

    def _not_made_again(self) -> str:
        """Return which mounts would not come back as they are, because nfstuned cannot make them so."""
        by_hand = [part for part in self.parts if part.request is None]
        points = [part.point for part in by_hand if is_tunnel(part)]
        if points:
            # The helper makes and watches the tunnel.
            return f"{some(points)} goes through a mount helper's tunnel: mount it again with the helper"
        counts = Counter(target.point for target in self.parts)
        points = [point for point, number in counts.items() if number > 1]
        if points:
            return f"several mounts cover each other at {some(points)}"
        points = [part.point for part in by_hand if not was_recorded(part, self.facts)]
        if not points:
            return ""
        return (
            f"the options of {some(points)} are not known (no line in fstab, a unit or /run/mount/utab): "
            "it is a bind mount, or mount(8) did not make it; unmount it first"
        )

    def _nested(self) -> str:
        """Return the other mounts in a mount of the group, or on top of it."""
        known = self.nodes
        mine = {node.mount_id for node in self.nodes_of((*self.parts, *self.own))}
        nodes = [
            node for node in self.sight.nodes if node.mount_id not in mine and _lies_in(node, mine, known)
        ]
        named = [f"{node.point} ({node.fstype})" for node in nodes]
        return f"{some(named)} is mounted there, within or on top: unmount it first" if named else ""

    def _units(self) -> str:
        """Return why systemd cannot just unmount and mount the parts' units; "" without systemd."""
        for name in self.units if self.sight.systemd else ():
            state = self.sight.units.get(name)
            if state is None:
                return f"systemd does not know {name}"
            if state.objection:
                return f"{name} {state.objection}"
        return ""

    def _users(self) -> str:
        """Return who uses the mounts of a group, "" for nobody."""
        by_path = (
            use.text
            for use in self.sight.paths
            if (node := node_at(use.path, self.sight.nodes)) is not None and node.device in self.devices
        )
        by_device = (use.text for use in self.sight.uses if use.device in self.devices)
        texts = list(dict.fromkeys((*by_device, *by_path)))
        rest = len(texts) - _MOST
        more = f"; and {rest} more" if rest > 0 else ""
        return f"in use: {'; '.join(texts[:_MOST])}{more}" if texts else ""

    def _elsewhere(self) -> str:
        """Return the mount namespaces with a mount of the group that does not vanish with this one's."""
        nodes = self.nodes
        places = frozenset(
            posixpath.relpath(node.point, outer.point)
            for node in self.nodes_of(self.parts)
            if (outer := nodes.get(node.parent_id)) is not None
        )
        receivers = Receivers(self._receiving(), places)
        texts = []
        for space in self.sight.spaces:
            known = {node.mount_id: node for node in space.nodes}
            texts += [
                f"{space.process} has {node.point} in a mount namespace of its own"
                for node in space.nodes
                if node.device in self.devices and not _vanishes(node, known, self.devices, receivers)
            ]
        if not texts:
            return ""
        more = f", and {count(len(texts) - 1, 'other mount')} in such namespaces" if len(texts) > 1 else ""
        return f"in use: {texts[0]}{more}"

    def _receiving(self) -> frozenset[int]:
        """Return the peer groups that an unmounting of the parts reaches, by the mounts around the parts."""
        known = self.nodes
        outer = (known.get(node.parent_id) for node in self.nodes_of(self.parts))
        new = {node.shared for node in outer if node is not None and node.shared is not None}
        everywhere = [node for space in self.sight.spaces for node in space.nodes]
        # A slave of one of them receives from it, and a slave of the slave in turn.
        slaves = [
            (node.master, node.shared)
            for node in (*everywhere, *self.sight.nodes)
            if node.master is not None and node.shared is not None
        ]
        peers: set[int] = set()
        while new:
            peers |= new
            new = {shared for master, shared in slaves if master in peers} - peers
        return frozenset(peers)

    def _unseen(self) -> str:
        """Return superblocks of the same server that no mount shows: they keep the connections."""
        devices = ", ".join(unseen_superblocks(self.group, self.facts))
        return (
            f"{devices} of the same server is still in use without a mount: umount -l left it behind"
            if devices
            else ""
        )


class Receivers(NamedTuple):
    """The peer groups that an unmounting reaches, and the unmounted places below the mounts around them."""

    groups: frozenset[int]
    places: frozenset[str]

    def lose(self, node: MountNode, outer: MountNode) -> bool:
        """Return whether a mount goes: it lies in a mount that receives, and at such a place.

        A bind mount that its namespace made by itself stays. Where the outer mount shows a folder of the
        other, one of the two places is an end of the other.
        """
        place = "/" + posixpath.relpath(node.point, outer.point)
        alike = (place.endswith(f"/{each}") or f"/{each}".endswith(place) for each in self.places)
        return (outer.shared in self.groups or outer.master in self.groups) and any(alike)


def _vanishes(
    node: MountNode, known: Mapping[int, MountNode], devices: frozenset[str], receivers: Receivers
) -> bool:
    """Return whether a mount goes with the mounts of this namespace."""
    parent = known.get(node.parent_id)
    if parent is None:
        return False
    if receivers.lose(node, parent):
        return True
    # A mount that the kernel made within a mount of the group goes with that.
    return parent.device in devices and parent is not node and _vanishes(parent, known, devices, receivers)


Server = tuple[str, int]
"""A host name or an address, and a port."""


def servers_of(case: Case) -> tuple[Server, ...]:
    """Return the servers that must answer: through a tunnel both of its ends."""
    known: dict[Server, None] = {}
    for target in case.group:
        if target.live is None:
            continue
        volume = target.superblock.volume if target.superblock else None
        # nfsfs has no scope of a link-local address, which the options have.
        address = target.live.options.get("addr") or (volume.address if volume else target.endpoint.address)
        port = (volume.port if volume else 0) or target.live.options.number("port") or NFS_PORT
        if address:
            known[address, port] = None
        behind = target.endpoint.address or target.endpoint.host
        if is_loopback(address) and not is_loopback(behind):
            known[target.endpoint.host, target.endpoint.port] = None
    return tuple(known)


def host_names(case: Case) -> tuple[str, ...]:
    """Return the host names to resolve: to reach the server, or to recognise a private endpoint."""
    hosts = [host for host, _ in servers_of(case)]
    hosts += [target.endpoint.host for target in case.parts if target.is_azure_files]
    return tuple(dict.fromkeys(host for host in hosts if host and as_address(host) is None))


def cannot_mount_again(case: Case, network: Network) -> str:
    """Return why a mount could not be made again: a server that does not answer; "" where all do."""
    for host, port in servers_of(case):
        tried = _tried(host, port, network)
        if not any(state is Reachable.OPEN for _, state, _ in tried):
            place = tried[0][0] if tried else host
            answer = network.by_name.get(host)
            why = (answer.error if answer is not None else "") or "no attempt ended"
            if tried:
                why = tried[0][2] or tried[0][1].value
            return f"its server does not answer ({place} port {port}: {why}): it could not be mounted again"
    return ""


def open_places(case: Case, network: Network) -> tuple[Server, ...]:
    """Return the addresses and ports that opened."""
    return tuple(
        (address, port)
        for host, port in servers_of(case)
        for address, state, _ in _tried(host, port, network)[:1]
        if state is Reachable.OPEN
    )


def _tried(host: str, port: int, network: Network) -> Sequence[tuple[str, Reachable, str]]:
    """Return the attempts to reach a server, the open ones first."""
    answer = network.by_name.get(host)
    addresses = (host,) if as_address(host) else answer.addresses if answer is not None else ()
    attempts = [
        (attempt.address, attempt.state, attempt.detail)
        for attempt in network.reaches
        if attempt.port == port and attempt.address in addresses
    ]
    return sorted(attempts, key=lambda attempt: attempt[1] is not Reachable.OPEN)


_SYSTEMD = "systemd-1"
"""The source of systemd's own autofs mounts (automount_enter_waiting in src/core/automount.c)."""


def reason_to_skip(case: Case) -> str:
    """Return why a group is left alone on purpose; "" where nothing is of that kind."""
    automounted = [target.point for target in case.parts if _is_autofs(target, case)]
    if automounted:
        return (
            f"automount(8) mounts {some(automounted)} at each access: all mounts of the server are left "
            "alone; they get another number after all have expired"
        )
    by_programs = [target for target in case.group if target.by_program]
    if by_programs:
        return f"{made_by(by_programs)}: all mounts of its server are left alone"
    points = [target.point for target in case.group if has_kerberos(target.options)]
    if not points:
        return ""
    return f"{some(points)} uses Kerberos: whether its credentials are valid only the mount itself shows"


def _is_autofs(target: Target, case: Case) -> bool:
    if target.maker is Maker.AUTOFS:
        return True
    node = case.sight.node(target.live)
    parent = case.nodes.get(node.parent_id) if node else None
    return parent is not None and parent.fstype == "autofs" and parent.source != _SYSTEMD


def _lies_in(node: MountNode, mine: set[int], known: Mapping[int, MountNode]) -> bool:
    """Return whether a mount lies in one of `mine`, however deep."""
    seen: set[int] = set()
    parent = known.get(node.parent_id)
    while parent is not None and parent.mount_id not in seen:
        if parent.mount_id in mine:
            return True
        seen.add(parent.mount_id)
        parent = known.get(parent.parent_id)
    return False


def is_in_sight(target: Target, sight: Sight) -> bool:
    """Return whether a live mount is in this mount namespace."""
    return sight.node(target.live) is not None
