from __future__ import annotations

import base64
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.parse.etc.certificate import MOST_CERTIFICATES, MOST_CHARACTERS, parse_certificates

FOLDER = Path(__file__).parents[1] / "data/certificates"
ENDED, ROOT = (FOLDER / "ended.pem").read_text(), (FOLDER / "root.pem").read_text()
BEGIN, END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def moment(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=timezone.utc).timestamp())  # type: ignore[misc,arg-type]  # of *parts


ENDS = {
    "ended": moment(2020, 1, 1),
    "soon": moment(2026, 12, 10, 12),
    "root": moment(2049, 12, 31, 23, 59, 59),
    "never": moment(9999, 12, 31, 23, 59, 59),
    "version1": moment(2120, 1, 1),
}


def wrapped(data: bytes) -> str:
    """Return DER, whatever it is, as PEM."""
    return f"{BEGIN}\n{base64.encodebytes(data).decode()}{END}\n"


def der(tag: int, *parts: bytes) -> bytes:
    """Return an element with a short length."""
    content = b"".join(parts)
    return bytes([tag, len(content)]) + content


def certificate(*times: bytes, version: bytes = b"") -> str:
    """Return as little of a certificate as is read."""
    empty = der(0x30)
    return wrapped(der(0x30, der(0x30, version, der(2, b"\1"), empty, empty, der(0x30, *times), empty)))


def utc(text: str) -> bytes:
    return der(0x17, text.encode())


def why(text: str) -> str:
    """Return why the only certificate is none."""
    (row,) = parse_certificates(text, "/ca.pem")
    assert isinstance(row, ParseError)
    assert row.file == "/ca.pem"
    return str(row)


@pytest.mark.parametrize("name", ENDS)
def test_a_certificate_made_by_openssl_ends_when_openssl_says(name: str) -> None:
    assert parse_certificates((FOLDER / f"{name}.pem").read_text(), "f") == (ENDS[name],)


def test_a_bundle_has_them_in_the_files_order_with_comments_between() -> None:
    text = f"# the old one\n{ENDED}\nsubject= /CN=x\n\n{ROOT.replace(chr(10), ' ' + chr(13) + chr(10))}"
    assert parse_certificates(text, "f") == (ENDS["ended"], ENDS["root"])


def test_another_name_of_a_plain_certificate_counts() -> None:
    assert parse_certificates(ROOT.replace(" CERT", " X509 CERT"), "f") == (ENDS["root"],)


def test_a_file_without_any_has_none() -> None:
    for text in (
        "",
        ROOT.replace("-----BEGIN", " -----BEGIN"),
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\nno certificate\n",
    ):
        assert parse_certificates(text, "f") == ()


def test_what_openssl_adds_to_a_trusted_one_is_not_taken() -> None:
    assert "not a plain certificate" in why((FOLDER / "trusted.pem").read_text())


@pytest.mark.parametrize(
    "text",
    [*(ROOT[:200] + end for end in ("", "\n-----BEGIN PRIVATE KEY-----\n", "\n-----END PRIVATE KEY-----\n"))],
)
def test_one_that_is_cut_off_is_told(text: str) -> None:
    assert why(text) == "/ca.pem:1: a certificate that does not end"


BEFORE = utc("200101000000Z")


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (utc("4912312359Z"), "not a time"),
        (utc("491231235959+0000"), "not a time"),
        (utc("49123123595\udcff".encode("utf-8", "surrogateescape").decode("latin-1")), "not a time"),
        (utc("491331235959Z"), "month must be in 1..12"),
        (der(0x18, b"491231235959Z"), "not a time"),
        (der(0x18, b"00001231235959Z"), "year"),
        (der(0x04, b"491231235959Z"), "tag 0x04 instead of a time"),
        (b"", "tag 0x00 instead of a time"),
        (b"\x17", "it ends too soon"),
        (b"\x17\x80", "an invalid length"),
        (b"\x17\x85\0\0\0\0\1", "an invalid length"),
        (b"\x17\x82\1", "an invalid length"),
        (b"\x17\x84\xff\xff\xff\xff", "it ends too soon"),
    ],
)
def test_an_invalid_time_is_reported(end: bytes, said: str) -> None:
    assert said in why(certificate(BEFORE, end))


def test_years_of_two_digits_are_those_from_1950_to_2049() -> None:
    first, last = utc("500101000000Z"), utc("491231235959Z")
    assert parse_certificates(certificate(BEFORE, first), "f") == (moment(1950, 1, 1),)
    assert parse_certificates(certificate(BEFORE, last), "f") == (ENDS["root"],)


def test_a_bundle_and_a_certificate_have_a_bound() -> None:
    assert parse_certificates(ENDED * MOST_CERTIFICATES, "f") == (ENDS["ended"],) * MOST_CERTIFICATES
    more = parse_certificates(ENDED * (MOST_CERTIFICATES + 1), "f")
    assert len(more) == MOST_CERTIFICATES + 1
    assert "more than 1000 certificates" in str(more[-1])
    text = f"{BEGIN}\n{'A' * (MOST_CHARACTERS + 1)}\n{END}\n"
    assert f"more than {MOST_CHARACTERS} characters" in why(text)


@given(st.binary(max_size=300), st.integers(0, 300))
def test_any_der_is_a_certificate_or_an_error(data: bytes, at: int) -> None:
    real = base64.b64decode("".join(ENDED.split("\n")[1:-2]))
    for tried in (data, real[:at] + data, real[:at] + data + real[at + len(data) :]):
        (row,) = parse_certificates(wrapped(tried), "f") or (0,)
        assert isinstance(row, (int, ParseError))
