"""The option in a line of fstab: where it goes, and that nothing else moves."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.nconnect.fstab import is_faithful, with_count, with_counts
from tests.parse.damage import any_text, damaged, tokens_damaged

LINE = 'sa1:/sa1/share /mnt/a\\040b nfs rw,context="a,b",nconnect=2,hard 0 0 # why'


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("s:/ /m nfs defaults 0 0", "s:/ /m nfs defaults,nconnect=4 0 0"),
        ("s:/ /m nfs rw", "s:/ /m nfs rw,nconnect=4"),
        ("s:/ /m nfs rw\r", "s:/ /m nfs rw,nconnect=4\r"),
        ("s:/ /m nfs rw, 0 0", "s:/ /m nfs rw,nconnect=4 0 0"),
        ("s:/ /m nfs", "s:/ /m nfs nconnect=4"),
        ("s:/\t/m\tnfs\t\r", "s:/\t/m\tnfs nconnect=4\t\r"),
        ("\ts:/  /m\tnfs \t rw\t0  0 \t", "\ts:/  /m\tnfs \t rw,nconnect=4\t0  0 \t"),
        ("s:/ /m nfs nconnect=2 0 0", "s:/ /m nfs nconnect=4 0 0"),
        ("s:/ /m nfs a,nconnect=16,b 0 0", "s:/ /m nfs a,nconnect=4,b 0 0"),
        ("s:/ /m nfs a,nconnect=1,b,nconnect=2 0 0", "s:/ /m nfs a,nconnect=4,b 0 0"),
        ("s:/ /m nfs nconnect=1,nconnect=2, 0 0", "s:/ /m nfs nconnect=4, 0 0"),
        ("s:/ /m nfs nconnect,b 0 0", "s:/ /m nfs nconnect=4,b 0 0"),
        ("s:/ /m nfs xnconnect=1 0 0", "s:/ /m nfs xnconnect=1,nconnect=4 0 0"),
        ("s:/ /m nfs ,,a 0 0", "s:/ /m nfs ,,a,nconnect=4 0 0"),
        ('s:/ /m nfs context="a,nconnect=9,b",x 0 0', 's:/ /m nfs context="a,nconnect=9,b",x,nconnect=4 0 0'),
    ],
)
def test_the_option_is_changed_in_place_or_stands_last(line: str, expected: str) -> None:
    assert with_count(line, 4) == expected
    assert is_faithful(line, expected, 4)


@pytest.mark.parametrize(
    "line",
    ['s:/ /m nfs rw,context="a 0 0', "s:/ /m nfs rw,nconnect\\0753 0 0", "s:/ /m nfs rw 0 x", "s:/ /m"],
)
def test_a_line_that_would_not_be_read_as_meant_is_told(line: str) -> None:
    assert not is_faithful(line, with_count(line, 4), 4)


@pytest.mark.parametrize(
    "other",
    [
        "t:/ /m nfs rw,nconnect=4",
        "s:/ /n nfs rw,nconnect=4",
        "s:/ /m nfs4 rw,nconnect=4",
        "s:/ /m nfs ro,nconnect=4",
        "s:/ /m nfs rw,nconnect=5",
        "s:/ /m nfs rw,nconnect=4,nconnect=4",
        "#s:/ /m nfs rw,nconnect=4",
    ],
)
def test_any_other_difference_is_not_faithful(other: str) -> None:
    assert not is_faithful("s:/ /m nfs rw", other, 4)


def test_only_the_numbered_lines_of_a_text_change() -> None:
    text = "# a\ns:/ /m nfs rw\ns:/ /n nfs rw"
    assert with_counts(text, {3: 8}) == "# a\ns:/ /m nfs rw\ns:/ /n nfs rw,nconnect=8"
    assert with_counts(text, {}) == text


@given(st.one_of(damaged(LINE), tokens_damaged(LINE), any_text).filter(lambda line: "\n" not in line))
def test_whatever_a_line_holds_only_its_options_change(line: str) -> None:
    changed = with_count(line, 4)
    if is_faithful(line, changed, 4):
        fields = re.compile(r"([ \t]*(?:[^ \t]+[ \t]+){2}[^ \t]+)(?:[ \t]+[^ \t]+)?(.*)", re.DOTALL)
        was, now = fields.fullmatch(line.removesuffix("\r")), fields.fullmatch(changed.removesuffix("\r"))
        assert was is not None
        assert now is not None
        assert was.groups() == now.groups()
        assert with_count(changed, 4) == changed
