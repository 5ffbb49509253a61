"""The part of a page that a script makes, between two marks."""

from __future__ import annotations

from collections.abc import Iterable


def filled(page: str, begin: str, end: str, lines: Iterable[str]) -> str:
    """Return the page with these lines between its marks; each mark is a line. Raises ValueError without."""
    before, has_begin, rest = page.partition(begin)
    _, has_end, after = rest.partition(end)
    if not (has_begin and has_end):
        raise ValueError(f"the page has no {begin.strip()} with {end.strip()} behind it")
    return f"{before}{begin}" + "".join(f"{line}\n" for line in lines) + f"{end}{after}"
