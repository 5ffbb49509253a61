"""The files of an image, or of a container's host: no link leads out of their folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from nfstuned.host.root import Root, demand_folder, demand_name, demand_text, link_target
from nfstuned.host.walk import Walk

MADE_AT_BOOT = frozenset({"dev", "proc", "run", "sys"})
"""Their content at the first boot is not the image's; a chroot has the host's own mounted."""
_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


class ContainedRoot(Root):
    """Files below a folder. An absolute link starts again at the folder, and `..` never leaves it.

    Each component is opened by itself, with O_NOFOLLOW, and links are read here: openat2(2) needs Linux 5.6.
    Only a regular file is opened to be read: a pipe would wait, and a device could do anything.
    """

    absent: frozenset[str] = frozenset()
    """The names in the folder itself that count as absent."""

    def path(self, name: str) -> str:
        """Return the path inside the folder, as people know it."""
        return "/" + name

    def read(self, name: str) -> str:
        """Return a file's text; of a link to /dev/null "", as a host would. Raises OSError."""
        try:
            return super().read(name)
        except FileNotFoundError as error:
            if error.filename == "/dev/null":
                return ""
            raise

    def _look_at(self, name: str) -> None:
        with self.place(name, last=False) as (folder, part):
            os.stat(part, dir_fd=folder, follow_symlinks=False)

    def _read_link(self, name: str) -> str | None:
        with self.place(name, last=False) as (folder, part):
            return link_target(part, folder)

    def _list(self, folder: str) -> list[str]:
        with self.place(folder) as (parent, part):
            fd = os.open(part, _FILE | os.O_DIRECTORY, dir_fd=parent)
            try:
                return os.listdir(fd)
            finally:
                os.close(fd)

    def _open(self, name: str) -> int:
        with self.place(name) as (folder, part):
            demand_text(os.stat(part, dir_fd=folder, follow_symlinks=False), name)
            return os.open(part, _FILE, dir_fd=folder)

    def _status(self, name: str) -> os.stat_result:
        with self.place(name) as (folder, part):
            return os.stat(part, dir_fd=folder, follow_symlinks=False)

    @contextmanager
    def place(self, name: str, *, last: bool = True) -> Iterator[tuple[int, str]]:
        """Yield a folder's descriptor and the name in it that `name` leads to, with each link followed.

        With `last` False a link at the end is not followed. Raises OSError.
        """
        demand_name(name)
        walk = _ContainedWalk(self.prefix, self.absent)
        try:
            yield walk.to(name, last=last)
        finally:
            walk.leave()


class _ContainedWalk(Walk):
    """A way below a folder, which neither `..` nor an absolute link leaves."""

    def __init__(self, start: str, absent: Collection[str]) -> None:
        super().__init__(start)
        self._absent = absent

    def skips(self, part: str) -> bool:
        """Go up for `..`; raise FileNotFoundError, with the whole name, for one that counts as absent."""
        if part == "..":
            self.leave(max(1, len(self.folders) - 1))
            return True
        if len(self.folders) == 1 and part in self._absent:
            name = "/".join(("", part, *reversed(self.left)))
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return False


class ImageRoot(ContainedRoot):
    """An image's files, without the folders that a boot fills."""

    absent = MADE_AT_BOOT

    def __init__(self, folder: str) -> None:
        """Take the folder; raises OSError for anything else."""
        demand_folder(folder)
        super().__init__(folder)

    def _readable(self, name: str) -> bool:
        """Return False: the view of mounts is a running kernel's."""
        del name
        return False


class BareRoot(ImageRoot):
    """An image in which some names are not there: a plan that is made from it does not depend on them."""

    def __init__(self, folder: str, hidden: Collection[str]) -> None:
        """Take the folder, and the names below it without a leading slash. Raises OSError."""
        super().__init__(folder)
        self._hidden = frozenset(hidden)

    def exists(self, name: str) -> bool:
        """Return whether there is anything of this name, also a link to nowhere."""
        return name not in self._hidden and super().exists(name)

    def link(self, name: str) -> str | None:
        """Return the target of a symbolic link, as it is written; None without a link."""
        return None if name in self._hidden else super().link(name)

    def listing(self, folder: str) -> list[str]:
        """Return the sorted names in a folder. Raises OSError."""
        return [name for name in super().listing(folder) if f"{folder}/{name}" not in self._hidden]

    def _open(self, name: str) -> int:
        self._demand(name)
        return super()._open(name)

    def _status(self, name: str) -> os.stat_result:
        self._demand(name)
        return super()._status(name)

    def _demand(self, name: str) -> None:
        if name in self._hidden:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


_ROOT_OF_INIT = "/proc/1/root"


class HostRoot(ContainedRoot):
    """The host's files, for a container that shares the PID namespace and may trace process 1.

    A plain Root below /proc/1/root would follow absolute links, such as /etc/resolv.conf, into the container.
    """

    absent = frozenset({"dev"})

    def __init__(self) -> None:
        """Take the root of process 1. Raises OSError where that cannot be seen."""
        demand_folder(_ROOT_OF_INIT)
        super().__init__(_ROOT_OF_INIT)

    @contextmanager
    def place(self, name: str, *, last: bool = True) -> Iterator[tuple[int, str]]:
        """Yield a place like an image's; a network's file at /opt or /usr/local counts as absent."""
        self._full(name)
        with super().place(name, last=last) as found:
            yield found


def host_root(root: Root) -> Root:
    """Return the host's root instead of a container's own; any other root as it is.

    A container's processes see process 1 of the host, its files and its mounts, where they share its PID
    namespace (hostPID of Kubernetes) and may trace it. A service with a mount namespace of its own has the
    host's root all the same, and so does a chroot: there the mount namespaces are the same.
    """
    if root.prefix != "/":
        return root
    try:
        same_mounts = os.path.samefile("/proc/1/ns/mnt", "/proc/self/ns/mnt")
        return root if same_mounts or os.path.samefile(_ROOT_OF_INIT, "/") else HostRoot()
    except OSError:
        return root
