"""What is against unmounting a transport group: processes, other namespaces, a server that is silent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from nfstuned.core.mounts.options import has_kerberos
from nfstuned.core.nconnect.against import unfit
from nfstuned.core.nconnect.case import Case
from nfstuned.core.nconnect.groups import is_azure_files, was_recorded
from nfstuned.core.policy.endpoint import NFS_PORT, as_address, is_loopback, split_source
from nfstuned.model.facts import Network, Reachable, Target
from nfstuned.model.kernel import MountNode
from nfstuned.model.mounts import Maker
from nfstuned.parse.fields import some
from nfstuned.parse.proc.mountinfo import node_at

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
    texts = list(dict.fromkeys((*by_device, *by_path)))
    rest = len(texts) - _MOST
    more = f"; and {rest} more" if rest > 0 else ""
    return f"in use: {'; '.join(texts[:_MOST])}{more}" if texts else ""


def hidden(case: Case) -> str:
    """Return superblocks of the same server that no mount shows: they keep the connections."""
    mine = {
        (target.superblock.volume.version, target.superblock.volume.address, target.superblock.volume.port)
        for target in case.group
        if target.superblock is not None and target.superblock.volume is not None
    }
    spaces = [target.superblock.servers for target in case.group if target.superblock is not None]
    devices = [
        block.device
        for block in case.facts.snapshot.superblocks
        if not block.mounts
        and block.volume is not None
        and (block.volume.version, block.volume.address, block.volume.port) in mine
        and block.servers in spaces
    ]
    if not devices:
        return ""
    named = ", ".join(devices)
    return f"{named} of the same server is still in use without a mount, which umount -l left behind"


def elsewhere(case: Case) -> str:
    """Return the mount namespaces that have a mount of the group which does not vanish with this one's."""
    groups = _receiving(case)
    texts = []
    for space in case.sight.spaces:
        known = {node.mount_id: node for node in space.nodes}
        texts += [
            f"{space.process} has {node.point} in a mount namespace of its own"
            for node in space.nodes
            if node.device in case.devices and not _vanishes(node, known, case.devices, groups)
        ]
    if not texts:
        return ""
    return f"in use: {texts[0]}" + (f", and {len(texts) - 1} more are like it" if len(texts) > 1 else "")


def _receiving(case: Case) -> frozenset[int]:
    """Return the peer groups in which an unmounting of the parts is seen: it happens in the outer mount."""
    known = {node.mount_id: node for node in case.sight.nodes}
    nodes = (node for target in case.parts if (node := case.node(target)) is not None)
    outer = (known.get(node.parent_id) for node in nodes)
    new = {node.shared for node in outer if node is not None and node.shared is not None}
    everywhere = [node for space in case.sight.spaces for node in space.nodes]
    # A slave of one of them receives from it, and a slave of the slave in turn.
    slaves = [
        (node.master, node.shared)
        for node in (*everywhere, *case.sight.nodes)
        if node.master is not None and node.shared is not None
    ]
    peers: set[int] = set()
    while new:
        peers |= new
        new = {shared for master, shared in slaves if master in peers} - peers
    return frozenset(peers)


def _vanishes(
    node: MountNode, known: Mapping[int, MountNode], devices: frozenset[str], groups: frozenset[int]
) -> bool:
    """Return whether a mount goes with the one of this namespace: the outer one receives from there."""
    parent = known.get(node.parent_id)
    if parent is None:
        return False
    if parent.shared in groups or parent.master in groups:
        return True
    # What the kernel mounted within a mount of the group goes with that.
    return parent.device in devices and parent is not node and _vanishes(parent, known, devices, groups)


Server = tuple[str, int]
"""A host name or an address, and a port."""


def servers(case: Case) -> tuple[Server, ...]:
    """Return what must answer: the server, and where a tunnel leads there both of its ends."""
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
    """Return the host names whose addresses matter: to reach it, or to tell a private endpoint."""
    hosts = [host for host, _ in servers(case)]
    hosts += [target.endpoint.host for target in case.parts if is_azure_files(target)]
    return tuple(dict.fromkeys(host for host in hosts if host and as_address(host) is None))


def cannot_mount_again(case: Case, network: Network) -> str:
    """Return why a mount could not be made again: a server that does not answer; "" where all do."""
    for host, port in servers(case):
        tried = _tried(host, port, network)
        if not any(state is Reachable.OPEN for _, state, _ in tried):
            place = tried[0][0] if tried else host
            why = (tried[0][2] or tried[0][1].value) if tried else "no attempt came to an end"
            return f"its server does not answer ({place} port {port}: {why}): a mount could not be made again"
    return ""


def open_places(case: Case, network: Network) -> tuple[Server, ...]:
    """Return the addresses and ports that opened."""
    return tuple(
        (address, port)
        for host, port in servers(case)
        for address, state, _ in _tried(host, port, network)[:1]
        if state is Reachable.OPEN
    )


def _tried(host: str, port: int, network: Network) -> Sequence[tuple[str, Reachable, str]]:
    """Return the attempts to reach a server, those first that came to something."""
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


def apart(case: Case) -> str:
    """Return why a group is left alone on purpose; "" where nothing is of that kind."""
    automounted = [target.point for target in case.parts if _is_autofs(target, case)]
    if automounted:
        return (
            f"automount(8) makes {some(automounted)} whenever somebody goes there: it is left alone, and "
            "with it all mounts of its server; it gets another number after all of them have expired"
        )
    points = [target.point for target in case.group if has_kerberos(target.options)]
    if not points:
        return ""
    return f"{some(points)} has Kerberos: only the mount itself would tell whether its credentials are there"


def _is_autofs(target: Target, case: Case) -> bool:
    if target.request is not None and target.request.maker is Maker.AUTOFS:
        return True
    node = case.node(target)
    parent = next((outer for outer in case.sight.nodes if node and outer.mount_id == node.parent_id), None)
    return parent is not None and parent.fstype == "autofs" and parent.source != _SYSTEMD


def obstacle(case: Case) -> str:
    """Return why a group cannot be unmounted and mounted again as it was; "" where it can."""
    checks = (_out_of_reach, unfit_part, _not_made_again, _nested, _units, users, elsewhere, hidden)
    return next((why for check in checks if (why := check(case))), "")


def _out_of_reach(case: Case) -> str:
    """Return which mounts of a group this process cannot unmount."""
    if any(part.point == "/" for part in case.parts):
        return "the root file system cannot be unmounted"
    here = {target.identity for target in (*case.parts, *case.own)}
    points = [target.point for target in case.group if target.identity not in here]
    if points:
        return f"another mount namespace has a mount of the same connections at {some(points)}"
    points = [part.point for part in case.parts if part.live and part.live.device not in case.sight.volumes]
    return f"{some(points)} was mounted over another network namespace than this one" if points else ""


def unfit_part(case: Case) -> str:
    """Return why a mount should not have several connections; fewer are always possible."""
    if case.goal.new < case.goal.old:
        return ""
    targets = ((target, unfit(target, case.facts)) for target in case.parts)
    return next((f"{target.point}: {why.reason}" for target, why in targets if why is not None), "")


def _not_made_again(case: Case) -> str:
    """Return which mounts would not come back as they are: nfstuned cannot make them, or not all of them."""
    by_hand = [part for part in case.parts if part.request is None]
    points = [part.point for part in by_hand if is_tunnel(part)]
    if points:
        # The helper makes and watches the tunnel.
        return f"{some(points)} goes through a tunnel of a mount helper: use that to mount it again"
    counts = Counter(target.point for target in case.parts)
    points = [point for point, number in counts.items() if number > 1]
    if points:
        return f"several mounts lie on top of each other at {some(points)}"
    points = [part.point for part in by_hand if not was_recorded(part, case.facts)]
    if not points:
        return ""
    return (
        f"nothing tells with which options {some(points)} was mounted (neither fstab, a unit nor "
        "/run/mount/utab): a bind mount, or one that mount(8) did not make; unmount it first"
    )


def _nested(case: Case) -> str:
    """Return what else is mounted in a mount of the group, or on top of it."""
    known = {node.mount_id: node for node in case.sight.nodes}
    mine = {node.mount_id for target in (*case.parts, *case.own) if (node := case.node(target)) is not None}
    nodes = [node for node in case.sight.nodes if node.mount_id not in mine and _outer(node, mine, known)]
    named = [f"{node.point} ({node.fstype})" for node in nodes]
    return f"{some(named)} is mounted there, within or on top: unmount it first" if named else ""


def _outer(node: MountNode, mine: set[int], known: Mapping[int, MountNode]) -> bool:
    """Return whether a mount lies in one of `mine`, however deep."""
    seen: set[int] = set()
    parent = known.get(node.parent_id)
    while parent is not None and parent.mount_id not in seen:
        if parent.mount_id in mine:
            return True
        seen.add(parent.mount_id)
        parent = known.get(parent.parent_id)
    return False


def is_tunnel(target: Target) -> bool:
    """Whether a mount goes to this machine's end of a tunnel."""
    host, _ = split_source(target.source)
    return is_loopback(host) and not is_loopback(target.endpoint.address or target.endpoint.host)


def _units(case: Case) -> str:
    """Return what in a mount unit makes systemd do more than to unmount and to mount."""
    for name in case.units if case.sight.systemd else ():
        state = case.sight.units.get(name)
        if state is None:
            return f"systemd says nothing of {name}"
        if state.against:
            return f"{name} {state.against}"
    return ""
