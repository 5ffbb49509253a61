"""Where a path leads, without a word to a network's file system."""

from __future__ import annotations

from collections.abc import Callable

_MOST_LINKS = 40
"""Behind more of them the kernel finds nothing (path_resolution(7))."""


def walk(path: str, link: Callable[[str], str | None], remote: Callable[[str], bool]) -> tuple[str, bool]:
    """Return what a path leads to, past links, also to what is not there; and whether a network has it.

    `link` returns where a link leads, None for what is none; `remote` tells whether a path is a network's,
    and is asked before `link`. What a network has, or is behind too many links, stays as it is written.
    """
    here, waiting, links = "", path.split("/")[::-1], 0
    while waiting:
        part = waiting.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            here = here.rpartition("/")[0]
            continue
        there = f"{here}/{part}"
        if remote(there):
            return "/".join([there, *reversed(waiting)]), True
        target = link(there)
        if target is None:
            here = there
            continue
        links += 1
        if links > _MOST_LINKS:
            return path, False
        here = "" if target.startswith("/") else here
        waiting += target.split("/")[::-1]
    return here or "/", False
