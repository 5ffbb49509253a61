"""What belongs together because it has something in common: mounts of one server, under all of its names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Id = tuple[str, int, str]
"""One of the names or addresses of a server, with what else tells it from another one."""
T = TypeVar("T")


def united(things: Iterable[tuple[frozenset[Id], T]]) -> list[tuple[T, ...]]:
    """Return the things in groups: two that have an id in common are in one, also through a third."""
    known: list[tuple[frozenset[Id], tuple[T, ...]]] = []
    for ids, thing in things:
        same = [group for group in known if group[0] & ids]
        known = [group for group in known if not group[0] & ids]
        members = (*(member for _, members in same for member in members), thing)
        known.append((ids.union(*(found for found, _ in same)), members))
    return [members for _, members in known]
