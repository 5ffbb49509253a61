"""A Samba server in the guest, under the same addresses and names as its NFS server, and mounts of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.lab.kit.mounts import Mounted, table_device
from tests.lab.kit.server import ADDRESS, AZURE
from tests.lab.kit.shell import CommandError, attempt, run, wait_for

SHARE = "share"
PORT = 445
_PATH = Path("/srv/smb")
# A guest's session has no key, and without one the kernel cannot bind further channels to it.
_USER, _PASSWORD = "root", "lab"  # of a server in a guest that is thrown away
_ESTABLISHED, _LISTENING = "01", "0A"
_FOLDERS = ("private", "lock", "state", "cache", "pid", "ncalrpc")
_PATIENCE_S = 60.0


@contextlib.contextmanager
def samba(*, rss: bool = True) -> Iterator[None]:
    """Serve /srv/smb at ADDRESS while the block runs.

    The kernel opens several channels to one interface only where the server announces that it spreads them
    over processors (RSS). The loopback device does not, so that the configuration does.
    """
    _PATH.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lab-samba-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in _FOLDERS:
            (folder / part).mkdir()
        configuration = folder / "smb.conf"
        configuration.write_text(_configuration(folder, rss=rss))
        _add_user(configuration)
        log = folder / "smbd.out"
        argv = ["smbd", "--foreground", "--no-process-group", f"--configfile={configuration}"]
        # A session of its own, so that the processes of its clients end with it; smbd must not want another.
        # In the foreground it ends with a standard input that is a pipe.
        with (
            log.open("w") as output,
            subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            ) as process,
        ):
            try:
                wait_for("smbd listens", lambda: _count(_LISTENING, "local") > 0, _PATIENCE_S)
                yield
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
        wait_for("smbd is gone", lambda: _count(_LISTENING, "local") == 0, _PATIENCE_S)


def mount(point: Path, options: str = "", *, host: str = AZURE) -> Mounted:
    """Mount the share with mount(8); raise CommandError with the kernel's words when it is refused."""
    source = f"//{host}/{SHARE}"
    login = f"username={_USER},password={_PASSWORD}"
    argv = ["mount", "-t", "cifs", "-o", ",".join(filter(None, (login, options))), source, str(point)]
    try:
        run(*argv)
    except CommandError as error:
        raise CommandError(f"{error}\n{attempt('dmesg').stdout[-2000:]}") from None
    device = table_device(point)
    assert device is not None, f"{point} is not in mountinfo"
    return Mounted(source, point, device)


def connections() -> int:
    """Return how many connections the client has to the server, as TCP counts them."""
    return _count(_ESTABLISHED, "remote")


def _configuration(folder: Path, *, rss: bool) -> str:
    interface = f"{ADDRESS};speed=1000000000" + (",capability=RSS" if rss else "")
    own = "".join(
        f"{name} = {folder / part}\n"
        for name, part in (
            ("private dir", "private"),
            ("lock directory", "lock"),
            ("state directory", "state"),
            ("cache directory", "cache"),
            ("pid directory", "pid"),
            ("ncalrpc dir", "ncalrpc"),
            ("log file", "log"),
        )
    )
    return (
        "[global]\nserver role = standalone server\nworkgroup = LAB\nnetbios name = LAB\n"
        "disable netbios = yes\nsmb ports = 445\nload printers = no\nprintcap name = /dev/null\n"
        "disable spoolss = yes\npassdb backend = tdbsam\nserver min protocol = SMB2_10\n"
        "server multi channel support = yes\nbind interfaces only = yes\n"
        f'interfaces = "{interface}"\n{own}'
        f"[{SHARE}]\npath = {_PATH}\nread only = no\n"
    )


def _add_user(configuration: Path) -> None:
    done = attempt(
        *("smbpasswd", "-c", str(configuration), "-s", "-a", _USER), stdin=f"{_PASSWORD}\n{_PASSWORD}\n"
    )
    if done.returncode:
        raise CommandError(f"smbpasswd: status {done.returncode}\n{done.stdout}{done.stderr}")


def _count(state: str, side: str) -> int:
    """Return how many sockets of the state have SMB's port at one side (/proc/net/tcp)."""
    column = {"local": 1, "remote": 2}[side]
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[3] == state and int(row[column].partition(":")[2], 16) == PORT for row in rows)
