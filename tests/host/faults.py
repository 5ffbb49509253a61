"""Roots of which the n-th request to the system fails: every way in which a Root asks it is one."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass

from nfstuned.host.image_root import BareRoot, ImageRoot
from nfstuned.host.root import Root


@dataclass
class Fault:
    """When the requests of a root fail, and how."""

    error: int
    at: int | None = None
    """The number of the request that fails; None for none."""
    late: bool = False
    """A file can be opened, and reading it fails: with EIO, whatever `error` is."""
    asked: int = 0
    failed: str = ""
    """The name that was asked for when it failed."""

    def meet(self, root: Root, name: str) -> bool:
        """Count a request; return whether it is the one that fails."""
        self.asked += 1
        if self.asked - 1 != self.at:
            return False
        self.failed = name
        if not self.late:
            raise OSError(self.error, os.strerror(self.error), root.prefix + name)
        return True


class _Faulty(Root):
    """Each request to the system may be the one that fails."""

    fault = Fault(0)

    def _open(self, name: str) -> int:
        # Nothing is mapped at the address 0, so that the kernel says EIO to whoever reads there.
        return os.open("/proc/self/mem", os.O_RDONLY) if self.fault.meet(self, name) else super()._open(name)

    def _status(self, name: str) -> os.stat_result:
        self.fault.meet(self, name)
        return super()._status(name)

    def _look_at(self, name: str) -> None:
        self.fault.meet(self, name)
        super()._look_at(name)

    def _read_link(self, name: str) -> str | None:
        self.fault.meet(self, name)
        return super()._read_link(name)

    def _list(self, folder: str) -> list[str]:
        self.fault.meet(self, folder)
        return super()._list(folder)


class FaultyRoot(_Faulty, Root):
    def __init__(self, prefix: str, fault: Fault) -> None:
        super().__init__(prefix)
        self.fault = fault


class FaultyImage(_Faulty, ImageRoot):
    def __init__(self, folder: str, fault: Fault) -> None:
        super().__init__(folder)
        self.fault = fault


class FaultyBare(_Faulty, BareRoot):
    """An image without some of its files that fails once."""

    def __init__(self, folder: str, hidden: Collection[str], fault: Fault) -> None:
        super().__init__(folder, hidden)
        self.fault = fault
