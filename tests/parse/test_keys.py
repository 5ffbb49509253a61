from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.parse.keys import parse_keys


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        (b"q", ("q",)),
        (b"jj<G?", ("j", "j", "<", "G", "?")),
        (b"\x1b[A\x1b[B", ("up", "down")),
        (b"\x1bOA\x1bOB\x1bOH\x1bOF", ("up", "down", "home", "end")),
        (b"\x1b[5~\x1b[6~\x1b[H\x1b[4~", ("page up", "page down", "home", "end")),
        (b"\r\n ", ("enter", "enter", " ")),
        (b"\x1b", ("escape",)),
        (b"\x1b[1;5A", ()),
        (b"\x1b[200~q\x1b[201~", ("q",)),
        (b"\x1b[24~\x1bOPp", ("p",)),
        ("é\x00\x7fq".encode(), ("q",)),
        (b"", ()),
    ],
)
def test_keys_have_names_and_no_part_of_a_sequence_is_a_letter(typed: bytes, keys: tuple[str, ...]) -> None:
    assert parse_keys(typed) == keys


@given(st.binary())
def test_nothing_that_is_typed_raises(typed: bytes) -> None:
    assert all(key.isprintable() for key in parse_keys(typed))
