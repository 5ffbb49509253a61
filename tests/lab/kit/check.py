"""`nfstuned check` in a situation of the guest, held against a golden file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tests.lab.kit.daemon import nfstuned_json
from tests.lab.kit.server import SHARES, Server
from tests.lab.kit.shell import restored

GOOD = "vers=4.1,nconnect=4,noresvport,actimeo=30"
WITHOUT = "vers=4.1,noresvport,actimeo=30"
"""Like GOOD, without nconnect."""
AGREED = Path("/etc/nfs.conf.d/lab.conf")
"""The configuration of nfs-utils' rule."""
GOLDEN = Path(__file__).parents[1] / "golden"
_SEEN = Path("/results/golden")
_PATIENCE_S = 120.0
_BLOCK = Path("/proc/fs/nfsd/max_block_size")


@contextlib.contextmanager
def vendors_host(server: Server) -> Iterator[None]:
    """A host as the vendor wants it: 1 MiB transfers, nfs-utils' rule at the policy's value."""
    server.start()
    before = _BLOCK.read_text()
    _large_blocks(server, "1048576")
    server.export(*SHARES, options="insecure")
    with restored(AGREED, "[nfsrahead]\nnfs=15360\nnfs4=15360\n"):
        yield
    _large_blocks(server, before)
    server.export(*SHARES)


def _large_blocks(server: Server, size: str) -> None:
    """The largest READ is fixed while the server runs."""
    server.stop()
    _BLOCK.write_text(size)
    server.start()


def findings(*argv: str) -> list[str]:
    """Return each finding of a check as one line; the kernel's release is left out of it."""
    document = nfstuned_json("check", *argv, timeout=_PATIENCE_S)
    found = document["findings"]
    assert isinstance(found, list)
    release = os.uname().release
    lines = [f"{one['severity']} {one['rule']} {one['subject']}: {one['message']}" for one in found]
    return [line.replace(release, "KERNEL") for line in lines]


def ids(*argv: str) -> list[str]:
    """Return only rule and subject of each finding."""
    return [line.partition(": ")[0].partition(" ")[2] for line in findings(*argv)]


def check_is(situation: str, *argv: str) -> None:
    """Compare the findings with the situation's golden file, which names them all and no others.

    The findings are also among the boot's results, from where a person copies them after reading.
    """
    seen = "".join(f"{line}\n" for line in findings(*argv))
    _SEEN.mkdir(parents=True, exist_ok=True)
    (_SEEN / f"{situation}.txt").write_text(seen)
    assert seen == (GOLDEN / f"{situation}.txt").read_text()
