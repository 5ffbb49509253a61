"""What other programs took of the machine is told from what a guest took."""

from __future__ import annotations

import subprocess

import pytest

from tests.lab.quiet import Spent, elsewhere, now, spent

STAT = "cpu  1000 200 300 5000 400 10 20 70 900 100\ncpu0 500 100 150 2500 200 5 10 35 450 50\n"


def test_idle_time_is_not_busy_and_a_guests_time_is_counted_once() -> None:
    assert spent(STAT, 100, 2.5) == Spent(all_s=70.0, busy_s=16.0, own_s=2.5)


def test_what_is_no_stat_is_refused() -> None:
    with pytest.raises(ValueError, match="no line of all processors"):
        spent("cpu0 1 2 3\n", 100, 0.0)


def test_other_programs_have_what_is_busy_and_not_ours() -> None:
    before, after = Spent(100.0, 50.0, 10.0), Spent(300.0, 200.0, 130.0)
    assert elsewhere(before, after) == pytest.approx(0.15)
    assert elsewhere(before, Spent(300.0, 50.0, 11.0)) == 0.0
    assert elsewhere(before, before) == 0.0


def test_a_child_that_ended_is_our_own() -> None:
    before = now()
    subprocess.run(["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"], check=True)
    after = now()
    assert after.own_s - before.own_s > 0.05
    assert after.all_s >= before.all_s
