"""Pieces of all outputs: JSON as text, and names and values as people can read them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping

from nfstuned.parse.fields import mask_secrets

Document = dict[str, object]

DASH = "-"
TIME_FORM = "%Y-%m-%d %H:%M:%S"
"""How people read a time, for strftime; its zone stands behind it."""
_DURATIONS = ((2 * 86400, 86400, "d"), (2 * 3600, 3600, "h"), (120, 60, "min"), (-math.inf, 1, "s"))
_FIRST_BYTE, _LAST_BYTE = 0xDC80, 0xDCFF
"""How a byte that is not UTF-8 looks in a string (PEP 383)."""

_QUOTED = r"""\$'(?:[^'\\]|\\.)*'|(?<!\w)'[^']*'(?:"'"'[^']*')*"""
"""A word as nfstuned.model.change.quote writes it; a quote behind a letter is an apostrophe."""
_HELD = "\u00a0"
"""A blank at which no line ends; `printable` leaves none of these."""


def to_json(document: Document) -> str:
    """Return a document as text: ASCII, bytes that are not UTF-8 as escaped lone surrogates, no secrets."""
    return json.dumps(without_secrets(document), indent=2)


def without_secrets(value: object) -> object:
    """Return a value for JSON with each secret in its strings masked."""
    if isinstance(value, str):
        return mask_secrets(value)
    if isinstance(value, Mapping):
        return {key: without_secrets(item) for key, item in value.items()}
    return [without_secrets(item) for item in value] if isinstance(value, list | tuple) else value


def cell(value: object) -> str:
    """Return a cell's text; "-" for None."""
    return DASH if value is None else str(value)


def printable(name: str) -> str:
    r"""Return a name as a terminal may show it: control characters and stray bytes as `\x0a`.

    A server or a user chooses names; they must not move the cursor or begin a line of their own. Secrets are
    masked.
    """
    name = mask_secrets(name)
    if name.isprintable():
        return name
    return "".join(char if char.isprintable() else _escape(char) for char in name)


def _escape(char: str) -> str:
    code = ord(char)
    if _FIRST_BYTE <= code <= _LAST_BYTE:
        return f"\\x{code - _FIRST_BYTE + 0x80:02x}"
    return char.encode("unicode_escape").decode("ascii")


def utc(seconds: float) -> str:
    """Return Unix time for programs: "2026-11-20T13:00:00Z"."""
    from datetime import datetime, timezone  # noqa: PLC0415 - few commands need it

    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def shorten(name: str, width: int) -> str:
    """Return a name cut in its middle to `width` characters: server and export both stay recognisable."""
    if len(name) <= width:
        return name
    room = width - len("...")
    head = (room + 1) // 2
    return f"{name[:head]}...{name[len(name) - (room - head) :]}"


def duration(seconds: float) -> str:
    """Return a duration in the largest unit that has at least two of it: "90 s", "59 min", "3.5 h"."""
    unit_s, unit = next((unit_s, unit) for least, unit_s, unit in _DURATIONS if seconds >= least)
    return f"{seconds / unit_s:.3g} {unit}"


def wrapped(text: str, width: int | None) -> list[str]:
    """Return the text's lines without breaking a word, which may be a command's, or a quotation."""
    if width is None:
        return [text]
    from textwrap import wrap  # noqa: PLC0415 - only a terminal has a width

    held = re.sub(_QUOTED, lambda match: match[0].replace(" ", _HELD), text)
    lines = wrap(held, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_HELD, " ") for line in lines] or [""]
