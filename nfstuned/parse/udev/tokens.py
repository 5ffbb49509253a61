"""A rule's text as tokens: keys, operators, quotes and escapes (systemd: src/udev/udev-rules.c)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nfstuned.model.udev import UdevToken

_NAMES = (
    "devnode|tempnode|attr|sysfs|env|kernel|number|driver|devpath|id|major|minor|"
    "result|parent|name|links|root|sys"
)
_LONG_NAMES = {"c": "result", "s": "attr", "E": "env", "k": "kernel", "p": "devpath"}
_SIGN = re.compile(rf"\$\$|%%|\$({_NAMES})|%([NsEkndpbMmcPDLrS])|[$%]")
_BRACES = re.compile(r"\{([^}]{1,1023})\}")
_NUMBER = re.compile(r"[0-9]+\+?")
_INVALID_TYPE = "invalid substitution type"


def find_mistake(value: str) -> tuple[int, str] | None:
    """Return where the first wrong substitution is, counted from 1, and the reason, or None.

    As udev_check_format() of systemd's src/udev/udev-format.c judges it when rules are read. Applying them is
    more lenient: there a `$4` stays as it is.
    """
    for name, inside, start, end in _substitutions(value):
        if name is None:
            return start + 1, _INVALID_TYPE
        if name in {"attr", "sysfs", "env"} and not inside:
            return end + 1, "attribute value missing"
        if name == "result" and inside and not _NUMBER.fullmatch(inside):
            return end + 1, "attribute value not a valid number"
    return None


def uses_result(value: str) -> bool:
    """Return whether a value contains the output of a program."""
    return any(name == "result" for name, *_ in _substitutions(value))


def is_literal(value: str) -> bool:
    """Return whether a value has no substitutions."""
    return "%" not in value and "$" not in value


def _substitutions(value: str) -> Iterator[tuple[str | None, str, int, int]]:
    """Yield each substitution's name (None if unknown), the text in its braces, its start and its end."""
    at = 0
    while sign := _SIGN.search(value, at):
        at = sign.end()
        if sign[0] in {"$$", "%%"}:
            continue
        name, inside = sign[1] or _LONG_NAMES.get(sign[2], sign[2]), ""
        if name and value.startswith("{", at):
            braces = _BRACES.match(value, at)
            name, inside, at = (name, braces[1], braces.end()) if braces else (None, "", at)
        yield name, inside, sign.start(), at


_BETWEEN = re.compile(r"[ \t\n\r,]*")
_KEY = re.compile(r"(.*?)(?=[ \t\n\r={]|[-+!:]=)", re.DOTALL)
_ATTRIBUTE = re.compile(r"\{([^}]*)\}")
_OPERATOR = re.compile(r"[ \t\n\r]*(==|!=|\+=|-=|=|:=)[ \t\n\r]*")
_PLAIN = re.compile(r'(i?)"((?:[^"\\]|\\"|\\(?!"))*)"')
_ESCAPED = re.compile(r'(e|ei|ie)"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:([abfnrtvs\\\"'])|x([0-9a-fA-F]{2})|([0-7]{3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|)"
)
_LETTERS = dict(zip("abfnrtvs\\\"'", "\a\b\f\n\r\t\v \\\"'", strict=True))
_BYTE, _ASCII, _LAST_CHARACTER = 0xFF, 0x80, 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_INVALID = "Invalid key/value pair, ignoring."


def split_tokens(text: str) -> Iterator[UdevToken]:
    """Yield a rule's tokens as they are written; see parse_line() of udev-rules.c.

    Commas and spaces between tokens are optional. Raises ValueError at text that is no token: udev then drops
    the whole rule. A prefix i is understood by systemd newer than 252, which takes it for such an error.
    """
    at = _skip(text, 0)
    while at < len(text):
        key = _demand(_KEY.match(text, at))
        attribute, end = None, key.end()
        if text.startswith("{", end):
            braces = _demand(_ATTRIBUTE.match(text, end))
            attribute, end = braces[1], braces.end()
        operator = _demand(_OPERATOR.match(text, end))
        if plain := _PLAIN.match(text, operator.end()):
            value = plain[2].replace('\\"', '"')
            yield UdevToken(key[1], attribute, operator[1], value, ignore_case=bool(plain[1]))
            at = _skip(text, plain.end())
            continue
        escaped = _demand(_ESCAPED.match(text, operator.end()))
        value = _ESCAPE.sub(_unescape, escaped[2])
        prefix = escaped[1]
        yield UdevToken(key[1], attribute, operator[1], value, escaped=True, ignore_case="i" in prefix)
        at = _skip(text, escaped.end())


def _skip(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return match.end() if match else at


def _demand(match: re.Match[str] | None) -> re.Match[str]:
    if match is None:
        raise ValueError(_INVALID)
    return match


def _unescape(match: re.Match[str]) -> str:
    """Return the character of an escape; see cunescape_one() of src/basic/escape.c. NUL is refused."""
    letter, hexadecimal, octal, *unicode = match.groups()
    if letter:
        return _LETTERS[letter]
    if hexadecimal or octal:
        byte = int(hexadecimal, 16) if hexadecimal else int(octal, 8)
        if not 0 < byte <= _BYTE:
            raise ValueError(_INVALID)
        return chr(byte) if byte < _ASCII else chr(0xDC00 + byte)
    code = int(unicode[0] or unicode[1] or "0", 16)
    if not 0 < code <= _LAST_CHARACTER or code in _SURROGATES:
        raise ValueError(_INVALID)
    return chr(code)
