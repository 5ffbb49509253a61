from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bench.fuzz import fuzz, main

few = settings(max_examples=20, database=None)


def test_what_is_found_is_found_again_with_the_seed_that_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen: list[int] = []

    @few
    @given(st.integers(0, 10**6))
    def planted(number: int) -> None:
        seen.append(number)
        assert number % 7

    assert fuzz([("planted", planted)], 60, 3) == 1
    first, said = list(seen), capsys.readouterr()
    assert "planted(\n    number=0,\n)" in said.err
    (again,) = re.findall(
        r"^planted failed after \d+ cases: python -m tests.bench.fuzz 0 (\d+)$", said.out, re.MULTILINE
    )
    seen.clear()
    assert fuzz([("planted", planted)], 0, int(again)) == 1
    assert seen == first[-len(seen) :]


def test_where_nothing_is_found_the_cases_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[int] = []

    @few
    @given(st.integers(0, 10**6))
    def sound(number: int) -> None:
        seen.append(number)

    assert fuzz([("sound", sound)], 0, 3) == 0
    assert f"{len(seen)} cases of 1 properties in 1 rounds: nothing found" in capsys.readouterr().out


def test_an_argument_that_is_no_number_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["soon"]) == main([]) == main(["1", "2", "3"]) == 2
    assert "SECONDS [SEED]" in capsys.readouterr().err
