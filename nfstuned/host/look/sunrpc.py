"""The connections of NFS superblocks in sysfs (net/sunrpc/sysfs.c, fs/nfs/sysfs.c): no mount is touched.

/sys/fs/nfs has a folder a superblock since Linux 6.5; its link `nfs_client` leads to the RPC client, and that
client's link `switch` to the connections, which all superblocks of a transport group share.
"""

from __future__ import annotations

import posixpath
import re

from nfstuned.host.root import Root
from nfstuned.model.connections import SwitchSeen, Xprt
from nfstuned.parse.proc.sunrpc import (
    parse_switch_info,
    parse_transport_info,
    parse_transport_name,
    parse_transport_state,
)

SWITCHES = "sys/kernel/sunrpc/xprt-switches"
_CLIENTS = "sys/kernel/sunrpc/rpc-clients"
_CLIENT, _SWITCH = re.compile(r"clnt-[0-9]{1,10}"), re.compile(r"switch-[0-9]{1,10}")
_FOLDER = "xprt-"


def switch_name(root: Root, device: str) -> str | None:
    """Return the folder of a superblock's connections; None where the kernel does not tell it."""
    client = posixpath.basename(root.link(f"sys/fs/nfs/{device}/nfs_client") or "")
    if not _CLIENT.fullmatch(client):
        return None
    name = posixpath.basename(root.link(f"{_CLIENTS}/{client}/switch") or "")
    return name if _SWITCH.fullmatch(name) else None


def observe_switch(root: Root, device: str) -> SwitchSeen | None:
    """Return a superblock's connections; None where the kernel does not tell. Raises ParseError."""
    name = switch_name(root, device)
    if name is None:
        return None
    folder = f"{SWITCHES}/{name}"
    file = f"{folder}/xprt_switch_info"
    text = root.read_or_empty(file)
    if not text:
        return None
    xprts = (xprt for xprt in root.names(folder) if xprt.startswith(_FOLDER))
    return SwitchSeen(
        name,
        parse_switch_info(text, root.shown(file)),
        tuple(_xprt(root, folder, xprt) for xprt in xprts),
        grows=root.exists(f"{folder}/add_xprt"),
    )


def _xprt(root: Root, folder: str, name: str) -> Xprt:
    state, info = f"{folder}/{name}/xprt_state", f"{folder}/{name}/xprt_info"
    values = parse_transport_info(root.read_or_empty(info), root.shown(info))
    return Xprt(
        name,
        parse_transport_name(name, root.shown(f"{folder}/{name}"))[1],
        parse_transport_state(root.read_or_empty(state), root.shown(state)),
        values.get("src_port"),
        values.get("tasks_queuelen"),
    )
