"""The mounts of other mount and network namespaces, seen through the processes that live in them.

No capability is needed: /proc/PID/mountinfo and /proc/PID/net are for everyone to read, unlike /proc/PID/ns.
Two views are told apart by what they show: mount ids are unique on the machine, so that the first id in
mountinfo names the mount namespace, and the inode of net/nfsfs names the network namespace.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nfstuned.host.root import Root


@dataclass(frozen=True, slots=True)
class View:
    """One process through which a namespace can be seen; `folder` is its place in proc ("proc/4711")."""

    folder: str
    mount_namespace: str
    network_namespace: int


def other_views(root: Root, between: Callable[[], None]) -> Iterator[View]:
    """Yield one view for each pair of namespaces that some process has and init's view has not.

    `between` is called after each process.
    """
    first = _view(root, root.view)
    seen = {(first.mount_namespace, first.network_namespace)} if first is not None else set()
    for name in root.names("proc"):
        if not name.isdigit():
            continue
        view = _view(root, f"proc/{name}")
        between()
        if view is None or (view.mount_namespace, view.network_namespace) in seen:
            continue
        seen.add((view.mount_namespace, view.network_namespace))
        yield view


def _view(root: Root, folder: str) -> View | None:
    """Return what a process sees; None when it ended meanwhile or is a zombie, which sees nothing."""
    try:
        fd = os.open(root.path(f"{folder}/mountinfo"), os.O_RDONLY | os.O_CLOEXEC)
        try:
            start = os.read(fd, 64)
        finally:
            os.close(fd)
    except OSError:
        return None
    try:
        network = os.stat(root.path(f"{folder}/net/nfsfs")).st_ino
    except OSError:
        network = 0
    mount_id = start.split(b" ", 1)[0]
    return View(folder, mount_id.decode("ascii", "replace"), network) if mount_id else None
