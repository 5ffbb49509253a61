"""What is against unmounting a transport group: processes, other namespaces, a server that is silent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from nfstuned.core.mounts.options import has_kerberos
from nfstuned.core.nconnect.against import unfit
from nfstuned.core.nconnect.case import Case
from nfstuned.core.nconnect.first_mount import some
from nfstuned.core.nconnect.groups import is_azure_files, was_recorded
from nfstuned.core.policy.endpoint import NFS_PORT, as_address, is_loopback, split_source
from nfstuned.model.connections import Space
from nfstuned.model.facts import Network, Reachable, Target
from nfstuned.model.kernel import MountNode
from nfstuned.model.mounts import Maker
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
    found = list(dict.fromkeys((*by_device, *by_path)))
    rest = len(found) - _MOST
    more = f"; and {rest} more" if rest > 0 else ""
    return f"in use: {'; '.join(found[:_MOST])}{more}" if found else ""


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
    texts = [
        f"{space.process} has {node.point} in a mount namespace of its own"
        for space in case.sight.spaces
        for node in _private(space, case.devices, groups)
    ]
    if not texts:
        return ""
    return f"in use: {texts[0]}" + (f", and {len(texts) - 1} more are like it" if len(texts) > 1 else "")


def _receiving(case: Case) -> frozenset[int]:
    """Return the peer groups in which an unmounting of the parts is seen: it happens in the outer mount."""
    known = {node.mount_id: node for node in case.sight.nodes}
    nodes = (node for target in case.parts if (node := case.node(target)) is not None)
    outer = (known.get(node.parent_id) for node in nodes)
    peers = {node.shared for node in outer if node is not None and node.shared is not None}
    everywhere = [node for space in case.sight.spaces for node in space.nodes]
    return frozenset(_with_slaves(peers, (*everywhere, *case.sight.nodes)))


def _with_slaves(peers: set[int], nodes: Iterable[MountNode]) -> set[int]:
    """Return peer groups with those that receive from them, and from these in turn."""
    slaves = [
        (node.master, node.shared) for node in nodes if node.master is not None and node.shared is not None
    ]
    more = True
    while more:
        new = {shared for master, shared in slaves if master in peers} - peers
        peers, more = peers | new, bool(new)
    return peers


def _private(space: Space, devices: frozenset[str], groups: frozenset[int]) -> Iterator[MountNode]:
    known = {node.mount_id: node for node in space.nodes}
    for node in space.nodes:
        if node.device in devices and not _vanishes(node, known, devices, groups):
            yield node


def _vanishes(
    node: MountNode, known: Mapping[int, MountNode], devices: frozenset[str], groups: frozenset[int]
) -> bool:
    """Return whether a mount goes with the one of this namespace: the outer one receives from there."""
    parent = known.get(node.parent_id)
    if parent is None:
        return False
    if parent.shared in groups or parent.master in groups:
        return True
    # What the kernel mounted within one of them goes with that.
    return parent.device in devices and parent is not node and _vanishes(parent, known, devices, groups)


Server = tuple[str, int]
"""A host name or an address, and a port."""


def servers(case: Case) -> tuple[Server, ...]:
    """Return what must answer: the server, and where a tunnel leads there both of its ends."""
    return tuple(dict.fromkeys(server for target in case.group for server in _servers(target)))


def names(case: Case) -> tuple[str, ...]:
    """Return the host names whose addresses matter: to reach it, or to tell a private endpoint."""
    hosts = [host for host, _ in servers(case)]
    hosts += [target.endpoint.host for target in case.parts if is_azure_files(target)]
    return tuple(dict.fromkeys(host for host in hosts if host and as_address(host) is None))


def silent(case: Case, network: Network) -> str:
    """Return which server does not answer and how; "" where all do."""
    why = unanswered(case, network)
    return f"{why}: a mount could not be made again" if why else ""


def unanswered(case: Case, network: Network) -> str:
    """Return the same, and not what follows from it."""
    for host, port in servers(case):
        tried = _tried(host, port, network)
        if not any(state is Reachable.OPEN for _, state, _ in tried):
            place = tried[0][0] if tried else host
            why = (tried[0][2] or tried[0][1].value) if tried else "no attempt came to an end"
            return f"its server does not answer ({place} port {port}: {why})"
    return ""


def places(case: Case, network: Network) -> tuple[Server, ...]:
    """Return the addresses and ports that opened."""
    return tuple(
        (address, port)
        for host, port in servers(case)
        for address, state, _ in _tried(host, port, network)[:1]
        if state is Reachable.OPEN
    )


def _servers(target: Target) -> Iterator[Server]:
    if target.live is None:
        return
    volume = target.superblock.volume if target.superblock else None
    # nfsfs has no scope of a link-local address, which the options have.
    address = target.live.options.get("addr") or (volume.address if volume else target.endpoint.address)
    port = (volume.port if volume else 0) or target.live.options.number("port") or NFS_PORT
    if address:
        yield address, port
    behind = target.endpoint.address or target.endpoint.host
    if is_loopback(address) and not is_loopback(behind):
        yield target.endpoint.host, target.endpoint.port


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


def _autofs(case: Case) -> str:
    points = [target.point for target in case.parts if _is_autofs(target, case)]
    if not points:
        return ""
    return (
        f"automount(8) makes {some(points)} whenever somebody goes there: it is left alone, and with it all "
        "mounts of its server; it gets another number after all of them have expired"
    )


def _is_autofs(target: Target, case: Case) -> bool:
    if target.request is not None and target.request.maker is Maker.AUTOFS:
        return True
    node = case.node(target)
    parent = next((outer for outer in case.sight.nodes if node and outer.mount_id == node.parent_id), None)
    return parent is not None and parent.fstype == "autofs" and parent.source != _SYSTEMD


def _kerberos(case: Case) -> str:
    points = [target.point for target in case.group if has_kerberos(target.options)]
    if not points:
        return ""
    return f"{some(points)} has Kerberos: only the mount itself would tell whether its credentials are there"


def _invisible(case: Case) -> str:
    here = {target.identity for target in (*case.parts, *case.own)}
    points = [target.point for target in case.group if target.identity not in here]
    return f"another mount namespace has a mount of the same connections at {some(points)}" if points else ""


def _foreign(case: Case) -> str:
    points = [part.point for part in case.parts if part.live and part.live.device not in case.sight.volumes]
    return f"{some(points)} was mounted over another network namespace than this one" if points else ""


def _root(case: Case) -> str:
    return "the root file system cannot be unmounted" if any(part.point == "/" for part in case.parts) else ""


def unfit_part(case: Case) -> str:
    """Return why one of them should not have several connections; fewer are always possible."""
    if case.goal.new < case.goal.old:
        return ""
    targets = ((target, unfit(target, case.facts)) for target in case.parts)
    return next((f"{target.point}: {why.reason}" for target, why in targets if why is not None), "")


def _stacked(case: Case) -> str:
    counts = Counter(target.point for target in case.parts)
    points = [point for point, number in counts.items() if number > 1]
    return f"several mounts lie on top of each other at {some(points)}" if points else ""


def _nested(case: Case) -> str:
    """Return what else is mounted in one of them, or on top of it."""
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


def _unknown(case: Case) -> str:
    unknown = (part for part in case.parts if part.request is None and not was_recorded(part, case.facts))
    points = [target.point for target in unknown]
    if not points:
        return ""
    return (
        f"nothing tells with which options {some(points)} was mounted (neither fstab, a unit nor "
        "/run/mount/utab): a bind mount, or one that mount(8) did not make; unmount it first"
    )


def _tunnelled(case: Case) -> str:
    """Return what only a helper can mount again: it makes and watches the tunnel."""
    points = [part.point for part in case.parts if part.request is None and is_tunnel(part)]
    if not points:
        return ""
    return f"{some(points)} goes through a tunnel of a mount helper: use that to mount it again"


def is_tunnel(target: Target) -> bool:
    """Whether a mount goes to this machine's end of a tunnel."""
    host, _ = split_source(target.source)
    return is_loopback(host) and not is_loopback(target.endpoint.address or target.endpoint.host)


def _units(case: Case) -> str:
    """Return what in a mount unit makes systemd do more than to unmount and to mount."""
    if not case.sight.systemd:
        return ""
    reasons = (_unit(name, case) for name in case.units)
    return next((why for why in reasons if why), "")


def _unit(name: str, case: Case) -> str:
    state = case.sight.units.get(name)
    if state is None:
        return f"systemd says nothing of {name}"
    return f"{name} {state.against}" if state.against else ""


_Check = Callable[[Case], str]

APART: tuple[_Check, ...] = (_autofs, _kerberos)
"""What is left alone on purpose."""
AGAINST: tuple[_Check, ...] = (
    *(_root, _invisible, _foreign, unfit_part, _tunnelled, _stacked, _unknown, _nested, _units),
    *(users, elsewhere, hidden),
)
