"""A host's connections in sysfs: the files of a real kernel (tests/parse/data/6.12), as a later one has them.

What that kernel does not have yet is put in as docs/kernel-facts.md and net/sunrpc/sysfs.c describe it: the
links by which a superblock leads to its connections, add_xprt, and ports that anybody may use.
"""

from __future__ import annotations

import shutil
from pathlib import Path

REAL = Path(__file__).parents[1] / "parse/data/6.12/xprt-switches/switch-2"
"""nconnect=4, over NFS 4.1."""
SWITCHES = "sys/kernel/sunrpc/xprt-switches"
ADD = "# add one xprt to this xprt_switch\n"
"""What add_xprt says when it is read (rpc_sysfs_xprt_switch_add_xprt_show)."""
PORT = 40_000


def connect(tree: Path, *devices: str, switch: str = "switch-2", count: int = 2) -> Path:
    """Give superblocks these connections; return the switch's folder."""
    folder = tree / SWITCHES / switch
    folder.mkdir(parents=True, exist_ok=True)
    info = (REAL / "xprt_switch_info").read_text().replace("=4", f"={count}")
    (folder / "xprt_switch_info").write_text(info)
    (folder / "add_xprt").write_text(ADD)
    for number, real in enumerate(sorted(REAL.glob("xprt-*-tcp"))[:count]):
        shutil.copytree(real, folder / real.name, dirs_exist_ok=True)
        set_port(folder / real.name, PORT + number)
    for number, device in enumerate(devices):
        client = tree / f"sys/kernel/sunrpc/rpc-clients/clnt-{number}"
        client.mkdir(parents=True, exist_ok=True)
        (client / "switch").symlink_to(f"../../xprt-switches/{switch}")
        block = tree / f"sys/fs/nfs/{device}"
        block.mkdir(parents=True, exist_ok=True)
        (block / "nfs_client").symlink_to(f"../../../kernel/sunrpc/rpc-clients/clnt-{number}")
    return folder


def set_port(folder: Path, port: int) -> None:
    """Let a connection come from this port."""
    lines = (folder / "xprt_info").read_text().splitlines()
    changed = [f"src_port={port}" if line.startswith("src_port=") else line for line in lines]
    (folder / "xprt_info").write_text("\n".join(changed) + "\n")
