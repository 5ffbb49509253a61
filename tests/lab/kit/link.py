"""A link that behaves as one to a cloud does: far away, or with a limit for each connection."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tests.lab.kit.shell import run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.clones import Clone


@contextlib.contextmanager
def shaped(clone: Clone, *words: str) -> Iterator[None]:
    """Shape what a client and its server send each other while the block runs, as tc(8) has it."""
    ends = ((), ("ip", "netns", "exec", clone.name))
    devices = (f"veth-{clone.name}", "inside")
    for prefix, device in zip(ends, devices, strict=True):
        run(*prefix, "tc", "qdisc", "replace", "dev", device, "root", *words)
    try:
        yield
    finally:
        for prefix, device in zip(ends, devices, strict=True):
            run(*prefix, "tc", "qdisc", "del", "dev", device, "root")
