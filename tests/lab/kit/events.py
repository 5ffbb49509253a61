"""Many bdi events in a short time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.kit.mounts import BDI

if TYPE_CHECKING:
    from tests.lab.kit.mounts import Mounts

MOUNT_CYCLE = 4
"""The events of mounting and unmounting over NFSv4: the superblock and the pseudo-root come and go."""


def announce(count: int, device: str, action: str = "change") -> None:
    """Let the kernel announce a device once more, `count` times (Documentation/ABI/testing/sysfs-uevent)."""
    file = BDI / device / "uevent"
    with file.open("w") as opened:
        for _ in range(count):
            opened.write(f"{action}\n")
            opened.flush()


def cycle(mounts: Mounts, count: int, options: str = "vers=4.2") -> int:
    """Mount and unmount `count` times; return the number of bdi events that this made."""
    for _ in range(count):
        mounts.umount(mounts("d", options))
    return count * MOUNT_CYCLE
