from __future__ import annotations

import pytest

from tests.bench.bench_growth import FEW, MANY, PIECES, READERS, check_seconds, hosts, seconds, text_of

SHORT, LONG = 4096, 8 * 4096
LEAST_S = 0.002
"""Shorter times are too short to compare, and do no harm."""
TIMES = 20
"""Between 8, or 10 for n log n, and 64 for the square."""
RUNS = 5


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_no_reader_takes_the_square_of_its_texts_length(name: str) -> None:
    """CPU time is measured, the least of some runs; a piece that seems slow is measured again."""
    read = READERS[name]
    for piece in PIECES:
        short, long = text_of(piece, SHORT), text_of(piece, LONG)
        if (once := seconds(read, long)) > LEAST_S and once > TIMES * seconds(read, short):
            ratio = seconds(read, long, RUNS) / seconds(read, short, RUNS)
            assert ratio < TIMES, f"{piece!r} eight times as long takes {ratio:.0f} times as long"


@pytest.mark.slow
@pytest.mark.parametrize("name", hosts(0))
def test_no_check_takes_the_square_of_its_hosts_size(name: str) -> None:
    few, many = hosts(FEW)[name], hosts(MANY)[name]
    assert MANY == 8 * FEW
    assert check_seconds(many, 2) < TIMES * check_seconds(few, RUNS)


def test_the_criterion_separates_the_square_from_linear_growth() -> None:
    def square(text: str) -> object:
        return [text[at:].count("b") for at in range(0, len(text), 4)]

    def linear(text: str) -> object:
        return [sorted(text.split("b")) for _ in range(40)]

    short, long = text_of("a", SHORT), text_of("a", LONG)
    assert seconds(square, long, RUNS) > TIMES * seconds(square, short, RUNS)
    assert seconds(linear, long, RUNS) < TIMES * seconds(linear, short, RUNS)
