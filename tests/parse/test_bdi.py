from __future__ import annotations

import pytest
from hypothesis import given

from nfstuned.errors import ParseError
from nfstuned.parse.proc.superblocks import is_device_number, parse_read_ahead
from tests.parse.conftest import Captured
from tests.parse.damage import any_text


def test_every_real_bdi_has_the_kernels_default(captured: Captured) -> None:
    for line in captured("bdi").splitlines():
        path, _, value = line.partition("/read_ahead_kb:")
        assert is_device_number(path.rpartition("/")[2])
        assert parse_read_ahead(value + "\n", path) == 128


@pytest.mark.parametrize(
    "name", ["btrfs-1", "ceph-1", "0:", ":4", "0:4:3", "0:٤", "0:4\n", "", "0:" + "9" * 5000]
)
def test_other_names_are_no_device_numbers(name: str) -> None:
    assert not is_device_number(name)


def test_a_value_that_the_kernel_prints_as_negative_is_an_enormous_one() -> None:
    # 2**64-1 is taken for a read-ahead and reads back as -4: pages are rounded down, and the print is signed
    assert parse_read_ahead("-4\n", "f") == 2**64 - 4
    assert parse_read_ahead("-0", "f") == 0


@pytest.mark.parametrize("text", ["", "\n", "-", "12k", "1 2", "\0", "9" * 5000, "--4"])
def test_anything_else_is_an_error_that_names_file_and_token(text: str) -> None:
    with pytest.raises(
        ParseError, match=r"^/sys/class/bdi/0:4/read_ahead_kb:1: read-ahead is not a number: '"
    ):
        parse_read_ahead(text, "/sys/class/bdi/0:4/read_ahead_kb")


def test_a_message_marks_where_it_cuts_a_token() -> None:
    with pytest.raises(ParseError, match=r"not a number: '9{80}'\.\.\.$"):
        parse_read_ahead("9" * 5000, "f")


@given(any_text)
def test_nothing_but_a_parse_error_comes_out(text: str) -> None:
    is_device_number(text)
    try:
        value = parse_read_ahead(text, "f")
    except ParseError:
        return
    assert 0 <= value < 2**64
