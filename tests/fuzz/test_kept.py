"""The parsers keep their promises for the texts that the fuzzer kept, and the page has its figures."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType

import pytest

from nfstuned.errors import ParseError
from nfstuned.parse import deploy
from tests.bench.page import RELIABILITY, filled
from tests.fuzz.checks import BrokenPromiseError
from tests.fuzz.kept import inputs, lines_of_inputs, part, results
from tests.fuzz.targets import MOST_TIMES, TARGETS, Target, judge

KEPT = inputs()
DEPLOYMENT = (
    *("kubernetes", "compose", "ansible", "terraform", "cloud-init"),
    *("script", "kinds", "unit", "autofs"),
)


@pytest.mark.parametrize("name", TARGETS)
def test_every_kept_text_is_read_or_refused(name: str) -> None:
    for text in KEPT.get(name) or islice(TARGETS[name].seeds(), 20):
        judge(TARGETS[name], text)


def _functions(code: CodeType) -> Iterator[tuple[str, str, int]]:
    """Yield the file, the name and the line of each function in a code, but for lambdas and the like."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_flags & inspect.CO_NEWLOCALS and not inner.co_name.startswith("<"):
                yield inner.co_filename, inner.co_name, inner.co_firstlineno
            yield from _functions(inner)


def test_a_text_reaches_every_function_that_reads_deployment_files() -> None:
    """The fuzzer seldom makes such texts by itself: the words of a new form are not in its dictionary."""
    called = set[tuple[str, str, int]]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            code = frame.f_code
            called.add((code.co_filename, code.co_name, code.co_firstlineno))

    texts = [(TARGETS[name], (*TARGETS[name].seeds(), *KEPT.get(name, ()))) for name in DEPLOYMENT]
    sys.setprofile(note)
    try:
        for target, those in texts:
            for text in those:
                judge(target, text)
    finally:
        sys.setprofile(None)
    files = Path(deploy.__path__[0]).glob("*.py")
    written = {each for file in files for each in _functions(compile(file.read_text(), file, "exec"))}
    assert written - called == set()


def test_the_page_is_of_the_kept_figures() -> None:
    page = RELIABILITY.read_text()
    assert page == filled(page, "fuzz", part(results(), KEPT))


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([True, False], "a promise"),
        ([ParseError("f", 3, "x")], "line 3 of 2: f:3: x"),
        (["x" * (MOST_TIMES + (1 << 18))], "characters of 3"),
    ],
)
def test_a_broken_promise_is_a_fault(rows: list[object], fault: str) -> None:
    with pytest.raises(BrokenPromiseError, match=fault):
        judge(Target(lambda _: rows, tuple), b"a\nb")


def _two(data: bytes) -> Iterator[object]:
    yield from data.split()
    yield b"first" not in data
    yield from (part != b"second" for part in data.split())


def test_each_promise_has_a_name_of_its_own() -> None:
    """The fuzzer keeps a text for each name: a fault would hide all others of its target."""
    for data, fault in ((b"a first", 'yield b"first"'), (b"b a second", 'yield from (part != b"second"')):
        with pytest.raises(BrokenPromiseError, match=re.escape(fault)):
            judge(Target(_two, tuple), data)


def test_bytes_come_back_as_they_were_kept() -> None:
    texts = [bytes(range(256)), b"", "é".encode()]
    assert lines_of_inputs({"a": texts}).count("\n") == len(texts)
