"""The parsers keep their promises for the texts that the fuzzer kept, and the page has its figures."""

from __future__ import annotations

from itertools import islice

import pytest

from nfstuned.errors import ParseError
from tests.bench.page import RELIABILITY, filled
from tests.fuzz.checks import BrokenPromiseError
from tests.fuzz.kept import inputs, lines_of_inputs, part, results
from tests.fuzz.targets import MOST_TIMES, TARGETS, Target, judge

KEPT = inputs()


@pytest.mark.parametrize("name", TARGETS)
def test_every_kept_text_is_read_or_refused(name: str) -> None:
    for text in KEPT.get(name) or islice(TARGETS[name].seeds(), 20):
        judge(TARGETS[name], text)


def test_the_page_is_of_the_kept_figures() -> None:
    figures = results()
    assert [*figures] == [*TARGETS]
    page = RELIABILITY.read_text()
    assert page == filled(page, "fuzz", part(figures, KEPT))


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([True, False], "promise 1 is broken"),
        ([ParseError("f", 3, "x")], "line 3 of 2: f:3: x"),
        (["x" * (MOST_TIMES + (1 << 18))], "characters of 3"),
    ],
)
def test_a_broken_promise_is_a_fault(rows: list[object], fault: str) -> None:
    with pytest.raises(BrokenPromiseError, match=fault):
        judge(Target(lambda _: rows, tuple), b"a\nb")


def test_bytes_come_back_as_they_were_kept() -> None:
    texts = [bytes(range(256)), b"", "é".encode()]
    assert lines_of_inputs({"a": texts}).count("\n") == len(texts)
