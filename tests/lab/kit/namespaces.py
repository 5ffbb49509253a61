"""Mounts in other namespaces than the daemon's, also those of an unprivileged user."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.lab.kit.mounts import Mounted, table_device
from tests.lab.kit.shell import attempt, program, run, wait_for

NETWORK = "elsewhere"


@contextlib.contextmanager
def network(name: str = NETWORK, number: int = 0) -> Iterator[str]:
    """Make a network namespace that reaches the server's addresses through a veth pair.

    Its devices are veth-NAME outside and `inside` there, its network is 10.20.NUMBER.0/24.
    """
    outside, inside = f"veth-{name}", ("ip", "-n", name)
    run("ip", "netns", "add", name)
    try:
        run("ip", "link", "add", outside, "type", "veth", "peer", "name", "inside", "netns", name)
        run("ip", "address", "add", f"10.20.{number}.1/24", "dev", outside)
        run("ip", "link", "set", outside, "up")
        run(*inside, "address", "add", f"10.20.{number}.2/24", "dev", "inside")
        run(*inside, "link", "set", "inside", "up")
        run(*inside, "link", "set", "lo", "up")
        run(*inside, "route", "add", "default", "via", f"10.20.{number}.1")
        yield name
    finally:
        attempt("ip", "link", "del", outside)
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
    # The namespace goes with its last process, and the mount with it.
    with program(*argv) as process:
        wait_for(f"a mount at {point}", lambda: table_device(point, process.pid) is not None)
        device = table_device(point, process.pid)
        assert device is not None
        yield Mounted(source, point, device)


_LATE = """
import ctypes, os, socket, sys, time
source, point, seconds = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        sys.exit(f"{number}{arguments}: {os.strerror(ctypes.get_errno())}")
    return result
FSOPEN, FSCONFIG, FSMOUNT, MOVE_MOUNT = 430, 431, 432, 429
SET_STRING, CREATE, EMPTY_PATH, HERE = 1, 6, 4, -100
context = call(FSOPEN, b"nfs4", 0)
address = socket.gethostbyname(source.partition(":")[0])
for key, value in (("source", source), ("vers", "4.2"), ("addr", address), ("clientaddr", "0.0.0.0")):
    call(FSCONFIG, context, SET_STRING, key.encode(), value.encode(), 0)
call(FSCONFIG, context, CREATE, None, None, 0)
mount = call(FSMOUNT, context, 0, 0)
print("made", flush=True)
time.sleep(float(seconds))
call(MOVE_MOUNT, mount, b"", HERE, point.encode(), EMPTY_PATH)
time.sleep(1000)
"""
"""fsopen(2), fsmount(2) and move_mount(2): the superblock is there long before its mount has a place."""


@contextlib.contextmanager
def late_mount(source: str, point: Path, after_s: float) -> Iterator[Mounted]:
    """As `hidden_mount`, but the mount gets its place so many seconds after its superblock was made."""
    argv = ("unshare", "--mount", "--propagation", "private", "python3", "-c", _LATE)
    with program(*argv, source, str(point), str(after_s)) as process:
        wait_for(f"a mount at {point}", lambda: table_device(point, process.pid) is not None)
        device = table_device(point, process.pid)
        assert device is not None
        yield Mounted(source, point, device)


NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
OWN_NAMESPACES = (*NOBODY, "unshare", "--user", "--map-root-user", "--mount")
_BINDS = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
os.chdir("/tmp")
for _ in range(14):
    name = " " * 250
    os.mkdir(name)
    os.chdir(name)
for _ in range(int(sys.argv[1])):
    if libc.mount(b".", b".", None, 4096, None):
        sys.exit(os.strerror(ctypes.get_errno()))
print("made", flush=True)
sys.stdin.read()
"""
"""Each blank is four bytes in mountinfo, in the mount point and in the root: 28 kB a bind mount."""
BYTES_A_BIND = 28_000


@contextlib.contextmanager
def many_bind_mounts(count: int) -> Iterator[int]:
    """Have `nobody` bind mount a folder with a long name so many times; yield a process that sees them."""
    argv = [*OWN_NAMESPACES, "python3", "-c", _BINDS, str(count)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            output = process.stdout.readline()
            wait_for("the bind mounts", lambda: output == "made\n" or process.poll() is not None)
            assert output == "made\n"
            yield process.pid
        finally:
            process.kill()
