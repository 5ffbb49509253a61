"""How many connections carry a mount's requests: /proc/mounts does not tell of those that came later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfstuned.model.kernel import Mount, MountStats

if TYPE_CHECKING:
    from nfstuned.model.facts import Target


def carrying(target: Target) -> int | None:
    """Return the connections of a live mount: its nconnect, or more where further ones carried requests.

    To a mount that was made without nconnect some may have been added: the kernel gives them nothing to carry
    (rpc_clnt_add_xprt alone sets round-robin, and add_xprt of sysfs does not call it). Those of max_connect
    lead to other addresses, and are not counted. None where nothing is mounted.
    """
    return None if target.live is None else carried(target.live, target.stats)


def carried(mount: Mount, stats: MountStats | None) -> int:
    """Return the same of a mount and what mountstats has of it."""
    shown = mount.options.number("nconnect") or 1
    if shown == 1 or stats is None or "max_connect" in mount.options:
        return shown
    return max(shown, sum(1 for transport in stats.transports if transport.receives))
