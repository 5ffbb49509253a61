"""The superblocks that wait for their servers, which the daemon writes to /run/nfstuned for other commands.

Times are of CLOCK_MONOTONIC, which every process of a machine shares and which no setting of the clock moves.
"""

from __future__ import annotations

import json
import time

from nfstuned.host.files.output import refresh
from nfstuned.host.files.write import make_folders
from nfstuned.host.root import Root
from nfstuned.model.samples import Stall, Stalled

_FOLDER, _NAME = "run/nfstuned", "stalled.json"
LATE_S = 30.0
"""A look that is due for longer does not come: the daemon was stopped."""


def write_stalls(root: Root, stalled: Stalled, next_s: float) -> None:
    """Replace the look before by this; `next_s` is when the next is due. Raises OSError."""
    rows = [[*identity, *stall] for identity, stall in stalled.stalls.items()]
    text = json.dumps({"looked_s": stalled.now_s, "next_s": next_s, "stalled": rows})
    make_folders(root.path, _FOLDER)
    refresh(root.path(f"{_FOLDER}/{_NAME}"), text.encode())


def read_stalls(root: Root) -> Stalled | None:
    """Return the superblocks that wait; None without a daemon that samples."""
    now_s = time.monotonic()
    try:
        found = json.loads(root.read_or_empty(f"{_FOLDER}/{_NAME}"))
        if not found["looked_s"] <= now_s <= found["next_s"] + LATE_S:
            return None
        stalls = {(device, bdi): _stall(*rest) for device, bdi, *rest in found["stalled"]}
    except (KeyError, RecursionError, TypeError, ValueError):
        return None
    return Stalled(now_s, stalls)


def _stall(since_s: float, requests: int | None, operations: list[str], *recovering: object) -> Stall:
    return Stall(float(since_s), requests, tuple(map(str, operations)), recovering == (True,))
