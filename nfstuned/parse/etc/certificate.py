"""Certificates in PEM (RFC 7468): when each one ends, by its DER (RFC 5280, section 4.1; X.690).

Only the way to the end of the validity is read, and nothing is verified: whether a certificate is good is for
OpenSSL to say, of the connection that it is presented on.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import datetime, timezone

from nfstuned.errors import ParseError
from nfstuned.parse.fields import quoted

MOST_CERTIFICATES = 1000
"""A system's bundle has about 150."""
MOST_CHARACTERS = 65_536
"""Of a certificate in base64: those of CAs have 1,000 to 3,000."""
_DASHES, _BEGINS, _ENDS, _KIND = "-----", "-----BEGIN ", "-----END ", "CERTIFICATE-----"
_PLAIN = "-----BEGIN CERTIFICATE-----"
_SEQUENCE, _INTEGER, _VERSION, _UTC_TIME, _GENERALIZED_TIME = 0x30, 0x02, 0xA0, 0x17, 0x18
_LONG, _MOST_LENGTH_BYTES = 0x80, 4
_TIMES = {_UTC_TIME: 12, _GENERALIZED_TIME: 14}
"""How many digits stand before the Z, which RFC 5280 demands of both."""
_PIVOT = 50
"""Years of two digits: from here on they are of the 20th century."""


def parse_certificates(text: str, file: str) -> tuple[int | ParseError, ...]:
    """Return the last second in which each certificate is valid, in Unix time, in the file's order.

    Text between certificates is a comment. A certificate with OpenSSL's own additions (TRUSTED) is an
    error: not every program takes it.
    """
    rows: list[int | ParseError] = []
    for number, mark, content in _blocks(text):
        if len(rows) == MOST_CERTIFICATES:
            message = f"more than {MOST_CERTIFICATES} certificates: this and all later ones were not read"
            rows.append(ParseError(file, number, message))
            break
        try:
            rows.append(_end(mark, content))
        except ValueError as error:
            rows.append(ParseError(file, number, str(error)))
    return tuple(rows)


def _blocks(text: str) -> Iterator[tuple[int, str, str | None]]:
    """Yield each certificate: the number and text of its first line, and its content; None without an end."""
    began, mark = 0, ""
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        word = line.strip()
        if not word.startswith(_DASHES):
            lines.append(word)
            continue
        if began:
            yield began, mark, "".join(lines) if word.startswith(_ENDS) else None
        begins = word.startswith(_BEGINS) and word.endswith(_KIND)
        began, mark, lines = number if begins else 0, word, []
    if began:
        yield began, mark, None


def _end(mark: str, content: str | None) -> int:
    """Return when a certificate ends. Raises ValueError."""
    if mark != _PLAIN:
        raise ValueError(f"not a plain certificate: {quoted(mark)}")
    if content is None:
        raise ValueError("a certificate that does not end")
    if len(content) > MOST_CHARACTERS:
        raise ValueError(f"a certificate of more than {MOST_CHARACTERS} characters: not read")
    try:
        return _not_after(base64.b64decode(content, validate=True))
    except ValueError as error:
        raise ValueError(f"not a certificate: {error}") from None


def _not_after(data: bytes) -> int:
    """Return the notAfter of a certificate in DER, in Unix time. Raises ValueError."""
    start, end = _element(data, 0, len(data), _SEQUENCE)
    if end != len(data):
        raise ValueError("something follows it")
    at, stop = _element(data, start, end, _SEQUENCE)
    if data[at : at + 1] == bytes([_VERSION]):
        _, at = _element(data, at, stop, _VERSION)
    for tag in (_INTEGER, _SEQUENCE, _SEQUENCE):  # serialNumber, signature, issuer
        _, at = _element(data, at, stop, tag)
    at, stop = _element(data, at, stop, _SEQUENCE)
    _, at = _time(data, at, stop)
    moment, _ = _time(data, at, stop)
    return moment


def _element(data: bytes, at: int, stop: int, tag: int) -> tuple[int, int]:
    """Return where the content of an element begins and ends. Raises ValueError."""
    start = at + 2
    if start > stop:
        raise ValueError("it ends too soon")
    if data[at] != tag:
        raise ValueError(f"tag {data[at]:#04x} in the place of {tag:#04x}")
    length = data[at + 1]
    if length & _LONG:
        more = length - _LONG
        if not 0 < more <= _MOST_LENGTH_BYTES or start + more > stop:
            raise ValueError("a length that is none")
        length = int.from_bytes(data[start : start + more], "big")
        start += more
    if start + length > stop:
        raise ValueError("it ends too soon")
    return start, start + length


def _time(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """Return a time, and where it ends. Raises ValueError."""
    tag = data[at] if at < stop else 0
    digits = _TIMES.get(tag)
    if digits is None:
        raise ValueError(f"tag {tag:#04x} in the place of a time")
    start, end = _element(data, at, stop, tag)
    text = data[start:end].decode("ascii", "replace")
    number = text[:-1]
    if not (text.endswith("Z") and len(number) == digits and number.isascii() and number.isdigit()):
        raise ValueError(f"not a time: {quoted(text)}")
    year, rest = int(number[:-10]), number[-10:]
    if tag == _UTC_TIME:
        year += 1900 if year >= _PIVOT else 2000
    month, day, hour, minute, second = (int(rest[place : place + 2]) for place in range(0, 10, 2))
    return int(datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc).timestamp()), end
