from __future__ import annotations

import pytest
from hypothesis import given

from nfstuned.parse.fields import LARGEST, clean_path, counters, number, quoted, unescape, unmangle
from tests.parse.damage import any_text


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("007", 7), (str(LARGEST), LARGEST)])
def test_a_number_is_unsigned_decimal_of_64_bits(text: str, value: int) -> None:
    assert number("value", text) == value


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1_0", "0x1", "²", "१", "9" * 5000, str(LARGEST + 1)])
def test_anything_else_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="value"):
        number("value", text)


def test_counters_say_what_is_wrong_with_them() -> None:
    assert counters("c", "1 -2 3 ", 3) == [1, -2, 3]
    with pytest.raises(ValueError, match="c has 2 numbers, at least 3 expected: '1 2'"):
        counters("c", "1 2", 3)
    with pytest.raises(ValueError, match="c holds something that is not a number: '1  2'"):
        counters("c", "1  2", 2)
    with pytest.raises(ValueError, match="c does not fit 64 bits"):
        counters("c", str(2**64), 1)


def test_a_long_list_of_counters_with_damage_at_its_end_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="not a number"):
        counters("c", "1" * 20 * 10_000 + "x", 1)


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (r"/mnt/with\040space", "/mnt/with space"),
        (r"\011\012\134\043", "\t\n\\#"),
        (r"caf\303\251", "café"),
        (r"\377", "\udcff"),
        (r"\777 \08 \0", r"\777 \08 \0"),
        (r"/a\000b \400", r"/a\000b \400"),
        (r"\040\000\040", r" \000 "),
        (r"\134040", r"\040"),
        ("plain", "plain"),
    ],
)
def test_escapes_are_bytes(escaped: str, text: str) -> None:
    assert unescape(escaped) == text


# isoctal() and unmangle_to_buffer() of util-linux, lib/mangle.c
@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (r"/mnt/with\040space\134\0", "/mnt/with space\\\\0"),
        (r"caf\303\251", "café"),
        (r"\777", "\udcff"),
        (r"\501\502", "AB"),
        (r"/a\000b", "/a"),
        (r"/a\400b", "/a"),
        ("plain", "plain"),
    ],
)
def test_libmount_takes_any_three_octal_digits_and_ends_at_a_byte_that_is_0(escaped: str, text: str) -> None:
    assert unmangle(escaped) == text


@given(any_text)
def test_no_name_has_a_byte_that_is_0_by_an_escape(text: str) -> None:
    assert "\0" in text or "\0" not in unescape(text) + unmangle(text)


@given(any_text)
def test_no_text_breaks_the_decoder(text: str) -> None:
    unescape(text)
    unmangle(text)
    unescape("\\" + text)


@given(any_text)
def test_a_quoted_token_is_short_printable_ascii(text: str) -> None:
    shown = quoted(text * 5)
    assert shown.isascii()
    assert shown.isprintable()
    assert len(shown) < 1000


@pytest.mark.parametrize(
    ("path", "clean"),
    [("/", "/"), ("//a//b/", "/a/b"), ("a/./b", "/a/b"), ("/../../x", "/x"), ("", "/")],
)
def test_a_clean_path_does_not_leave_the_root(path: str, clean: str) -> None:
    assert clean_path(path) == clean
