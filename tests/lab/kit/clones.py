"""Clients in namespaces of their own, as machines that were cloned from one image, over links of any kind."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.lab.kit.faults import shaped
from tests.lab.kit.namespaces import network
from tests.lab.kit.shell import attempt, program, run, wait_for

_UNIT = Path("/usr/lib/systemd/system/nfstuned-identity.service")
_IDENTIFIER = "/sys/fs/nfs/net/nfs_client/identifier"
_POINT = "/run/clone"
_WRITE = 'date >"$0" && sync "$0"'
_NAMED = 'hostname localhost && mount -t sysfs sysfs /sys && mount --bind "$1" /etc/machine-id'
_READY = "mkdir -p /run/clone && echo ready && exec sleep infinity"


@dataclass(frozen=True)
class Clone:
    """A client; `pid` is its process 1, which keeps its namespaces."""

    name: str
    pid: int

    def enter(self, *argv: str, timeout: float = 60) -> str:
        return run(*self._prefix, *argv, timeout=timeout)

    @property
    def _prefix(self) -> tuple[str, ...]:
        return ("nsenter", "--target", str(self.pid), "--mount", "--net", "--uts", "--pid")

    @property
    def identifier(self) -> str:
        """The identifier of its NFSv4 client."""
        return self.enter("cat", _IDENTIFIER).strip()

    def identify(self, text: str) -> None:
        self.enter("sh", "-c", f"echo {text} >{_IDENTIFIER}")

    def start_unit(self) -> None:
        """Run the unit's command, as systemd would: the guest's own unit has the guest's namespaces."""
        lines = _UNIT.read_text().replace("\\\n", "").splitlines()
        (command,) = [line for line in lines if line.startswith("ExecStart=/bin/sh -euc ")]
        script = command.partition(" -euc ")[2].strip("'").replace("$$", "$").replace("%%", "%")
        self.enter("sh", "-euc", script)

    def mount(self, source: str, options: str) -> None:
        self.enter("mount", "-t", "nfs", "-o", options, source, _POINT, timeout=120)

    def umount(self) -> None:
        """Unmount it as soon as the last command that a writer started has ended."""
        wait_for("the unmount", lambda: not attempt(*self._prefix, "umount", _POINT, timeout=120).returncode)

    def write(self) -> None:
        """Write a file and have it reach the server."""
        self.enter("sh", "-c", _WRITE, f"{_POINT}/{self.name}", timeout=120)


@contextlib.contextmanager
def clone(number: int, machine_id: str, folder: Path) -> Iterator[Clone]:
    """Make a client that reaches the server through a veth pair of its own."""
    name = f"clone{number}"
    own = folder / name
    own.write_text(f"{machine_id}\n")
    with network(name, number):
        argv = ["ip", "netns", "exec", name, "unshare", "--mount", "--uts", "--propagation", "private"]
        argv += ["--pid", "--fork", "--kill-child", "--mount-proc"]
        argv += ["sh", "-c", f"{_NAMED} && {_READY}", "sh", str(own)]
        with program(*argv, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            first = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            yield Clone(name, int(first))


@contextlib.contextmanager
def shaped_link(clone: Clone, *words: str) -> Iterator[None]:
    """Shape the traffic of a client and its server while the block runs, with these words of tc(8)."""
    there = ("ip", "netns", "exec", clone.name)
    with (
        shaped(*words, device=f"veth-{clone.name}"),
        shaped(*words, device="inside", prefix=there),
    ):
        yield
