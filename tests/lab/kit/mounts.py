"""Mounts of the guest: made as an administrator makes them, and read from the kernel's own files."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nfstuned.errors import ParseError
from nfstuned.model.kernel import MountStats, NfsClient
from nfstuned.parse.proc.mounts import SERVERS, parse_clients
from nfstuned.parse.proc.mountstats import parse_mountstats
from tests.lab.kit import server
from tests.lab.kit.shell import CommandError, attempt, run

BDI = Path("/sys/class/bdi")
SUPERBLOCKS = Path("/sys/fs/nfs")
"""A folder for each superblock, since Linux 6.5."""
DEBUGFS = Path("/sys/kernel/debug")
_POINTS = Path("/mnt/lab")
_MOUNT_S = 150.0
"""More than a server's lease of 90 s: a mount of 4.2 on 5.10 was seen to wait for a minute."""
_CLEAN_S = 180.0
"""One umount(8) for all: hundreds of processes would take a minute."""


@dataclass(frozen=True)
class Mounted:
    """A mount and its device number when it was made: asking again would hang on a dead server."""

    source: str
    point: Path
    device: str

    @property
    def read_ahead_kb(self) -> int:
        return read_ahead_kb(self.device)

    @property
    def options(self) -> dict[str, str]:
        """The options that /proc/self/mounts shows; a flag has an empty value."""
        return options_at(self.point)

    @property
    def stats(self) -> MountStats:
        return stats_at(self.point)

    @property
    def reads(self) -> int:
        """The number of READs since it was made; NFSv4.2 may count them as READ_PLUS."""
        return reads_at(self.point)


def options_at(point: Path) -> dict[str, str]:
    """Return the options of the NFS or SMB mount at a point; LookupError without one."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, at, kind, options, *_ = line.split(" ")
        if at == str(point) and kind in {"nfs", "nfs4", "cifs"}:
            pairs = (option.partition("=") for option in options.split(","))
            return {name: value for name, _, value in pairs}
    raise LookupError(f"{point} is not mounted")


def stats_at(point: Path) -> MountStats:
    stanzas = parse_mountstats(Path("/proc/self/mountstats").read_bytes())
    (mine,) = [one for one in stanzas if isinstance(one, MountStats) and one.point == str(point)]
    return mine


def reads_at(point: Path) -> int:
    ops = stats_at(point).ops
    return sum(ops[name].ops for name in ("READ", "READ_PLUS") if name in ops)


def volumes() -> set[str]:
    """Return the device numbers of this network namespace's superblocks, from nfsfs."""
    rows = Path("/proc/fs/nfsfs/volumes").read_text().splitlines()[1:]
    return {row.split()[3] for row in rows}


def read_ahead_kb(device: str) -> int:
    return int((BDI / device / "read_ahead_kb").read_text())


def set_read_ahead_kb(device: str, value: int) -> None:
    """Set a device's read-ahead in KiB, as a rival would."""
    (BDI / device / "read_ahead_kb").write_text(f"{value}\n")


def requests_of(device: str) -> str:
    """Return the requests that the kernel lists for a superblock's RPC client (Linux 6.5). Raises OSError."""
    client = int((SUPERBLOCKS / device / "nfs_client").readlink().name.removeprefix("clnt-"))
    return (DEBUGFS / f"sunrpc/rpc_clnt/{client:x}/tasks").read_text()


def device_of(path: Path) -> str:
    """Return `major:minor` of the file system that holds a path; it hangs on a dead server."""
    number = path.stat().st_dev
    return f"{os.major(number)}:{os.minor(number)}"


def all_read_ahead_kb() -> dict[str, str]:
    """Return the raw value of every device of the guest, NFS or not; those that go meanwhile are left out."""
    found = {}
    for folder in BDI.iterdir():
        with contextlib.suppress(FileNotFoundError):
            found[folder.name] = (folder / "read_ahead_kb").read_text()
    return found


def table_device(point: Path, process: int | str = "self") -> str | None:
    """Return the device number of a mount from a process's mountinfo, without a word to the server."""
    rows = [line.split(" ") for line in Path(f"/proc/{process}/mountinfo").read_text().splitlines()]
    return next((row[2] for row in reversed(rows) if row[4] == str(point)), None)


def line_of(mounted: Mounted) -> str:
    """Return the mount's line of mountinfo: its id, device and options are those of this very mount."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    (found,) = [line for line in lines if line.split()[4] == str(mounted.point)]
    return found


@dataclass
class Mounts:
    """Makes mounts, below /mnt/lab by default, and takes them all away at the end."""

    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _elsewhere: set[Path] = field(default_factory=set)

    def __call__(
        self,
        share: str = "a",
        options: str = "vers=4.2",
        *,
        host: str = server.AZURE,
        point: Path | None = None,
    ) -> Mounted:
        """Mount `host`:/srv/`share` with mount(8); raise CommandError when it is refused."""
        if point is None:
            point = self.new_point()
        else:
            self._elsewhere.add(point)
        source = f"{host}:/srv/{share}"
        argv = ["mount", "-t", "nfs", "-o", options, source, str(point)]
        run(*argv, timeout=_MOUNT_S)
        return Mounted(source, point, device_of(point))

    def bind(self, mounted: Mounted) -> Mounted:
        """Make the same superblock visible at another place."""
        point = self.new_point()
        run("mount", "--bind", str(mounted.point), str(point))
        return Mounted(mounted.source, point, mounted.device)

    def new_point(self) -> Path:
        # One call, so that threads never get the same.
        point = _POINTS / str(next(self._numbers))
        point.mkdir(parents=True, exist_ok=True)
        return point

    def umount(self, mounted: Mounted, *, lazy: bool = False) -> None:
        """Unmount; `lazy` detaches while files are open."""
        run("umount", *(["--lazy"] if lazy else []), str(mounted.point))

    def clean(self) -> None:
        """Unmount whatever is left, innermost first, by force at last."""
        if points := self._mounted():
            with contextlib.suppress(subprocess.TimeoutExpired):
                attempt("umount", *(str(point) for point in reversed(points)), timeout=_CLEAN_S)
        for point in reversed(self._mounted()):
            attempt("umount", "--force", "--lazy", str(point))
        if left := self._mounted():
            raise CommandError(f"still mounted: {left}")

    def _mounted(self) -> list[Path]:
        fields = [line.split(" ") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        points = [Path(re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), row[4])) for row in fields]
        return [point for point in points if _POINTS in point.parents or point in self._elsewhere]


def nfs_clients() -> list[NfsClient]:
    """Return the nfs_clients that the kernel has, each row understood."""
    rows = parse_clients(Path(SERVERS).read_text())
    assert not [row for row in rows if isinstance(row, ParseError)]
    return [row for row in rows if isinstance(row, NfsClient)]


def announce(count: int, device: str, action: str = "change") -> None:
    """Let the kernel announce a device once more, `count` times (Documentation/ABI/testing/sysfs-uevent)."""
    file = BDI / device / "uevent"
    with file.open("w") as opened:
        for _ in range(count):
            opened.write(f"{action}\n")
            opened.flush()
