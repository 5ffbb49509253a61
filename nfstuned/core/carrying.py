"""How many connections carry a mount's requests: /proc/mounts does not tell of those that came later."""

from __future__ import annotations

from nfstuned.model.facts import Target


def carrying(target: Target) -> int | None:
    """Return the connections of a live mount: its nconnect, or more where further ones carried requests.

    To a mount that was made without nconnect some may have been added: the kernel gives them nothing to carry
    (rpc_clnt_add_xprt alone sets round-robin, and add_xprt of sysfs does not call it). Those of max_connect
    lead to other addresses, and are not counted. None where nothing is mounted.
    """
    if target.live is None:
        return None
    shown = target.live.options.number("nconnect") or 1
    if shown == 1 or target.stats is None or "max_connect" in target.live.options:
        return shown
    return max(shown, sum(1 for one in target.stats.transports if one.receives))
