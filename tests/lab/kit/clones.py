"""Clients in namespaces of their own, as machines that were cloned from one image."""

from __future__ import annotations

import contextlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.lab.kit.shell import attempt, run, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        """Run a command there."""
        return run(*self._prefix, *argv, timeout=timeout)

    @property
    def _prefix(self) -> tuple[str, ...]:
        return ("nsenter", "--target", str(self.pid), "--mount", "--net", "--uts", "--pid")

    @property
    def identifier(self) -> str:
        """What its NFSv4 client was given."""
        return self.enter("cat", _IDENTIFIER).strip()

    def identify(self, text: str) -> None:
        self.enter("sh", "-c", f"echo {text} >{_IDENTIFIER}")

    def start_unit(self) -> None:
        """Run what the unit runs, as systemd would: the guest's own has the guest's namespaces."""
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
    def writing(self) -> Iterator[None]:
        """Write again and again while the block runs."""
        loop = f"while {_WRITE}; do sleep 0.5; done"
        # Without a fork, or the loop would outlive its parent.
        argv = [*self._prefix, "--no-fork", "sh", "-c", loop, f"{_POINT}/{self.name}"]
        with subprocess.Popen(argv) as process:
            try:
                yield
            finally:
                process.kill()

    def check(self, rules: str, sample_s: int) -> list[dict[str, Any]]:
        """Return what check finds there."""
        argv = [
            "nfstuned",
            "check",
            "--offline",
            "--select",
            rules,
            "--sample",
            str(sample_s),
            "--format",
            "json",
        ]
        found: list[dict[str, Any]] = json.loads(attempt(*self._prefix, *argv, timeout=180).stdout)[
            "findings"
        ]
        return found


@contextlib.contextmanager
def clone(number: int, machine_id: str, folder: Path) -> Iterator[Clone]:
    """Make a client that reaches the server through a veth pair of its own."""
    name, outside = f"clone{number}", f"veth-clone{number}"
    own = folder / name
    own.write_text(f"{machine_id}\n")
    run("ip", "netns", "add", name)
    try:
        run("ip", "link", "add", outside, "type", "veth", "peer", "name", "inside", "netns", name)
        run("ip", "address", "add", f"10.20.{number}.1/24", "dev", outside)
        run("ip", "link", "set", outside, "up")
        inside = ("ip", "-n", name)
        run(*inside, "address", "add", f"10.20.{number}.2/24", "dev", "inside")
        run(*inside, "link", "set", "inside", "up")
        run(*inside, "link", "set", "lo", "up")
        run(*inside, "route", "add", "default", "via", f"10.20.{number}.1")
        argv = ["ip", "netns", "exec", name, "unshare", "--mount", "--uts", "--propagation", "private"]
        argv += ["--pid", "--fork", "--kill-child", "--mount-proc"]
        argv += ["sh", "-c", f"{_NAMED} && {_READY}", "sh", str(own)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == b"ready\n"
                first = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
                yield Clone(name, int(first))
            finally:
                process.kill()
    finally:
        attempt("ip", "link", "del", outside)
        run("ip", "netns", "del", name)
