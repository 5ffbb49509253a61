"""User data of several parts, as cloud-init takes it in MIME's multipart form (RFC 2046)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

_MULTIPART = re.compile(
    r"(?:[\w-]+:[^\n]*\n(?:[ \t]+\S[^\n]*\n)*){0,20}?Content-Type:[ \t]*multipart/", re.IGNORECASE
)
_FOR_CLOUD_INIT = re.compile(r"text/(?:cloud-|x-shellscript)", re.IGNORECASE)
_BOUNDARY = re.compile(r'\bboundary="?([^"\s;]{1,70})', re.IGNORECASE)
_TYPE = re.compile(r"(?im)^Content-Type:[ \t]*([\w./+-]+)")
_ENCODING = re.compile(r"(?im)^Content-Transfer-Encoding:[ \t]*([\w-]+)")
_AS_IT_IS = ("", "7bit", "8bit", "binary")


class Part(NamedTuple):
    """A part of user data: its type, its text, and the line on which the text begins."""

    type: str
    text: str
    line: int
    is_block: bool
    """Its lines are lines of the whole text."""


def is_multipart(text: str) -> bool:
    """Whether a text is user data of several parts, and no mail."""
    return _MULTIPART.match(text) is not None and _FOR_CLOUD_INIT.search(text) is not None


def parse_parts(text: str) -> Iterator[Part]:
    """Yield the parts with a text that is plain or in base64."""
    lines = text.split("\n")
    boundary = _BOUNDARY.search("\n".join(lines[: _blank(lines, 0, len(lines))]))
    if boundary is None:
        return
    mark = f"--{boundary[1]}"
    marks = [at for at, line in enumerate(lines) if line.rstrip() in {mark, f"{mark}--"}]
    for start, end in pairwise((*marks, len(lines))):
        blank = _blank(lines, start + 1, end)
        header, body = "\n".join(lines[start + 1 : blank]), "\n".join(lines[blank + 1 : end])
        found = _TYPE.search(header), _ENCODING.search(header)
        kind, encoding = (match[1].lower() if match else "" for match in found)
        if encoding == "base64":
            try:
                yield Part(kind, base64.b64decode(body).decode(), blank + 2, is_block=False)
            except (binascii.Error, ValueError):
                continue
        elif encoding in _AS_IT_IS:
            yield Part(kind, body, blank + 2, is_block=True)


def _blank(lines: list[str], start: int, end: int) -> int:
    """Return the number of the blank line behind a header, from 0; `end` without."""
    return next((at for at in range(start, end) if not lines[at].strip()), end)
