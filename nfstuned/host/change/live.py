"""Add connections to a transport group through sysfs, see what they carry, and take them away again.

What is written names a switch and a connection, whose names the kernel gives to others as soon as they are
gone. So each file is opened first, and only then is its switch compared with the plan's.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence

from nfstuned.errors import ParseError
from nfstuned.host.change import live_child
from nfstuned.host.change.bdi import identity
from nfstuned.host.change.remount import ANOTHER_MOUNT, foreign_namespace, interruption, mount_nodes
from nfstuned.host.command import run
from nfstuned.host.look.host import observe_stats
from nfstuned.host.look.sunrpc import SWITCHES, observe_switch
from nfstuned.host.network.ping import pings
from nfstuned.host.root import Root
from nfstuned.model.connections import ConnectionHands, LivePlan, Switches, SwitchLook, SwitchSeen
from nfstuned.model.kernel import Mount, MountNode, Transport
from nfstuned.parse.proc.mountinfo import parse_mountinfo

ANSWER_S = 5.0
"""How long the server may take to answer on all further connections together."""
ASK_S = 30.0
"""For all requests of a child.

The client sends a lost request again only after a minute: an answer that has not come by then comes too late.
"""
STATE_S = 10.0
"""A write to xprt_state waits for the lock of the xprt, which a connecting xprt holds for long."""
SETTLE_S = 10.0
"""How long the requests of an offline xprt may take to end."""
GONE_S = 2.0
"""How long sysfs may take to drop a removed xprt."""
_STEP_S = 0.05


class SunrpcGround:
    """This host, as adding connections needs it (app.groups.LiveGround)."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def obstacle(self) -> str:
        """Return why no connection can be added from here, whatever is asked for; "" where one can."""
        if os.geteuid() != 0:
            return "only root can add connections"
        return foreign_namespace(self._root)

    def nodes(self) -> tuple[MountNode, ...]:
        """Return all mounts of this mount namespace."""
        return mount_nodes(self._root)

    def switches(self, devices: frozenset[str]) -> Switches:
        """Return the connections of superblocks, or why they cannot be understood; None for unknown ones."""
        return {device: _seen(self._root, device) for device in sorted(devices)}

    def hands(self, plan: LivePlan, signals: Sequence[int]) -> ConnectionHands:
        """Return who carries out a plan; `signals` grows when it is to end."""
        return SysfsHands(self._root, plan, signals)


def _seen(root: Root, device: str) -> SwitchLook:
    try:
        return observe_switch(root, device)
    except ParseError as error:
        return error


class SysfsHands:
    """The files of sysfs, and a child for whatever the kernel may keep waiting."""

    def __init__(self, root: Root, plan: LivePlan, signals: Sequence[int]) -> None:
        self._root = root
        self._plan = plan
        self._signals = signals

    def interrupted(self) -> str:
        """Return which signal wants this to end; "" for none."""
        return interruption(self._signals)

    def answers(self, count: int) -> str:
        """Return why the server does not answer on so many further connections; "" where it does."""
        return pings(self._plan.place, count, ANSWER_S)

    def ask(self, count: int) -> str:
        """Let a child send requests over the mount; return what went wrong."""
        spot = self._plan.spot
        return _child(("ask", spot.point, str(spot.mount_id), str(count)), ASK_S)

    def counters(self) -> Sequence[Transport]:
        """Return what each connection in use carried so far; none where the mount does not say."""
        spot = self._plan.spot
        stats, _ = observe_stats(self._root)
        mine = [stanza for stanza in stats if (stanza.source, stanza.point) == (spot.source, spot.point)]
        return mine[-1].transports if mine else ()

    def switch(self) -> SwitchSeen | None:
        """Return the connections; None where they are not the plan's any more."""
        spot = self._plan.spot
        mounts = parse_mountinfo(self._root.read_or_empty(f"{self._root.view}/mountinfo"))
        mine = (spot.mount_id, spot.device, spot.point)
        there = (mount for mount in mounts if isinstance(mount, Mount))
        if mine not in {(mount.mount_id, mount.device, mount.point) for mount in there}:
            return None
        if identity(self._root, spot.device) != spot.bdi:
            return None
        switch = _seen(self._root, spot.device)
        return switch if isinstance(switch, SwitchSeen) and switch.name == self._plan.switch.name else None

    def add(self) -> str:
        """Add a connection: any write clones the main one."""
        try:
            fd = self._open("add_xprt")
            try:
                if self.switch() is None:
                    return ANOTHER_MOUNT
                return "" if os.write(fd, b"1\n") else "the kernel did not take it"
            finally:
                os.close(fd)
        except OSError as error:
            return f"add_xprt: {error.strerror}"

    def offline(self, name: str) -> str:
        """Let a connection have no new requests."""
        return self._state(name, "offline")

    def settle(self, name: str) -> None:
        """Wait until the requests that a connection was given have ended, or some seconds are over."""
        self._wait(
            lambda seen: all(xprt.queued in {0, None} for xprt in seen.xprts if xprt.name == name), SETTLE_S
        )

    def remove(self, name: str) -> str:
        """Take a connection away that is offline; one that never connected stays listed, switched off."""
        said = self._state(name, "remove")
        if not said:
            self._wait(lambda seen: name not in seen.names, GONE_S)
        return said

    def _state(self, name: str, word: str) -> str:
        try:
            fd = self._open(f"{name}/xprt_state")
        except FileNotFoundError:
            return ""
        except OSError as error:
            return f"{name}: {error.strerror}"
        try:
            if self.switch() is None:
                return ANOTHER_MOUNT
            said = _child(("write", str(fd), word), STATE_S, fd)
        finally:
            os.close(fd)
        return f"{name}: {word}: {said}" if said else ""

    def _open(self, file: str) -> int:
        path = self._root.path(f"{SWITCHES}/{self._plan.switch.name}/{file}")
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC)

    def _wait(self, holds: Callable[[SwitchSeen], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            seen = self.switch()
            if seen is None or holds(seen):
                return
            time.sleep(_STEP_S)


def _child(words: Sequence[str], seconds: float, *keep: int) -> str:
    done = run([sys.executable, "-I", "-S", live_child.__file__, *words], seconds, keep)
    return done.output or done.problem
