"""The daemon's loop with synthetic events on a tree: python -m tests.bench.events PRESENT EVENTS [trace].

Prints a line of JSON at each STEP events. So many superblocks stay; others come in waves and go in waves.
Each event changes the files as the kernel does; the kernel's events of a wave are followed by udev's. Only
the sources of events are replaced: the loop, its looks, the records and the watches of writes are the
daemon's own.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from nfstuned.daemon import loop
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Journal
from nfstuned.model.kernel import Uevent
from tests.tree import put

AZURE, KB = "sa1.file.core.windows.net", 15360
WAVE = 20
STEP = 10_000
MEMORY = "/dev/shm"  # noqa: S108
"""A file system that gives no inode twice, as sysfs."""
_FSID = "0:0"
_VOLUMES = "NV SERVER   PORT DEV          FSID                              FSC\n"


class Tree:
    """A host's files, with superblocks that stay; more of them come and go as the events say."""

    def __init__(self, folder: Path, present: int) -> None:
        self.folder = folder
        self._devices = {f"0:{number}": None for number in range(1, present + 1)}
        for device in self._devices:
            self._bdi(device)
        put(
            folder / "proc/1/net/nfsfs/servers",
            f"NV SERVER   PORT USE HOSTNAME\nv4 0a0a0a0a  801 9 {AZURE}\n",
        )
        self._save()

    def values(self) -> set[int]:
        """Return the read-aheads that superblocks have."""
        return {int((self._file(device)).read_text().split()[0]) for device in self._devices}

    def events(self, number: int) -> Iterator[Uevent | None]:
        """Make the changes of so many events, each when it is asked for; None ends a wave."""
        first = len(self._devices) + 1
        for _ in range(0, number, 2 * WAVE):
            for action in ("add", "remove"):
                for device in (f"0:{at}" for at in range(first, first + WAVE)):
                    self._change(device, action)
                    yield Uevent(action, "bdi", device)
                yield None

    def _change(self, device: str, action: str) -> None:
        if action == "add":
            self._devices[device] = None
            self._bdi(device)
        else:
            del self._devices[device]
            self._file(device).unlink()
            self._file(device).parent.rmdir()
        self._save()

    def _file(self, device: str) -> Path:
        return self.folder / "sys/class/bdi" / device / "read_ahead_kb"

    def _bdi(self, device: str) -> None:
        put(self._file(device), "128\n")

    def _save(self) -> None:
        rows = (
            f"v4 0a0a0a0a  801 {device:<12} 0:0                               no \n"
            for device in self._devices
        )
        put(self.folder / "proc/1/net/nfsfs/volumes", _VOLUMES + "".join(rows))
        lines = (
            f"{30 + at} 24 {device} / /mnt/{device[2:]} rw shared:9 - nfs4 {AZURE}:/a/{device[2:]} "
            "rw,vers=4.2,rsize=262144,addr=10.10.10.10\n"
            for at, device in enumerate(self._devices)
        )
        put(self.folder / "proc/1/mountinfo", "".join(lines))


class Source:
    """A source of events that has always something to read, and urgent data as a changed mount table has."""

    def __init__(self, *_: Root) -> None:
        self._pair = socket.socketpair()
        self._pair[1].send(b"x", socket.MSG_OOB)
        self._pair[1].send(b"x")

    def fileno(self) -> int:
        return self._pair[0].fileno()


class Udev(Source):
    """udev's events: those of the wave that the kernel has sent."""

    waiting: list[Uevent]

    def __init__(self) -> None:
        super().__init__()
        self.waiting = []

    def drain(self) -> list[Uevent]:
        events, self.waiting = self.waiting, []
        return events


class Kernel(Source):
    """The kernel's events: a wave for each cycle of the loop, and the end after the last one."""

    def __init__(self, tree: Tree, udev: Udev, number: int) -> None:
        super().__init__()
        self._udev, self._number = udev, number
        self._events = tree.events(number)
        self._served = 0
        self._wave_ended = False
        self._began_s, self._cpu_s = time.perf_counter(), time.process_time()
        self._own_s = 0.0
        """The CPU time of the tree's changes, which are not the daemon's work."""

    def next(self) -> Uevent | None:
        if self._wave_ended and self._udev.waiting:
            return None
        self._wave_ended = False
        before = time.process_time()
        event = next(self._events, None)
        self._own_s += time.process_time() - before
        if event is None:
            self._wave_ended = True
            if self._served >= self._number:
                os.kill(os.getpid(), signal.SIGTERM)
            return None
        self._udev.waiting.append(event)
        self._served += 1
        if self._served % min(STEP, self._number) == 0:
            self._report()
        return event

    def _report(self) -> None:
        status = Path("/proc/self/status").read_text().splitlines()
        rss = next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
        row: dict[str, float] = {
            "events": self._served,
            "rss_kb": rss,
            "descriptors": len(os.listdir("/proc/self/fd")),
        }
        if tracemalloc.is_tracing():
            row["traced_kb"] = tracemalloc.get_traced_memory()[0] // 1024
        began_s, cpu_s = time.perf_counter(), time.process_time()
        times = {
            "seconds": round(began_s - self._began_s, 2),
            "cpu_s": round(cpu_s - self._cpu_s - self._own_s, 2),
        }
        print(json.dumps(row | times), flush=True)
        self._began_s, self._cpu_s, self._own_s = began_s, cpu_s, 0.0


def main(present: int, number: int) -> int:
    """Serve so many events; return the exit status: 1 where a superblock has not its value."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        tree, udev = Tree(Path(folder), present), Udev()
        with patch.multiple(
            loop,
            KernelEvents=lambda: Kernel(tree, udev, number),
            UdevEvents=lambda: udev,
            MountTable=Source,
        ):
            loop.Daemon(Root(folder), Journal(lambda *_: None)).run()
        return 0 if tree.values() == {KB} else 1


if __name__ == "__main__":
    if sys.argv[3:] == ["trace"]:
        tracemalloc.start()
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
