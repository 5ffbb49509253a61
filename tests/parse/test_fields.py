from __future__ import annotations

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nfstuned.model.kernel import parse_options
from nfstuned.parse import fields
from tests.parse.damage import any_text


def test_a_number_is_unsigned_decimal_of_64_bits() -> None:
    for text, value in (("0", 0), ("007", 7), (str(fields.LARGEST), fields.LARGEST)):
        assert fields.parse_number("value", text) == value


def test_anything_else_is_no_number() -> None:
    for text in ("", "-1", "+1", " 1", "1_0", "0x1", "²", "१", "9" * 5000, str(fields.LARGEST + 1)):
        with pytest.raises(ValueError, match="value"):
            fields.parse_number("value", text)


@pytest.mark.parametrize(
    ("text", "count", "problem"),
    [
        ("1 2", 3, "c has 2 numbers, at least 3 expected: '1 2'"),
        ("1  2", 2, "c holds something that is not a number: '1  2'"),
        (str(2**64), 1, "c does not fit 64 bits"),
        ("1" * 20 * 10_000 + "x", 1, "not a number"),  # at once, and not in the square of its length
    ],
)
def test_counters_say_what_is_wrong_with_them(text: str, count: int, problem: str) -> None:
    assert fields.counters("c", "1 -2 3 ", 3) == [1, -2, 3]
    with pytest.raises(ValueError, match=problem):
        fields.counters("c", text, count)


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
    assert fields.unescape(escaped) == text


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
    assert fields.unmangle(escaped) == text


@given(any_text)
def test_no_text_breaks_the_decoder_and_no_name_has_a_byte_that_is_0_by_an_escape(text: str) -> None:
    for escaped in (text, "\\" + text):
        assert "\0" in text or "\0" not in fields.unescape(escaped) + fields.unmangle(escaped)


@given(any_text)
def test_a_quoted_token_is_short_printable_ascii(text: str) -> None:
    shown = fields.quoted(text * 5)
    assert shown.isascii()
    assert shown.isprintable()
    assert len(shown) < 1000


def test_a_clean_path_does_not_leave_the_root() -> None:
    paths = {"/": "/", "//a//b/": "/a/b", "a/./b": "/a/b", "/../../x": "/x", "": "/"}
    assert {path: fields.clean_path(path) for path in paths} == paths


def test_options_keep_their_order_and_the_last_one_counts() -> None:
    options = parse_options("rw,vers=4.1,nconnect=4,nconnect=8")
    assert options.pairs == (("rw", None), ("vers", "4.1"), ("nconnect", "4"), ("nconnect", "8"))
    assert options.number("nconnect") == 8


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", ()),
        (",,rw,", (("rw", None),)),
        ("a=b=c", (("a", "b=c"),)),
        ("a=", (("a", ""),)),
        ("=a", (("", "a"),)),
        ('context="a,b=c",rw', (("context", '"a,b=c"'), ("rw", None))),
        ('rw,context="a,b', (("rw", None), ("context", '"a,b'))),
        ('a="x"y"z,w",b', (("a", '"x"y"z,w"'), ("b", None))),
    ],
)
def test_quoted_commas_and_later_equals_stay(text: str, pairs: tuple[tuple[str, str | None], ...]) -> None:
    assert parse_options(text).pairs == pairs


def test_an_escaped_comma_does_not_split_and_an_option_without_value_keeps_none() -> None:
    options = fields.parse_kernel_options(r"rw,context=a\054b,x=")
    assert options.pairs == (("rw", None), ("context", "a,b"), ("x", ""))
    assert fields.parse_kernel_options("rw").pairs == (("rw", None),)


@given(any_text)
def test_any_text_is_a_list_of_options(text: str) -> None:
    fields.parse_kernel_options(text)
    for each in (text, text + '"'):
        assert ",".join(f"{k}={v}" if v is not None else k for k, v in parse_options(each).pairs) in {
            each,
            ",".join(part for part in each.split(",") if part),
        }


@given(st.integers(1, 50_000))
def test_an_open_quote_does_not_cost_more_than_its_length(length: int) -> None:
    assert len(parse_options('"' + "a," * length).pairs) == 1


KEY = base64.b64encode(bytes(range(64))).decode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rw,password=hunter2,vers=3.0", "rw,password=****,vers=3.0"),
        ("pass=a,,b,rw", "pass=****,rw"),
        ("password=Pa,Ss4,w0rd!,rw,uid=0", "password=****,rw,uid=0"),
        ("password=a,b", "password=****"),
        ("a\\,pass6r,e=t0", "a\\,pass6r,****"),
        (
            "username=u,password=a,b,C=d,vers=3.0,x-systemd.automount,noperm",
            "username=u,password=****,vers=3.0,x-systemd.automount,noperm",
        ),
        ("user=DOM/u%a,b,_netdev", "user=DOM/u%****,_netdev"),
        ("pass=a,ro b", "pass=****,ro b"),
        ("pass=a,RO,nofail", "pass=****,nofail"),
        ("password=x, which is no option", "password=****, which is no option"),
        ("Password2=x password = y", "Password2=**** password = ****"),
        ('passwd="a, b",rw', "passwd=****,rw"),
        ("password='it is',rw", "password=****,rw"),
        ('{"password": "a b", "x": 1}', '{"password": ****, "x": 1}'),
        ("username=u%hunter2,rw", "username=u%****,rw"),
        ("user=dom/u%hunter2", "user=dom/u%****"),
        ("//u:hunter2@h/s", "//u:****@h/s"),
        ("smb://u:h@nter2@h/s", "smb://u:****@h/s"),
        ("//u:hunt/er2@h/s", "//u:****@h/s"),
        ("//u%hunter2@h/s", "//u%****@h/s"),
        ("https://a.blob/x?sv=1&sig=ab%2Bc&se=2", "https://a.blob/x?sv=1&sig=****&se=2"),
        (f"AccountKey={KEY};x", "AccountKey=****"),
        (f"see {KEY}.", "see ****."),
        ("account_key=x", "account_key=****"),
        ("credentials=user:hunter2", "credentials=****"),
        ("token=t secret=s passphrase=p", "token=**** secret=**** passphrase=****"),
    ],
)
def test_secrets_are_masked_and_what_stands_around_them_stays(text: str, shown: str) -> None:
    assert fields.mask_secrets(text) == shown
    assert fields.mask_secrets(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        *("credentials=/etc/smb.cred", "cred=/etc/x", "sec=sys,rw,nconnect=4", "username=u,uid=0"),
        *("nas:/v@2026", "//h/s", "[fe80::1%eth0]:/v", "https://learn.microsoft.com/a?x=1", "passno: 0"),
        *("permission denied; no password: ask root", "s:/a=b", "fsck pass is not a number: 'x'"),
        *("sign=on", "design=1", "A" * 86),
    ],
)
def test_what_is_no_secret_is_shown(text: str) -> None:
    assert fields.mask_secrets(text) == text


@given(st.text(alphabet="pasword=,:/@%\"' *x\n&sigR", max_size=60))
@example(",passR=w")
@example("ro,passWORD9")
@example("ro,passwd2x: 'a'")
def test_a_text_that_is_masked_stays_as_it_is(text: str) -> None:
    once = fields.mask_secrets(text)
    assert fields.mask_secrets(once) == once


def test_a_token_is_masked_before_it_is_cut_and_one_beside_a_secret_whole() -> None:
    text = "x" * 70 + ",password=hunter2hunter2hunter2"
    assert fields.quoted(text) == ascii("x" * 70 + ",password=****"[:10]) + "..."
    assert fields.quoted("word", "password=my") == ascii(fields.MASK)
    assert fields.quoted("word", "rw,hard") == "'word'"
