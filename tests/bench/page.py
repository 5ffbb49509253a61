"""Parts of a page of docs/ that a measurement writes, each between two marks."""

from __future__ import annotations

from collections.abc import Iterable


def marks(name: str) -> tuple[str, str]:
    """Return the lines of a page between which a measurement's part is."""
    return f"<!-- measured: {name} -->\n", f"<!-- end: {name} -->\n"


def part(page: str, name: str) -> str:
    """Return the part of that name. Raises ValueError where the page has no such marks."""
    begin, end = marks(name)
    return page[page.index(begin) + len(begin) : page.index(end)]


def filled(page: str, name: str, lines: Iterable[str]) -> str:
    """Return the page with these lines as the part of that name. Raises ValueError as `part` does."""
    begin, end = marks(name)
    before, after = page.index(begin) + len(begin), page.index(end)
    return page[:before] + "".join(f"{line}\n" for line in lines) + page[after:]
