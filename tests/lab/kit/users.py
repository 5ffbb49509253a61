"""An unprivileged user of the guest who makes the most of a user namespace of his own."""

from __future__ import annotations

import contextlib
import subprocess
from typing import TYPE_CHECKING

from tests.lab.kit.shell import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

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
            said = process.stdout.readline()
            wait_for("the bind mounts", lambda: said == "made\n" or process.poll() is not None)
            assert said == "made\n"
            yield process.pid
        finally:
            process.kill()
