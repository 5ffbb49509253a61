"""TLS to the guest's server by stunnel, as the mount helper AZNFS sets it up: the image has no tlshd."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.lab.kit.server import ADDRESS
from tests.lab.kit.shell import program, run, wait_for

TLS_PORT = 20049
CONFIGURATION = Path(f"/etc/stunnel/microsoft/aznfs/nfsv4_fileShare/stunnel_{ADDRESS}.conf")
_SERVER, _PID = Path("/run/lab-stunnel.conf"), Path("/run/lab-stunnel.pid")
_KEY, _CERTIFICATE = Path("/run/lab-stunnel.key"), Path("/run/lab-stunnel.crt")
_REMOTE_PORT = 2050
_SLOWER = ("env", "OPENSSL_ia32cap=~0x200000200000000")
"""Without a processor's instructions for AES: the client's end is the limit, not the server's."""


@contextlib.contextmanager
def tunnel() -> Iterator[subprocess.Popen[bytes]]:
    """Carry 127.0.0.1:20049 through TLS to the guest's NFS server; gives the client's process."""
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=lab", "-days", "60"]
    run(*argv, "-keyout", str(_KEY), "-out", str(_CERTIFICATE))
    _SERVER.write_text(
        f"foreground = yes\npid =\n[nfs]\ncert = {_CERTIFICATE}\nkey = {_KEY}\n"
        f"accept = {ADDRESS}:{_REMOTE_PORT}\nconnect = {ADDRESS}:2049\n"
    )
    CONFIGURATION.parent.mkdir(parents=True, exist_ok=True)
    CONFIGURATION.write_text(
        f"CAFile = {_CERTIFICATE}\nverifyChain = yes\ncheckHost = lab\n"
        f"foreground = yes\npid = {_PID}\n[{ADDRESS}]\nclient = yes\n"
        f"accept = 127.0.0.1:{TLS_PORT}\nconnect = {ADDRESS}:{_REMOTE_PORT}\n"
    )
    with (
        program("stunnel4", str(_SERVER), stderr=subprocess.DEVNULL),
        program(*_SLOWER, "stunnel4", str(CONFIGURATION), stderr=subprocess.DEVNULL) as client,
    ):
        try:
            wait_for("both ends of the tunnel", lambda: {_REMOTE_PORT, TLS_PORT} <= _listening())
            yield client
        finally:
            CONFIGURATION.unlink()


def _listening() -> set[int]:
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].partition(":")[2], 16) for row in rows if row[3] == "0A"}
