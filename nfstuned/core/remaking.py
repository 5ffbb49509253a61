"""How live mounts are made again: in which order, and with which options where no file has them."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from nfstuned.model.facts import Target

_OWN = ("addr", "clientaddr", "mountaddr")
"""What mount.nfs adds by itself."""
_GENERIC = ("ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "nosymfollow", "sync", "dirsync")
"""What mount(8) makes flags of, which utab does not keep."""


def depth(target: Target) -> tuple[int, str]:
    """Return what sorts mounts so that the outer one comes before what lies in it."""
    return (posixpath.normpath(target.point).count("/") if target.point != "/" else 0, target.point)


def lies_in(inner: Target, outer: Target) -> bool:
    """Return whether one mount point is below another one."""
    return inner.point.startswith(outer.point.rstrip("/") + "/")


def making(chief: Target, others: Sequence[Target]) -> tuple[Target, ...]:
    """Return the order of mounting: `chief` first, but for what it lies in; `others` as they stand."""
    above = [one for one in others if lies_in(chief, one)]
    return (*above, chief, *(one for one in others if one not in above))


def options_again(target: Target, count: int | None) -> str:
    """Return the options that make a live mount as it was asked for, with `count` connections if given."""
    left = {*_OWN, *_GENERIC, *(() if count is None else ("nconnect",))}
    own = (one for one in target.asked if one.name not in left)
    words = [one.name if one.value is None else f"{one.name}={one.value}" for one in own]
    number = [] if count is None else [f"nconnect={count}"]
    return ",".join([*words, *_flags(target), *number])


def _flags(target: Target) -> list[str]:
    """Return the generic options that a live mount has, by itself or with its superblock."""
    if target.live is None:
        return []
    flags = target.live.flags.split(",")
    return [name for name in _GENERIC if name in flags or name in target.live.options]
