"""Processes: their open files and waits, a tunnel's processor time, and the sockets of a namespace."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from nfstuned.model.kernel import decimal
from nfstuned.model.system import TunnelService
from nfstuned.parse.fields import clean_path, unescape
from nfstuned.parse.proc.mounts import node_at, parse_nodes
from nfstuned.parse.tree import FileTree

_MOUNT_ID = r"(?m)^mnt_id:\s*([0-9]{1,20})$"
_SERVICE = r"(?:^|[/\0])nfstuned(?:/__main__\.py)?\0daemon\0$"
_OF_ROOT = r"(?m)^Uid:\t0\t"
_UTIME, _STIME = 11, 12
"""The 14th and 15th field, behind the number and the name."""
_MAPPED = r"(?m)^\S+ \S+ \S+ ([0-9a-f]{1,8}):([0-9a-f]{1,8}) [1-9][0-9]* +(.*)$"
_BOUND = r"(?m)^\S+ \S+ \S+ \S+ \S+ \S+ +[0-9]+ (/.*)$"


def parse_mount_id(text: str) -> int | None:
    """Return the mount that an open file was opened on, from `/proc/PID/fdinfo/N` (proc_pid_fdinfo(5))."""
    match = re.search(_MOUNT_ID, text)
    return int(match[1]) if match else None


def parse_state(text: str) -> tuple[str, str]:
    """Return the name and the state of a task from `/proc/PID/task/TID/stat` (proc_pid_stat(5)), else "".

    A name may hold blanks and brackets: the last bracket ends it.
    """
    name, ended, rest = text.rpartition(") ")
    return (name.partition(" (")[2], rest[:1]) if ended else ("", "")


def parse_processor_ticks(text: str) -> int | None:
    """Return the clock ticks that a task ran so far, from the same file, in the kernel as well; else None."""
    fields = text.rpartition(") ")[2].split()
    ran = fields[_UTIME : _STIME + 1]
    known = len(ran) == _STIME + 1 - _UTIME and all(re.fullmatch("[0-9]{1,20}", each) for each in ran)
    return sum(map(int, ran)) if known else None


def parse_uptime(text: str) -> float | None:
    """Return the seconds since the boot from `/proc/uptime` (proc_uptime(5)); else None."""
    match = re.match(r"([0-9]{1,12}\.[0-9]{2}) ", text)
    return float(match[1]) if match else None


def parse_mapped(text: str) -> dict[str, str]:
    """Return the devices of the files in `/proc/PID/maps`, each with a file's name (proc_pid_maps(5))."""
    devices: dict[str, str] = {}
    for major, minor, path in re.findall(_MAPPED, text):
        devices.setdefault(f"{int(major, 16)}:{int(minor, 16)}", path)
    return devices


def parse_swaps(text: str) -> tuple[str, ...]:
    """Return the swap areas of `/proc/swaps` that are files (proc_swaps(5))."""
    rows = (line.split() for line in text.split("\n")[1:])
    return tuple(unescape(row[0]) for row in rows if len(row) > 1 and row[1] == "file")


def parse_exports(text: str) -> tuple[str, ...]:
    r"""Return the folders that this host's NFS server exports: `/proc/fs/nfsd/exports`, `/var/lib/nfs/etab`.

    Both begin a line with the folder (nfs-utils, support/export/xtab.c), a space in it as `\040`.
    """
    paths = (line.split(None, 1)[0] for line in text.split("\n") if line.startswith("/"))
    return tuple(dict.fromkeys(unescape(path) for path in paths))


def parse_unix(text: str) -> tuple[str, ...]:
    """Return the paths to which sockets are bound, from `/proc/net/unix` (proc_net(5))."""
    return tuple(dict.fromkeys(re.findall(_BOUND, text)))


def parse_layers(options: str) -> Iterator[str]:
    """Yield the folders that an overlay is made of, from the options of its superblock in mountinfo."""
    for option in options.split(","):
        name, _, value = option.partition("=")
        if name in {"lowerdir", "lowerdir+", "upperdir", "workdir"}:
            yield from (unescape(path) for path in value.split(":") if path.startswith("/"))


_TICKS_PER_S = 100
"""USER_HZ, the same on all architectures of today's distributions (include/uapi/asm-generic/param.h)."""
_TUNNEL_PROGRAMS = ("stunnel", "efs-proxy")
"""How the programs' names begin: the process of an old file may be any program by now."""
MOST_THREADS = 200


class TunnelThreads(NamedTuple):
    """The processor time of a tunnel's process until a moment of the kernel's clock, in seconds."""

    uptime_s: float
    all_s: float
    """The time of all its threads, those that ended as well."""
    taken_s: Mapping[str, float]
    """The time of each thread that it has, by the thread's number."""


def read_tunnel_threads(root: FileTree, pid_file: str) -> TunnelThreads | None:
    """Return the processor time that a tunnel took so far; None where its process is gone.

    The file of the process id (`pid` of its configuration) names the process. Reading a command line may wait
    for a dead server, so none is read.
    """
    pid = decimal(root.read_or_empty(clean_path(pid_file).lstrip("/")).strip()) if pid_file else None
    uptime_s = parse_uptime(root.read_or_empty("proc/uptime")) if pid is not None else None
    if uptime_s is None:
        return None
    process = root.read_or_empty(f"proc/{pid}/stat")
    all_ticks = parse_processor_ticks(process)
    if all_ticks is None or not parse_state(process)[0].startswith(_TUNNEL_PROGRAMS):
        return None
    taken_s: dict[str, float] = {}
    for thread in islice(root.names(f"proc/{pid}/task"), MOST_THREADS):
        ticks = parse_processor_ticks(root.read_or_empty(f"proc/{pid}/task/{thread}/stat"))
        if ticks is not None:
            taken_s[thread] = ticks / _TICKS_PER_S
    return TunnelThreads(uptime_s, all_ticks / _TICKS_PER_S, taken_s)


def read_tunnels(root: FileTree, services: Iterable[TunnelService]) -> dict[str, TunnelThreads]:
    """Return the processor time that each tunnel took so far, by the tunnel's configuration."""
    pid_files = {service.file: service.pid_file for service in services}
    threads = {file: read_tunnel_threads(root, pid_file) for file, pid_file in pid_files.items()}
    return {file: known for file, known in threads.items() if known is not None}


def tunnel_shares(
    before: Mapping[str, TunnelThreads], after: Mapping[str, TunnelThreads]
) -> dict[str, tuple[float, ...]]:
    """Return how much of a processor each thread of the tunnels had in between, the most first."""
    shares: dict[str, tuple[float, ...]] = {}
    for file, later in after.items():
        earlier = before.get(file)
        seconds = later.uptime_s - earlier.uptime_s if earlier is not None else 0
        if earlier is not None and seconds > 0:
            stayed = later.taken_s.keys() & earlier.taken_s
            taken_s = (later.taken_s[thread] - earlier.taken_s[thread] for thread in stayed)
            # The clock and a thread's time are not read at the same moment.
            shares[file] = tuple(sorted((min(1.0, each_s / seconds) for each_s in taken_s), reverse=True))
    return shares


_UNINTERRUPTIBLE = "D"
_PLACES = ("cwd", "root")
_MOST_PROCESSES, _MOST_FILES = 100, 100
"""How many of each are looked at."""


def read_waiters(root: FileTree, devices: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    """Return by superblock the programs that wait and have files or folders of it: "tar (812)".

    A program that waits to open its first file there looks like any other that waits. Only root sees
    the files of all users' programs.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for pid, name in _waiting(root):
        for device in _devices(root, pid) & devices:
            found[device].append(f"{name} ({pid})")
    return {device: tuple(names) for device, names in found.items()}


def runs_service(root: FileTree) -> bool:
    """Return whether a process of root's is nfstuned's service by its arguments, also in a container.

    A process of another user may have any arguments: it does not count. `/proc/PID/cmdline` has a NUL after
    each argument (proc_pid_cmdline(5)).
    """
    processes = (f"proc/{name}" for name in root.names("proc") if name.isdecimal())
    return any(
        re.search(_SERVICE, root.read_or_empty(f"{each}/cmdline")) is not None
        and re.search(_OF_ROOT, root.read_or_empty(f"{each}/status")) is not None
        for each in processes
    )


def _waiting(root: FileTree) -> Iterator[tuple[str, str]]:
    """Yield the processes with a thread that waits, the lowest number first."""
    left = _MOST_PROCESSES
    for pid in sorted((name for name in root.names("proc") if name.isdecimal()), key=int):
        for task in root.names(f"proc/{pid}/task"):
            name, state = parse_state(root.read_or_empty(f"proc/{pid}/task/{task}/stat"))
            if state == _UNINTERRUPTIBLE:
                yield pid, name
                left -= 1
                break
        if not left:
            return


def _devices(root: FileTree, pid: str) -> frozenset[str]:
    """Return the superblocks of a process's open files and of its folders."""
    nodes = parse_nodes(root.read_or_empty(f"proc/{pid}/mountinfo"))
    by_id = {node.mount_id: node.device for node in nodes}
    opened = (
        by_id.get(parse_mount_id(root.read_or_empty(f"proc/{pid}/fdinfo/{number}")) or 0)
        for number in root.names(f"proc/{pid}/fdinfo")[:_MOST_FILES]
    )
    paths = (root.link(f"proc/{pid}/{place}") for place in _PLACES)
    places = (node_at(path, nodes) for path in paths if path)
    return frozenset(filter(None, (*opened, *(node.device for node in places if node))))
