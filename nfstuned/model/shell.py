"""Words as a shell reads them, for remedies and commands that are shown."""

from __future__ import annotations

import shlex

IN_IMAGE = "with the image's folder for DIR"
RELOAD_UDEV = "udevadm control --reload"
RELOAD_UNITS = "systemctl daemon-reload"


def quote(text: str) -> str:
    r"""Return a text as one word of a shell.

    A character that a terminal does not show stands there as `$'\012'` has it (bash, ksh, zsh; POSIX since
    2024): else it would be shown as an escape that no shell reads, and the command would be about another
    file.
    """
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(map(_escaped, text)) + "'"


def sudo(program: str, *paths: str, image: bool) -> str:
    """Return a command about files of the host, or of an image that was looked at: below its folder."""
    words = (quote(f"DIR{path}" if image else path) for path in paths)
    command = " ".join(("sudo", program, *words))
    return f"{command}, {IN_IMAGE}" if image else command


def then_sudo(program: str, *, image: bool, mark: str = ",") -> str:
    """Return the step that tells a running system of a change, behind a mark; an image has none."""
    return "" if image else f"{mark} then sudo {program}"


def _escaped(char: str) -> str:
    if char in "\\'":
        return "\\" + char
    if char.isprintable():
        return char
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))
