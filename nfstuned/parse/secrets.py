"""What a text holds that is for nobody to see: passwords, keys and signatures become MASK.

Whatever becomes text for a person or a program passes through `masked`: a token in a message (`quoted` of
fields.py), a name on a terminal (`printable` of view/words.py), a string of a document, of a sample, of a
metric's label or of a journal entry. What is written back to a file is never masked.
"""

from __future__ import annotations

import re

MASK = "****"
_NAME = r"(?:pass(?:wor[dt]|wd|phrase)?|secret|token|(?:account|access|shared|storage)[_-]?key)[0-9]?"
_IS = r"[\"'}]?[ \t]{0,8}=[ \t]{0,8}|[\"'][ \t]{0,8}:[ \t]{0,8}|:[ \t]{1,8}(?=[\"'])"
"""As options, units and TOML write it, and as JSON does; a colon in a sentence is none of these."""
_OPTION = r"(?-i:[a-z][a-z0-9_.-]*)(?:=[^,\s]*)?(?=[,\s]|\Z)"
_PLAIN = rf"(?:,,|[^,\s])+(?:,(?!{_OPTION})[^,\s]+)*"
_VALUE = rf"\"(?:[^\"\\]|\\.)*(?:\"|\\?\Z)|'[^']*(?:'|\Z)|{_PLAIN}"
"""In quotes, or up to a space, or a comma that is not doubled (mount.cifs(8)) and that an option follows."""
_MASKED = re.escape(MASK) + r"(?![^\s,'\")\]}&;])"
_HINTS = ("pass", "secret", "token", "key", "cred", "sig", "user", "//", "==")
"""A text with none of these has no secret. Every text passes here, also the thousands of a sample."""
# Compiled when a text may hold a secret: the service starts without.
_SECRETS = (
    rf"(?P<named>(?:{_NAME})(?:{_IS}))(?!{_MASKED})(?:{_VALUE})"
    rf"|(?P<credentials>\bcred(?:entials)?=)(?!/|{_MASKED})(?:{_VALUE})"
    rf"|(?P<signature>\bsig(?:nature)?=)(?!{_MASKED})[^&,\s\"']+"
    rf"|(?P<user>\buser(?:name)?=[^,\s%\"']{{0,256}}%)(?!{_MASKED})[^,\s]+"
    rf"|(?P<login>//[^\s/@:%]{{0,256}}[:%])(?!{re.escape(MASK)}@)(?:[^\s/\"']{{0,256}}|[^\s\"'@]{{0,256}})(?=@)"
    # The same in an automounter's map: behind the first colon of a location each other one is a slash.
    rf"|(?P<expanded>//[^\s/@:%]{{0,256}}/)(?!{re.escape(MASK)}@)[^\s/@\"']{{1,256}}(?=@[^\s/@]+/)"
    # A storage account's key: 64 bytes in base64.
    r"|(?<![A-Za-z0-9+])[A-Za-z0-9+/]{86}=="
)


class Clear(str):
    """A text without a secret, as its maker knows: it is of numbers, and of names that are masked."""

    __slots__ = ()


def masked(text: str) -> str:
    """Return the text with each secret in it as MASK; a text that is masked already stays as it is."""
    if is_clear(text):
        return text
    return re.sub(_SECRETS, _without, text, flags=re.IGNORECASE | re.DOTALL)


def is_clear(text: str) -> bool:
    """Return whether there can be no secret in the text, nor in any part of it."""
    folded = text.casefold()
    for hint in _HINTS:  # noqa: SIM110 - every text comes here, and a generator takes as long as it all
        if hint in folded:
            return False
    return True


def holds_secret(text: str) -> bool:
    """Return whether there is a secret in the text: what stands beside it may be a part of it."""
    return masked(text) != text


def _without(match: re.Match[str]) -> str:
    return (match[match.lastgroup] if match.lastgroup else "") + MASK
