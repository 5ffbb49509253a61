"""A TLS tunnel that is the limit of its mounts: `nfstuned check --sample` names it, and them.

The tunnel's client has a processor, and its server another: both ends on one would share it.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.lab.kit import tls
from tests.lab.kit.check import findings
from tests.lab.kit.mounts import Mounts
from tests.lab.kit.server import SHARES, Server
from tests.lab.kit.shell import attempt, run

LOOKS = 3
CHECK = ("--offline", "--sample", "5", "--select", "NFS421")
ONE_CONNECTION = f"vers=4.1,noresvport,port={tls.PORT}"
READ = ("fio", "--name=read", "--thread", "--rw=read", "--size=64M")
MANY = ("--bs=1M", "--direct=1", "--ioengine=libaio", "--iodepth=16", "--time_based", "--runtime=300")
AGE_S = 2.0
"""mountstats counts ages in seconds."""
pytestmark = [pytest.mark.release, pytest.mark.usefixtures("stopped_daemon")]


@pytest.fixture(autouse=True)
def _any_port(_server: Server) -> Iterator[None]:
    """The server takes requests from stunnel's ports."""
    _server.start()
    _server.export(*SHARES, options="insecure")
    yield
    _server.export(*SHARES)


def test_a_tunnel_of_which_a_thread_has_all_of_a_processor(mount: Mounts) -> None:
    """With one connection a reader is as fast as one thread of stunnel; two mounts of the server share it."""
    with tls.tunnel():
        try:
            first, second = (mount(share, ONE_CONNECTION, host="127.0.0.1") for share in ("a", "b"))
            assert findings(*CHECK) == []
            argv = [*READ, f"--directory={first.point}"]
            run(*argv, "--fallocate=none", "--create_only=1")
            with subprocess.Popen([*argv, *MANY], stdout=subprocess.DEVNULL) as reader:
                try:
                    time.sleep(AGE_S)
                    looks = (findings(*CHECK) for _ in range(LOOKS))
                    found = next(filter(None, looks), [])
                    if not found:
                        print(attempt("top", "-b", "-H", "-d", "5", "-n", "2").stdout)
                finally:
                    reader.kill()
            (first.point / "read.0.0").unlink()
        finally:
            # Without the tunnel the unmount would wait for ever.
            mount.clean()
    print(f"\n  {found}")
    (only,) = found
    assert only.startswith(f"advice NFS421 {tls.CONFIGURATION}: in 5 s a thread of the tunnel had ")
    assert f"it is the limit for {first.point}, {second.point} together" in only
