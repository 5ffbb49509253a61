"""Neither a user of the machine nor a server's names harm the service or another mount."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.kit.daemon import Daemon, status_rows
from tests.lab.kit.load import sockets
from tests.lab.kit.metrics import TEXTFILE, series, total
from tests.lab.kit.mounts import Mounted, Mounts
from tests.lab.kit.namespaces import BYTES_A_BIND, OWN_NAMESPACES, hidden_mount, many_bind_mounts
from tests.lab.kit.server import AZURE
from tests.lab.kit.shell import attempt, tuned
from tests.lab.kit.unit import let_tick

pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("quiet_udev")]

HOST, PORT = "127.0.0.2", 20490
_NFS = ("127.0.0.1", 2049)
_EXCHANGE_ID = 42
_LAST = 1 << 31
"""The bit of a record's length for its last fragment (RFC 5531, section 11)."""


@contextlib.contextmanager
def named(name: bytes, domain: bytes) -> Iterator[None]:
    """Serve at HOST and PORT under this implementation name and domain while the block runs.

    No connection to the guest's own server is left: other scenarios count these.
    """
    servers: list[socket.socket] = []
    with socket.create_server((HOST, PORT)) as listening:
        threading.Thread(target=_accept, args=(listening, servers, name, domain), daemon=True).start()
        try:
            yield
        finally:
            for connection in (listening, *servers):
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


def _accept(listening: socket.socket, servers: list[socket.socket], name: bytes, domain: bytes) -> None:
    with contextlib.suppress(OSError):
        while True:
            client, _ = listening.accept()
            server = _connected()
            servers.append(server)
            threading.Thread(target=_ask, args=(client, server), daemon=True).start()
            threading.Thread(target=_answer, args=(server, client, name, domain), daemon=True).start()


def _connected() -> socket.socket:
    """Return a connection to the server from a port that only root may use: others it refuses."""
    for port in range(1023, 600, -1):
        with contextlib.suppress(OSError):
            return socket.create_connection(_NFS, source_address=(_NFS[0], port))
    raise OSError("no port is free below 1024")


def _ask(client: socket.socket, server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := client.recv(1 << 16):
            server.sendall(data)
    server.close()


def _answer(server: socket.socket, client: socket.socket, name: bytes, domain: bytes) -> None:
    with contextlib.suppress(OSError, EOFError), server.makefile("rb") as stream:
        while header := stream.read(4):
            (length,) = struct.unpack(">I", header)
            record = renamed(stream.read(length & ~_LAST), name, domain) if length & _LAST else b""
            client.sendall(struct.pack(">I", len(record) | _LAST) + record)
    client.close()


def renamed(reply: bytes, name: bytes, domain: bytes) -> bytes:
    """Return a server's reply; in an answer to EXCHANGE_ID the server's names are replaced."""
    # Behind the verifier: accepted, status, tag, number of operations.
    at = 16 + _padded(reply, 16)
    if reply[at : at + 8] != bytes(8):
        return reply
    at += 8
    at += _padded(reply, at) + 4
    operation, status = struct.unpack_from(">II", reply, at)
    if (operation, status) != (_EXCHANGE_ID, 0):
        return reply
    at += 8 + 8 + 4 + 4  # the client id, its sequence and flags
    (protection,) = struct.unpack_from(">I", reply, at)
    assert protection == 0, "SP4_NONE"
    at += 4
    # Another owner and scope: or the client takes this for the server that it knows already.
    owner = bytes(8) + _opaque(b"hostile " + name[:8]) + _opaque(b"hostile")
    date = struct.pack(">QI", 0, 0)
    return reply[:at] + owner + struct.pack(">I", 1) + _opaque(domain) + _opaque(name) + date


def _padded(data: bytes, at: int) -> int:
    """Return the bytes of a field of a length, with its length and its padding to four."""
    return 4 + (int.from_bytes(data[at : at + 4], "big") + 3) // 4 * 4


def _opaque(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


MOUNTINFO = 300_000_000
OFTEN = '[daemon]\nsample_interval = "2s"\n'
MOST_KB = 60_000
CONFIGURATION = f"""[daemon]
sample_interval = "1s"

[prometheus]
textfile = "{TEXTFILE}"
"""
END = b"',domain='d',date='0,0'\n"
NINES = b"9 9 9 9 9 9 9 9 "
MOST = 1024
"""Bytes that a client takes of each name (NFS4_OPAQUE_LIMIT)."""


@pytest.mark.release
def test_a_mountinfo_of_300_mb_costs_the_service_nothing(stopped_daemon: Daemon, mount: Mounts) -> None:
    daemon = stopped_daemon
    daemon.start(OFTEN)
    pid, before = daemon.pid, daemon.rss_kb
    with many_bind_mounts(MOUNTINFO // BYTES_A_BIND) as user:
        start = Path(f"/proc/{user}/mountinfo").open("rb")  # noqa: SIM115 - only so much of it
        with start:
            assert b"\\040" * 250 in start.read(4_000_000)
        mounted = mount("a")
        tuned(15360, mounted)
        # A superblock that no mount explains sends it to the namespaces of all processes.
        with hidden_mount(f"{AZURE}:/srv/b", mount.new_point(), "vers=4.2") as hidden:
            tuned(15360, hidden)
            let_tick(daemon)
        print(f"RSS {before} KiB before, {daemon.rss_kb} KiB after")
        assert daemon.rss_kb < MOST_KB
    assert daemon.pid == pid
    assert daemon.show("NRestarts") == "0"


def test_nobody_mounts_nfs_in_a_user_namespace_of_his_own(mount: Mounts) -> None:
    """So each mount there is a copy of another namespace's."""
    argv = ("mount", "-t", "nfs", "-o", "vers=4.2", f"{AZURE}:/srv/a", str(mount.new_point()))
    done = attempt(*OWN_NAMESPACES, *argv)
    assert done.returncode != 0
    assert "permi" in done.stderr.lower(), done.stderr


def forged(victim: Mounted) -> bytes:
    """Return the rest of a mount, and the victim's as the server would have it."""
    return (
        b"\tcaps:\tcaps=0x1\n\tbytes:\t" + NINES + b"\n\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"
        b"\tper-op statistics\n\t        READ: 9 9 9 9 9 9 9 9 9\n\n"
        + f"device {AZURE}:/srv/a mounted on {victim.point} with fstype nfs4 statvers=1.1\n".encode()
        + b"\topts:\trw\n\tage:\t9\n\timpl_id:\tname='n"
        + END
        + b"\tbytes:\t"
        + NINES
        + b"\n"
    )


@pytest.mark.release
def test_a_servers_name_changes_no_figure_of_another_mount(stopped_daemon: Daemon, mount: Mounts) -> None:
    stopped_daemon.start(CONFIGURATION)
    victim = mount("a", "vers=4.1")
    (victim.point / "file").write_bytes(b"x" * 5000)
    tuned(15360, victim)
    let_tick(stopped_daemon)
    lie = forged(victim)
    hostile_names = (
        (b"n" + END + lie, b"d"),
        (b"n", b"d',date='0,0'\n" + lie),
        (b"n" + END + lie + b"\tper-op statistics\n\n", b""),
    )
    for name, domain in hostile_names:
        assert max(len(name), len(domain)) <= MOST
        with named(name, domain):
            hostile = mount("b", f"vers=4.1,port={PORT}", host=HOST)
            assert name in Path("/proc/self/mountstats").read_bytes(), "the kernel has changed it"
            for _ in range(2):  # the file of a sample is whole by the next
                let_tick(stopped_daemon)
            _is_honest(victim, hostile)
            mount.umount(hostile)
    assert sockets().number == 1, "the victim's, and none of a server that is gone"


def _is_honest(victim: Mounted, hostile: Mounted) -> None:
    """nfstuned reports none of the forged numbers, and no mount that does not exist."""
    counters = victim.stats.bytes
    assert counters is not None
    assert (counters.normal_written, counters.server_written, counters.server_read) == (5000, 5000, 0)
    assert hostile.stats.point == str(hostile.point)
    rows = status_rows()
    assert set(rows) == {str(victim.point), str(hostile.point)}
    assert rows[str(victim.point)]["profile"] == "azure-files"
    assert victim.read_ahead_kb == 15360
    found = series(TEXTFILE.read_text())
    written = total(found, "nfstuned_mount_server_written_bytes_total", mount_point=str(victim.point))
    assert written == 5000
