"""The faults of docs/reliability.md: calls of the daemon, the files at which they fail, and their errors.

strace(1) of a start, a mount, a sample, a reload and a stop has shown the calls. An error is in the list if a
kernel can give it for that file. close(2) is not: an injected error leaves the descriptor open, unlike a
kernel's.
"""

from __future__ import annotations

from dataclasses import dataclass

STATE = "/run/nfstuned"
WAITING = "rpc_clnt"
"""The file that is read only where a request may wait for its server."""
_DEVICES = [f"0:{minor}" for minor in range(20, 120)]
"""The anonymous device numbers that the guest's mounts get."""
FILES: dict[str, tuple[str, ...]] = {
    "any file": (),
    "read_ahead_kb": tuple(
        f"/sys/{folder}/{device}/read_ahead_kb"
        for folder in ("class/bdi", "devices/virtual/bdi")
        for device in _DEVICES
    ),
    "/sys/class/bdi": ("/sys/class/bdi",),
    "a record": tuple(f"{STATE}/read-ahead/{device}" for device in _DEVICES),
    "the records' folder": (f"{STATE}/read-ahead",),
    "/run/nfstuned": (STATE,),
    "the samples' file": (f"{STATE}/samples.jsonl",),
    "nfsfs": ("/proc/1/net/nfsfs/volumes", "/proc/1/net/nfsfs/servers"),
    "mountinfo": ("/proc/1/mountinfo",),
    "mountstats": ("/proc/1/mountstats",),
    "vmstat": ("/proc/vmstat",),
    "chassis_asset_tag": tuple(
        f"/sys/{folder}/dmi/id/chassis_asset_tag" for folder in ("class", "devices/virtual")
    ),
    WAITING: ("/sys/kernel/debug/sunrpc/rpc_clnt",),
    "nfstuned.toml": ("/etc/nfstuned/nfstuned.toml",),
    "conf.d": ("/etc/nfstuned/conf.d",),
    "builtin.json": ("/usr/lib/nfstuned/nfstuned/data/builtin.json",),
    "libudev": ("/lib/x86_64-linux-gnu/libudev.so.1", "/usr/lib/x86_64-linux-gnu/libudev.so.1"),
    "any file, also of the metrics": (),
    "/run/nfstuned, also for the metrics": (STATE,),
    "the kernel's events": (),
    "udev's events": (),
}
"""By the name in the table: the paths to which strace(1) limits a fault (-P); without any, all calls fail."""
GROUPS = {"the kernel's events": 1, "udev's events": 2}
"""The multicast groups of the two netlink sockets, by which they are found."""


@dataclass(frozen=True)
class Call:
    """A system call that fails at a file, with each of the errors in turn."""

    phase: str
    name: str
    file: str
    errors: tuple[str, ...]
    when: str = "1+"
    """Which of the calls fail, as in strace(1): all, or the first where a kernel gives the error once."""
    children: bool = False
    """Whether the calls of children fail as well: of the child that validates the configuration, and of the
    child that writes the metrics."""


def _call(phase: str, name: str, file: str, errors: str, when: str = "1+") -> Call:
    return Call(phase, name, file, tuple(errors.split()), when)


def _child(phase: str, name: str, file: str, errors: str) -> Call:
    return Call(phase, name, file, tuple(errors.split()), children=True)


CLONE = "clone,clone3,vfork"
START, CYCLE, RELOAD, STOP = PHASES = ("start", "cycle", "reload", "stop")
CALLS = (
    _call(START, "mkdir", "the records' folder", "ENOSPC EROFS EACCES"),
    _call(START, "chmod", "the records' folder", "EPERM EROFS"),
    _call(START, "openat", "/sys/class/bdi", "EMFILE EIO"),
    _call(START, "getdents64", "/sys/class/bdi", "EIO"),
    _call(START, "newfstatat", "read_ahead_kb", "EIO"),
    _call(START, "openat", "read_ahead_kb", "EMFILE EACCES"),
    _call(START, "openat", "the records' folder", "EMFILE EIO"),
    _call(START, "socket", "any file", "EMFILE EAFNOSUPPORT ENOBUFS"),
    _call(START, "bind", "any file", "EPERM ENOMEM"),
    _call(START, "openat", "libudev", "EMFILE EACCES"),
    _call(START, "inotify_init1", "any file", "EMFILE ENOSYS"),
    _call(START, "openat", "mountinfo", "EMFILE EACCES"),
    _call(START, "socketpair", "any file", "EMFILE"),
    _call(START, "epoll_create1", "any file", "EMFILE ENOMEM"),
    _call(START, "epoll_ctl", "any file", "ENOMEM ENOSPC"),
    _call(START, "openat", "builtin.json", "EMFILE EIO"),
    _call(START, "read", "read_ahead_kb", "EIO"),
    _call(START, "pwrite64", "read_ahead_kb", "EIO"),
    _call(START, "write", "a record", "ENOSPC"),
    _call(START, "sendmsg", "any file", "ECONNREFUSED"),
    _call(CYCLE, "openat", "read_ahead_kb", "EMFILE EACCES EROFS EIO"),
    _call(CYCLE, "newfstatat", "read_ahead_kb", "EIO"),
    _call(CYCLE, "fstat", "read_ahead_kb", "EIO"),
    _call(CYCLE, "pread64", "read_ahead_kb", "EIO ENODEV"),
    _call(CYCLE, "pwrite64", "read_ahead_kb", "EIO EINVAL ENOMEM"),
    _call(CYCLE, "read", "read_ahead_kb", "EIO"),
    _call(CYCLE, "openat", "/sys/class/bdi", "EMFILE EIO"),
    _call(CYCLE, "getdents64", "/sys/class/bdi", "EIO ENOMEM"),
    _call(CYCLE, "openat", "a record", "ENOSPC EROFS EMFILE EIO"),
    _call(CYCLE, "write", "a record", "ENOSPC EIO"),
    _call(CYCLE, "fchmod", "a record", "EPERM"),
    _call(CYCLE, "read", "a record", "EIO"),
    _call(CYCLE, "unlink", "a record", "EROFS"),
    _call(CYCLE, "openat", "nfsfs", "EMFILE EACCES"),
    _call(CYCLE, "read", "nfsfs", "EIO"),
    _call(CYCLE, "openat", "mountinfo", "EMFILE ENOMEM"),
    _call(CYCLE, "read", "mountinfo", "EIO"),
    _call(CYCLE, "openat", "mountstats", "EMFILE"),
    _call(CYCLE, "read", "mountstats", "EIO"),
    _call(CYCLE, "openat", WAITING, "EMFILE EACCES"),
    _call(CYCLE, "getdents64", WAITING, "EIO"),
    _call(CYCLE, "read", "vmstat", "EIO"),
    _call(CYCLE, "read", "chassis_asset_tag", "EIO"),
    _call(CYCLE, "recvmsg", "the kernel's events", "ENOBUFS ENOMEM", "1"),
    _call(CYCLE, "recvmsg", "udev's events", "ENOBUFS", "1"),
    _call(CYCLE, "epoll_wait", "any file", "EINTR", "1..3"),
    _call(CYCLE, "inotify_add_watch", "any file", "ENOSPC ENOMEM"),
    _call(CYCLE, "inotify_rm_watch", "any file", "EINVAL"),
    _call(CYCLE, "openat", "/run/nfstuned", "ENOSPC EMFILE"),
    _call(CYCLE, "write", "the samples' file", "ENOSPC EIO"),
    _call(CYCLE, "write", "any file", "ENOSPC"),
    _call(CYCLE, "mkdir", "/run/nfstuned", "ENOSPC EROFS"),
    _call(CYCLE, "linkat", "any file", "ENOSPC"),
    _call(CYCLE, "renameat", "/run/nfstuned", "ENOSPC EROFS"),
    _call(CYCLE, "flock", "any file", "ENOLCK"),
    _call(CYCLE, CLONE, "any file", "EAGAIN ENOMEM"),
    _call(CYCLE, "wait4", "any file", "ECHILD"),
    _child(CYCLE, "openat", "/run/nfstuned, also for the metrics", "ENOSPC EROFS"),
    _child(CYCLE, "write", "any file, also of the metrics", "ENOSPC EIO"),
    _child(CYCLE, "fchmod", "any file, also of the metrics", "EPERM"),
    _child(CYCLE, "linkat", "any file, also of the metrics", "ENOSPC"),
    _child(CYCLE, "renameat", "/run/nfstuned, also for the metrics", "EROFS"),
    _call(CYCLE, "openat", "any file", "EMFILE ENFILE ENOMEM"),
    _call(CYCLE, "socket", "any file", "EMFILE"),
    _call(CYCLE, "sendmsg", "any file", "ECONNREFUSED ENOBUFS EAGAIN EMSGSIZE"),
    _call(RELOAD, "newfstatat", "nfstuned.toml", "EIO"),
    _call(RELOAD, "openat", "conf.d", "EIO EMFILE"),
    _call(RELOAD, "pipe2", "any file", "EMFILE ENFILE"),
    _call(RELOAD, CLONE, "any file", "EAGAIN ENOMEM"),
    _call(RELOAD, "epoll_ctl", "any file", "ENOMEM ENOSPC"),
    _call(RELOAD, "poll", "any file", "ENOMEM"),
    _call(RELOAD, "wait4", "any file", "ECHILD"),
    _call(RELOAD, "sendmsg", "any file", "ECONNREFUSED"),
    _child(RELOAD, "openat", "nfstuned.toml", "EACCES EMFILE"),
    _child(RELOAD, "read", "nfstuned.toml", "EIO"),
    _child(RELOAD, "execve", "any file", "ENOMEM EACCES"),
    _call(STOP, "openat", "the records' folder", "EIO EMFILE"),
    _call(STOP, "getdents64", "the records' folder", "EIO"),
    _call(STOP, "read", "a record", "EIO"),
    _call(STOP, "openat", "read_ahead_kb", "EMFILE EROFS"),
    _call(STOP, "pread64", "read_ahead_kb", "EIO"),
    _call(STOP, "write", "a record", "ENOSPC"),
    _call(STOP, "fchmod", "a record", "EPERM"),
    _call(STOP, "pwrite64", "read_ahead_kb", "EIO"),
    _call(STOP, "unlink", "a record", "EROFS"),
    _call(STOP, "sendmsg", "any file", "ECONNREFUSED"),
)
