"""Words as a shell reads them: what remedies, and commands that are shown, are made of."""

from __future__ import annotations

import shlex


def quote(text: str) -> str:
    r"""Return a text as one word of a shell.

    What a terminal does not show stands there as `$'\012'` has it (bash, ksh, zsh; POSIX since 2024): else it
    would be shown as an escape that no shell reads, and the command would be about another file.
    """
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(map(_escaped, text)) + "'"


def _escaped(char: str) -> str:
    if char in "\\'":
        return "\\" + char
    if char.isprintable():
        return char
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))
