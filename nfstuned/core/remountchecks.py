"""What is against unmounting a transport group and mounting it again: asked before anything is unmounted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from nfstuned.core.endpoint import is_loopback, split_source
from nfstuned.core.fstabchecks import unfit
from nfstuned.core.groups import was_recorded
from nfstuned.core.inherited import some
from nfstuned.core.nfsoptions import has_kerberos
from nfstuned.core.remountcase import Case
from nfstuned.core.remountholders import elsewhere, hidden, users
from nfstuned.model.facts import Target
from nfstuned.model.remount import Node
from nfstuned.model.work import Maker

_SYSTEMD = "systemd-1"
"""The source of systemd's own autofs mounts (automount_enter_waiting in src/core/automount.c)."""


def _autofs(case: Case) -> str:
    found = [target.point for target in case.parts if _is_autofs(target, case)]
    if not found:
        return ""
    return (
        f"automount(8) makes {some(found)} whenever somebody goes there: it is left alone, and with it all "
        "mounts of its server; it gets another number after all of them have expired"
    )


def _is_autofs(target: Target, case: Case) -> bool:
    if target.request is not None and target.request.maker is Maker.AUTOFS:
        return True
    node = case.node(target)
    parent = next((one for one in case.sight.nodes if node and one.mount_id == node.parent_id), None)
    return parent is not None and parent.fstype == "autofs" and parent.source != _SYSTEMD


def _kerberos(case: Case) -> str:
    found = [target.point for target in case.group if has_kerberos(target.options)]
    if not found:
        return ""
    return f"{some(found)} has Kerberos: only the mount itself would tell whether its credentials are there"


def _invisible(case: Case) -> str:
    here = {id(target) for target in (*case.parts, *case.own)}
    found = [target.point for target in case.group if id(target) not in here]
    return f"another mount namespace has a mount of the same connections at {some(found)}" if found else ""


def _foreign(case: Case) -> str:
    found = [one.point for one in case.parts if one.live and one.live.device not in case.sight.volumes]
    return f"{some(found)} was mounted over another network namespace than this one" if found else ""


def _root(case: Case) -> str:
    return "the root file system cannot be unmounted" if any(one.point == "/" for one in case.parts) else ""


def unfit_part(case: Case) -> str:
    """Return why one of them should not have several connections; fewer are always possible."""
    if case.goal.new < case.goal.old:
        return ""
    found = ((target, unfit(target, case.facts)) for target in case.parts)
    return next((f"{target.point}: {why.reason}" for target, why in found if why is not None), "")


def _stacked(case: Case) -> str:
    counts = Counter(target.point for target in case.parts)
    found = [point for point, number in counts.items() if number > 1]
    return f"several mounts lie on top of each other at {some(found)}" if found else ""


def _nested(case: Case) -> str:
    """Return what else is mounted in one of them, or on top of it."""
    known = {node.mount_id: node for node in case.sight.nodes}
    mine = {node.mount_id for one in (*case.parts, *case.own) if (node := case.node(one)) is not None}
    found = [node for node in case.sight.nodes if node.mount_id not in mine and _outer(node, mine, known)]
    named = [f"{node.point} ({node.fstype})" for node in found]
    return f"{some(named)} is mounted there, within or on top: unmount it first" if named else ""


def _outer(node: Node, mine: set[int], known: Mapping[int, Node]) -> bool:
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
    unknown = (one for one in case.parts if one.request is None and not was_recorded(one, case.facts))
    found = [one.point for one in unknown]
    if not found:
        return ""
    return (
        f"nothing tells with which options {some(found)} was mounted (neither fstab, a unit nor "
        "/run/mount/utab): a bind mount, or one that mount(8) did not make; unmount it first"
    )


def _tunnelled(case: Case) -> str:
    """Return what only a helper can mount again: it makes and watches the tunnel."""
    found = [one.point for one in case.parts if one.request is None and is_tunnel(one)]
    if not found:
        return ""
    return f"{some(found)} goes through a tunnel of a mount helper: use that to mount it again"


def is_tunnel(target: Target) -> bool:
    """Whether a mount goes to this machine's end of a tunnel."""
    host, _ = split_source(target.source)
    return is_loopback(host) and not is_loopback(target.endpoint.address or target.endpoint.host)


def _units(case: Case) -> str:
    """Return what in a mount unit makes systemd do more than to unmount and to mount."""
    if not case.sight.systemd:
        return ""
    found = (_unit(name, case) for name in case.units)
    return next((why for why in found if why), "")


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
