"""Something that the service told the journal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One entry; `name` is that of its message in host/journal.py: "READ_AHEAD_SET"."""

    time: float
    """In Unix seconds, by the journal's clock."""
    name: str
    text: str
    device: str = ""
    """Of the superblock that it is about; "" where it is about none."""
    mount_point: str = ""
