"""How soon a mount has its read-ahead: with the vendor's awk rule and with nfstuned, in one guest.

Runs in the lab, where there are a server and an installed nfstuned: `sh dev/lab KERNEL first_look`.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from tests.lab.kit import rivals
from tests.lab.kit.daemon import Daemon
from tests.lab.kit.mounts import Mounts
from tests.lab.kit.server import SHARES
from tests.lab.kit.watch import Race, race

WANTED_KB = 15360
MOUNTS = 30
OPTIONS = "vers=3,nolock"
"""The version with the mount(8) that returns soonest after the kernel's event: the closest race."""
_VENDORS_RULE = """SUBSYSTEM=="bdi" \\
, ACTION=="add" \\
, PROGRAM="/usr/bin/awk -v bdi=$kernel \
'BEGIN{ret=1} {if ($4 == bdi) {ret=0}} END{exit ret}' /proc/fs/nfsfs/volumes" \\
, ATTR{read_ahead_kb}="15360"
"""
"""As Microsoft's page about NFS performance of Azure Files has it; its name hides nfs-utils' rule."""


def vendors_rule() -> AbstractContextManager[Path]:
    """The rule that the vendor's page recommends."""
    return rivals.rule("99-nfs.rules", _VENDORS_RULE)


@contextlib.contextmanager
def nfstuned() -> Iterator[None]:
    """The installed service, with no other writer."""
    rivals.mask_nfsrahead()
    daemon = Daemon()
    daemon.start()
    try:
        yield
    finally:
        daemon.clean()
        rivals.unmask_nfsrahead()


CONTENDERS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "the vendor's awk rule": vendors_rule,
    "nfstuned": nfstuned,
}


def measure(mount: Mounts) -> dict[str, Race]:
    """Run the contenders one after the other; return the race of each."""
    found = {}
    for name, contender in CONTENDERS.items():
        with contender():
            shares = itertools.islice(itertools.cycle(SHARES), MOUNTS)
            found[name] = race(mount, OPTIONS, WANTED_KB, shares)
            rivals.settle()
    return found


def table(found: dict[str, Race]) -> str:
    """Return the figures for people."""
    head = f"{'ms after mount(8) returned':26}{'median':>8}{'worst':>8}{'at 1st look':>13}{'1st look':>10}"
    rows = [
        f"{name:26}{seen.median_ms:8.1f}{seen.worst_ms:8.1f}{seen.first_looks:8} of {len(seen.tries)}"
        f"{seen.look_ms:10.1f}"
        for name, seen in found.items()
    ]
    note = "0.0: right at the first look, that is, by the time in the last column or before."
    return "\n".join([head, *rows, note])
