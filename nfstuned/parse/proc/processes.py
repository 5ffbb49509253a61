"""What processes have open, and the sockets of a network namespace."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nfstuned.parse.fields import unescape

_MOUNT_ID = r"(?m)^mnt_id:\s*([0-9]{1,20})$"
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
    return sum(map(int, ran)) if len(ran) == _STIME + 1 - _UTIME and all(map(str.isdecimal, ran)) else None


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


_LISTENING = r"(?m)^ *[0-9]+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A "
"""The state 0A is TCP_LISTEN of the kernel's include/net/tcp_states.h."""


def parse_listening(text: str) -> frozenset[int] | None:
    """Return the ports on which something listens, at whichever address; None where the file is not there."""
    if not re.match(r" *sl +local_address ", text):
        return None
    return frozenset(int(port, 16) for port in re.findall(_LISTENING, text))
