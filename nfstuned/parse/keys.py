"""The bytes that a terminal sends for the keys of a keyboard (console_codes(4), xterm and its kin)."""

from __future__ import annotations

import re

_CONTROLS = {b"\r": "enter", b"\n": "enter", b"\x1b": "escape"}
_SEQUENCES = {
    b"A": "up",
    b"B": "down",
    b"H": "home",
    b"F": "end",
    b"1~": "home",
    b"4~": "end",
    b"5~": "page up",
    b"6~": "page down",
    b"7~": "home",
    b"8~": "end",
}
_KEY = (
    rb"(?s)\x1b\[(?P<csi>[0-?]*[ -/]*[@-~])"  # ECMA-48 5.4: parameters, intermediates, a final byte
    rb"|\x1bO(?P<ss3>.)"  # with "application cursor keys", as some terminals are left
    rb"|(?P<plain>\x1b|[\r\n]|[ -~])"
    rb"|(?P<other>.)"  # control characters, and bytes of letters that mean nothing here
)


def parse_keys(data: bytes) -> tuple[str, ...]:
    """Return the names of the keys: "up", "page down", "enter", or the character itself.

    An unknown sequence is left out as a whole, so that no part of a sequence is taken for a letter. Nothing
    is raised.
    """
    names: list[str] = []
    for key in re.finditer(_KEY, data):
        plain = key["plain"]
        if plain:
            names.append(_CONTROLS.get(plain) or plain.decode("ascii"))
        elif name := _SEQUENCES.get(key["csi"] or key["ss3"] or b""):
            names.append(name)
    return tuple(names)
