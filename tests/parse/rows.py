"""Rows of a parsed text as tables of expected rows have them."""

from __future__ import annotations

from collections.abc import Iterable

from nfstuned.errors import ParseError


def shown(rows: Iterable[object]) -> list[object]:
    """Return the rows, and of each error its text, with its file and its line."""
    return [str(row) if isinstance(row, ParseError) else row for row in rows]
