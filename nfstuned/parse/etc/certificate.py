"""The expiry of certificates in PEM (RFC 7468), from their DER (RFC 5280, section 4.1; X.690).

Only the fields up to notAfter are read, and nothing is verified: OpenSSL does that for each connection.
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
"""The limit for one certificate in base64; a CA's has 1,000 to 3,000."""
_DASHES, _BEGINS, _ENDS, _KIND = "-----", "-----BEGIN ", "-----END ", "CERTIFICATE-----"
_PLAIN = ("-----BEGIN CERTIFICATE-----", "-----BEGIN X509 CERTIFICATE-----")
_SEQUENCE, _INTEGER, _VERSION, _UTC_TIME, _GENERALIZED_TIME = 0x30, 0x02, 0xA0, 0x17, 0x18
_LONG_FORM, _MOST_LENGTH_BYTES = 0x80, 4
_TIMES = {_UTC_TIME: 12, _GENERALIZED_TIME: 14}
"""The number of digits before the Z, by the tag; RFC 5280 demands the Z."""
_PIVOT = 50
"""The first year of two digits that is in the 20th century (RFC 5280, 4.1.2.5.1)."""


def parse_certificates(text: str, file: str) -> tuple[int | ParseError, ...]:
    """Return the last valid second of each certificate, in Unix time, in the file's order.

    Text between certificates is a comment. A certificate with OpenSSL's own additions (BEGIN TRUSTED
    CERTIFICATE) is an error: not every program accepts it.
    """
    rows: list[int | ParseError] = []
    for number, header, content in _blocks(text):
        if len(rows) == MOST_CERTIFICATES:
            message = f"more than {MOST_CERTIFICATES} certificates: this and all later ones were not read"
            rows.append(ParseError(file, number, message))
            break
        try:
            rows.append(_expiry(header, content))
        except ValueError as error:
            rows.append(ParseError(file, number, str(error)))
    return tuple(rows)


def _blocks(text: str) -> Iterator[tuple[int, str, str | None]]:
    """Yield the line number, BEGIN line and base64 of each certificate; no END line makes the base64 None."""
    began, header = 0, ""
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        word = line.rstrip()
        if not word.startswith(_DASHES):
            lines.append(word)
            continue
        if began:
            ended = word == header.replace(_BEGINS, _ENDS)
            yield began, header, "".join(lines) if ended else None
        begins = word.startswith(_BEGINS) and word.endswith(_KIND)
        began, header, lines = number if begins else 0, word, []
    if began:
        yield began, header, None


def _expiry(header: str, content: str | None) -> int:
    """Return the last valid second of a certificate. Raises ValueError."""
    if header not in _PLAIN:
        raise ValueError(f"not a plain certificate: {quoted(header)}")
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
    """Return the start and the end of the content of the element at `at`. Raises ValueError."""
    start = at + 2
    if start > stop:
        raise ValueError("it ends too soon")
    if data[at] != tag:
        raise ValueError(f"tag {data[at]:#04x} instead of {tag:#04x}")
    length = data[at + 1]
    if length & _LONG_FORM:
        size = length - _LONG_FORM
        if not 0 < size <= _MOST_LENGTH_BYTES or start + size > stop:
            raise ValueError("an invalid length")
        length = int.from_bytes(data[start : start + size], "big")
        start += size
    if start + length > stop:
        raise ValueError("it ends too soon")
    return start, start + length


def _time(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """Return the time at `at`, in Unix time, and its end in the data. Raises ValueError."""
    tag = data[at] if at < stop else 0
    digits = _TIMES.get(tag)
    if digits is None:
        raise ValueError(f"tag {tag:#04x} instead of a time")
    start, end = _element(data, at, stop, tag)
    text = data[start:end].decode("ascii", "replace")
    number = text[:-1]
    if not (text.endswith("Z") and len(number) == digits and number.isascii() and number.isdigit()):
        raise ValueError(f"not a time: {quoted(text)}")
    year, rest = int(number[:-10]), number[-10:]
    if tag == _UTC_TIME:
        year += 1900 if year >= _PIVOT else 2000
    month, day, hour, minute, second = (int(rest[start : start + 2]) for start in range(0, 10, 2))
    return int(datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc).timestamp()), end
