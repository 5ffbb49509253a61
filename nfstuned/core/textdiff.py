"""What is changed in a file, for people: a unified diff that a terminal can show."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff

from nfstuned.core.render import printable

_UNENDED = "\\ No newline at end of file"


def diff_lines(old: str, new: str, name: str) -> Iterator[str]:
    r"""Yield the lines of a unified diff, as diff -u would; none where both texts are the same.

    Tabs stay; other control characters and stray bytes are shown as escapes, a CR as `\r`.
    """
    heads = 2
    for number, line in enumerate(unified_diff(_lines(old), _lines(new), name, f"{name} (new)", lineterm="")):
        body = line.removesuffix("\n")
        yield "\t".join(printable(part) for part in body.split("\t"))
        if number >= heads and body == line and not line.startswith("@@"):
            yield _UNENDED


def _lines(text: str) -> list[str]:
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines
