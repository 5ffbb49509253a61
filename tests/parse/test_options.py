from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.model.kernel import parse_options
from nfstuned.parse.fields import parse_kernel_options
from tests.parse.damage import any_text


def test_options_keep_their_order_and_the_last_one_counts() -> None:
    options = parse_options("rw,vers=4.1,nconnect=4,hard,nconnect=8")
    assert options.pairs == (
        ("rw", None),
        ("vers", "4.1"),
        ("nconnect", "4"),
        ("hard", None),
        ("nconnect", "8"),
    )
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
def test_commas_in_quotes_and_further_equals_signs_belong_to_the_value(
    text: str, pairs: tuple[tuple[str, str | None], ...]
) -> None:
    assert parse_options(text).pairs == pairs


def test_an_escaped_comma_does_not_split_and_an_option_without_value_keeps_none() -> None:
    assert parse_kernel_options(r"rw,context=a\054b,x=").pairs == (
        ("rw", None),
        ("context", "a,b"),
        ("x", ""),
    )
    assert parse_kernel_options("rw").pairs == (("rw", None),)


@given(any_text)
def test_any_text_is_a_list_of_options(text: str) -> None:
    parse_kernel_options(text)
    for quoted in (text, text + '"'):
        assert ",".join(f"{k}={v}" if v is not None else k for k, v in parse_options(quoted).pairs) in {
            quoted,
            ",".join(part for part in quoted.split(",") if part),
        }


@given(st.integers(1, 50_000))
def test_an_open_quote_does_not_cost_more_than_its_length(length: int) -> None:
    assert len(parse_options('"' + "a," * length).pairs) == 1
