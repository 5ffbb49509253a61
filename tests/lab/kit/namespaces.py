"""Mounts that live in other namespaces than the daemon's, each kept by a process of its own."""

from __future__ import annotations

import contextlib
import subprocess
import time
from typing import TYPE_CHECKING

from tests.lab.kit.mounts import Mounted, table_device
from tests.lab.kit.shell import attempt, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NETWORK = "elsewhere"
_PATIENCE_S = 30.0


@contextlib.contextmanager
def network(name: str = NETWORK) -> Iterator[str]:
    """Make a network namespace that reaches the server's addresses through a veth pair."""
    run("ip", "netns", "add", name)
    try:
        run("ip", "link", "add", "veth-lab", "type", "veth", "peer", "name", "veth-in", "netns", name)
        run("ip", "address", "add", "10.20.0.1/24", "dev", "veth-lab")
        run("ip", "link", "set", "veth-lab", "up")
        inside = ("ip", "-n", name)
        run(*inside, "address", "add", "10.20.0.2/24", "dev", "veth-in")
        run(*inside, "link", "set", "veth-in", "up")
        run(*inside, "link", "set", "lo", "up")
        run(*inside, "route", "add", "default", "via", "10.20.0.1")
        yield name
    finally:
        attempt("ip", "link", "del", "veth-lab")
        run("ip", "netns", "del", name)


@contextlib.contextmanager
def hidden_mount(
    source: str, point: Path, options: str, *, prefix: tuple[str, ...] = ()
) -> Iterator[Mounted]:
    """Mount in a mount namespace of its own, which a process keeps while the block runs.

    `prefix` is the command that enters a network namespace first (`ip netns exec NAME`).
    """
    script = 'mount -t nfs -o "$1" "$2" "$3" && exec sleep 1000'
    argv = [*prefix, "unshare", "--mount", "--propagation", "private"]
    argv += ["sh", "-c", script, "sh", options, source, str(point)]
    with subprocess.Popen(argv) as process:
        try:
            yield Mounted(source, point, _device(process, point))
        finally:
            # The namespace goes with its last process, and the mount with it.
            process.kill()


def _device(process: subprocess.Popen[bytes], point: Path) -> str:
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            if (device := table_device(point, process.pid)) is not None:
                return device
        time.sleep(0.01)
    raise AssertionError(f"{point} was not mounted; the process ended with {process.poll()}")
