"""A frame of `nfstuned top` for tests: what two looks at four superblocks of two servers say."""

from __future__ import annotations

import os
from dataclasses import replace

from nfstuned.core.samples.seen import SeenReads
from nfstuned.core.samples.top import Frame, frame
from nfstuned.model.kernel import Mount, MountStats
from nfstuned.model.mounts import Snapshot, Superblock
from nfstuned.model.samples import Counted, Look
from tests.core.counters import OPTIONS, counted, line, moved, op, stats

MIB = 1 << 20
START = 1_785_000_000.0
SECONDS = 10.0
FAR = "v3 tcp 10.10.10.11:2049"


def at(look: Counted, point: str, source: str) -> Counted:
    return replace(look, mount_points=(point, *look.mount_points[1:]), source=source)


def _used(scale: int) -> MountStats:
    lines = tuple(line(200 * scale, 700 * scale, 30 * scale) for _ in range(2))
    return stats(
        1000 + 10 * scale,
        moved(700 * MIB * scale, 40 * MIB * scale, 800 * MIB * scale, 40 * MIB * scale),
        lines,
        READ=op(800 * scale, 24_000 * scale, 801 * scale, queue_ms=160 * scale),
        WRITE=op(40 * scale, 2000 * scale),
        GETATTR=op(90 * scale, 90 * scale, errors=2 * scale),
        SEQUENCE=op(scale, scale),
    )


def _reading(scale: int) -> MountStats:
    read = moved(1 + 9 * MIB * scale, 0, 18 * MIB * scale)
    return stats(50 + 10 * scale, read, (line(),), READ=op(36 * scale, 18 * scale))


def _look(scale: int) -> Look:
    quiet = stats(1000 + 10 * scale, SEQUENCE=op(scale, scale), GETATTR=op(3 + scale, 3))
    shares = (
        at(counted(_used(scale), "0:43", points=("/data", "/bind")), "/data", "sa1.file.core.windows.net:/a"),
        at(counted(quiet, "0:44"), "/home", "sa1.file.core.windows.net:/home"),
        at(
            counted(_reading(scale), "0:45", FAR),
            os.fsdecode(b"/srv/\xff \xe5\xad\x98\xe5\x82\xa8/a-very-long-name-of-a-mount-point"),
            "far:/x",
        ),
        at(counted(_reading(0), "0:46", FAR), "/new", "far:/new"),
    )
    return Look(START + SECONDS * scale, 100.0 + SECONDS * scale, shares if scale else shares[:-1])


def looks() -> tuple[Look, Look]:
    """Two looks; the last of the superblocks is only in the later one."""
    return _look(0), _look(1)


def superblock(seen: Counted, number: int) -> Superblock:
    """Return the superblock of a snapshot that a look shows."""
    mounts = (Mount(number, 1, seen.device, "/", seen.mount_points[0], "nfs4", seen.source, OPTIONS),)
    return Superblock(seen.device, seen.bdi, 15360, mounts)


def snapshot(look: Look) -> Snapshot:
    """Return what a look was made of, and one superblock that has no statistics."""
    shown = [superblock(seen, number) for number, seen in enumerate(look.superblocks, 40)]
    lost = superblock(replace(look.superblocks[0], device="0:99", bdi=99), 99)
    return Snapshot((*shown, lost))


def first_frame() -> Frame:
    before, _ = looks()
    return frame(None, before, snapshot(before))


def second_frame() -> Frame:
    before, now = looks()
    return frame(before, now, snapshot(now), reads=SeenReads())


def empty_frame() -> Frame:
    return frame(None, Look(START, 100.0), Snapshot(()))
