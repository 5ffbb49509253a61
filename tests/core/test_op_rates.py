from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.samples.growth import GROUP_OPS, NOTHING_ELSEWHERE, Elsewhere, ResetError, Span, elsewhere
from nfstuned.core.samples.rates import op_rates
from nfstuned.model.kernel import MountStats, OpCounters, Stanza
from nfstuned.model.samples import OpRate
from tests.core.test_growth import wholly_different
from tests.core.test_rates import lasting, stats
from tests.core.written import cut

BEFORE = OpCounters(10, 11, 1, 100, 100, 5, 50, 60, 2)
NOW = OpCounters(20, 23, 2, 200, 400, 15, 70, 90, 3)
"""Ten more of which two were sent again; one timed out, and one failed."""


def both(before: MountStats, now: MountStats, seconds: float = 10.0) -> list[dict[str, OpRate] | None]:
    """The rates of operations that are read together, and one after the other; None where there are none."""
    (earlier,), (later,) = cut(before), cut(now)
    return [told(earlier, stanza, seconds) for stanza in (later, wholly_different(later))]


def told(
    before: Stanza, now: Stanza, seconds: float, counted: Elsewhere = NOTHING_ELSEWHERE
) -> dict[str, OpRate] | None:
    try:
        return op_rates(before, now, Span.of(seconds), counted)
    except ResetError:
        return None


def test_all_that_a_line_says_is_told() -> None:
    rate = OpRate(1.0, 2.0, 1.0, 3.0, 0.2, 0.1, 0.1, 10.0, 30.0)
    assert (
        both(stats(READ=BEFORE, WRITE=BEFORE), stats(READ=NOW, WRITE=NOW))
        == [{"READ": rate, "WRITE": rate}] * 2
    )


@pytest.mark.parametrize(
    "now",
    [
        NOW,
        BEFORE,
        replace(BEFORE, bytes_sent=5000),
        replace(NOW, bytes_sent=99),
        replace(NOW, bytes_received=2**64 - 1),
        replace(NOW, errors=None),
        replace(NOW, ops=10),
        replace(NOW, ops=9),
        replace(NOW, transmissions=20),
        replace(NOW, rtt_ms=49),
        replace(NOW, queue_ms=2**64 - 1),
        replace(NOW, execute_ms=2**63 + 60),
        replace(NOW, ops=2**40, transmissions=2**40),
        replace(NOW, ops=2**40),
        replace(NOW, transmissions=2**40),
        replace(NOW, timeouts=2**40),
        replace(NOW, errors=2**40),
        replace(NOW, bytes_received=7),
        OpCounters(0, 0, 0, 0, 0, 0, 0, 0, 0),
    ],
)
def test_what_is_out_of_the_ordinary_is_told_as_one_after_the_other_would(now: OpCounters) -> None:
    for old in (BEFORE, replace(BEFORE, errors=None)):
        together, alone = both(stats(READ=old, WRITE=old), stats(READ=now, WRITE=NOW))
        assert together == alone


@given(lasting(), st.floats(0.01, 1000))
def test_what_is_read_together_is_what_one_after_the_other_says(
    pair: tuple[MountStats, MountStats], seconds: float
) -> None:
    together, alone = both(*pair, seconds)
    assert together == alone


@pytest.mark.parametrize("place", [0, 1, 2, 20, 39])
def test_an_operation_is_found_wherever_it_stands(place: int) -> None:
    """Lines at the end that are the same are not looked at."""
    names = [f"OP{number}" for number in range(40)]
    before = replace(stats(), ops=dict.fromkeys(names, BEFORE))
    now = replace(stats(), ops={name: NOW if at == place else BEFORE for at, name in enumerate(names)})
    together, alone = both(before, now)
    assert together == alone
    assert together is not None
    assert list(together) == [names[place]]


def test_operations_of_the_group_are_left_out_where_they_are_counted_elsewhere() -> None:
    before, now = stats(READ=BEFORE, SEQUENCE=BEFORE), stats(READ=NOW, SEQUENCE=NOW)
    other = stats(READ=NOW, SEQUENCE=replace(NOW, ops=21))
    (earlier,), (later,), (different,) = cut(before), cut(now), cut(other)
    counted = elsewhere(earlier, later, GROUP_OPS)
    for stanza in (later, different):
        found = told(earlier, stanza, 10.0, counted)
        assert found == told(earlier, wholly_different(stanza), 10.0, counted)
        assert found is not None
        assert list(found) == ["READ"]
