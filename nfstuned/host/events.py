"""Events that make the daemon look: the kernel's and udev's, writes to read-aheads, and the mount table."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from contextlib import suppress

import pyudev

from nfstuned.host.read_ahead import bdi_file
from nfstuned.host.root import Root
from nfstuned.model.kernel import Uevent
from nfstuned.parse.proc.mounts import is_anonymous_device, parse_uevent

NETLINK_KOBJECT_UEVENT = 15
KERNEL_GROUP = 1
BUFFER_BYTES = 1 << 23
IN_MODIFY, IN_Q_OVERFLOW, IN_IGNORED = 0x2, 0x4000, 0x8000
_EVENT = struct.Struct("iIII")
"""struct inotify_event: the watch, the event, a cookie, and the length of a name, which a file has not."""


class EventsLostError(Exception):
    """The kernel dropped events because the queue was full (ENOBUFS): look at everything again."""


class KernelEvents:
    """The kernel's own uevents about bdis, before udev has seen them (netlink(7), lib/kobject_uevent.c).

    A libudev device for each message would cost more than all that the daemon then does to a mount, and the
    mount is waiting to be used.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK,
            socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC,
            NETLINK_KOBJECT_UEVENT,
        )
        # As far as net.core.rmem_max allows; more would need CAP_NET_ADMIN.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        self._socket.bind((0, KERNEL_GROUP))

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._socket.fileno()

    def next(self) -> Uevent | None:
        """Return the next event about a bdi that may be of NFS, None without one. Raises EventsLostError."""
        while True:
            try:
                data, _, _, sender = self._socket.recvmsg(8192)
            except BlockingIOError:
                return None
            except OSError as error:
                raise _lost(error) from error
            # A process with CAP_NET_ADMIN may send to the group, too; only the kernel has port 0.
            if sender[0] == 0:
                event = parse_uevent(data, "bdi")
                if event is not None and is_anonymous_device(event.name):
                    return event

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class UdevEvents:
    """udev's events about bdis: by then every rule has run, also one that writes read_ahead_kb."""

    def __init__(self) -> None:
        self._monitor = pyudev.Monitor.from_netlink(pyudev.Context(), "udev")
        self._monitor.filter_by("bdi")
        self._monitor.start()
        self._socket = socket.socket(fileno=os.dup(self._monitor.fileno()))

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return int(self._monitor.fileno())

    def drain(self) -> list[Uevent]:
        """Return the waiting events about bdis that may be of NFS. Raises EventsLostError.

        poll() returns None also for a message that it filters out, so that None only ends this round: where
        more waits, the descriptor is still readable.
        """
        events = []
        try:
            while (device := self._monitor.poll(timeout=0)) is not None:
                if is_anonymous_device(device.sys_name):
                    events.append(Uevent(device.action or "", "bdi", device.sys_name))
        except OSError as error:
            # pyudev drops the errno. To ask the socket for it also clears the error.
            number = error.errno or self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            raise _lost(OSError(number, str(error))) from error
        return events


class Writes:
    """Readable whenever anybody has written to a read_ahead_kb that is watched (inotify(7)).

    The kernel reports a write(2) to a file of sysfs from every mount namespace; only a sysfs that was mounted
    in another network namespace has inodes of its own.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)
        self._watches: dict[str, tuple[int, int]] = {}
        """By device: the bdi's inode, and the watch."""
        self._devices: dict[int, str] = {}
        """By watch."""

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._fd

    def watch(self, device: str, inode: int) -> None:
        """Watch the bdi that has this inode, once. Raises OSError where the kernel watches no more."""
        if self._watches.get(device, (None, 0))[0] == inode:
            return
        self.forget(device, None)
        # Also where the kernel refuses, so that it is asked once.
        self._watches[device] = (inode, 0)
        try:
            watch = self._call(
                "inotify_add_watch", self._fd, os.fsencode(bdi_file(self._root, device)), IN_MODIFY
            )
        except FileNotFoundError:
            return
        self._watches[device] = (inode, watch)
        self._devices[watch] = device

    def forget(self, device: str, alive: int | None) -> None:
        """Watch a device no longer, unless its bdi has the inode `alive`."""
        inode, watch = self._watches.get(device, (None, 0))
        if inode is None or inode == alive:
            return
        del self._watches[device]
        if self._devices.pop(watch, None) is not None:
            # Newer kernels have done it when the bdi went, and answer EINVAL.
            with suppress(OSError):
                self._call("inotify_rm_watch", self._fd, watch)

    def drain(self) -> set[str]:
        """Return the devices that were written to. Raises EventsLostError."""
        written: set[str] = set()
        while True:
            try:
                data = os.read(self._fd, 64 * 1024)
            except BlockingIOError:
                return written
            for watch, mask, _, _ in _EVENT.iter_unpack(data):
                if mask & IN_Q_OVERFLOW:
                    raise EventsLostError
                device = self._devices.pop(watch, None) if mask & IN_IGNORED else self._devices.get(watch)
                if device is not None and mask & IN_MODIFY:
                    written.add(device)

    def close(self) -> None:
        """Close the descriptor, and with it all watches."""
        os.close(self._fd)

    def _call(self, name: str, *arguments: int | bytes) -> int:
        result = int(getattr(self._libc, name)(*arguments))
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), name)
        return result


class MountTable:
    """Readable (EPOLLPRI) whenever a mount comes or goes (proc_pid_mountinfo(5)).

    The kernel compares with the table at the time of open(2): open first, then look.
    """

    def __init__(self, root: Root) -> None:
        self._fd = os.open(root.path(f"{root.view}/mountinfo"), os.O_RDONLY | os.O_CLOEXEC)

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._fd

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def _lost(error: OSError) -> Exception:
    return EventsLostError() if error.errno == errno.ENOBUFS else error
