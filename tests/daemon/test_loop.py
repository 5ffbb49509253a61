from __future__ import annotations

import math

from nfstuned.daemon.loop import next_tick


def test_a_tick_is_due_while_there_is_any_period() -> None:
    assert next_tick(100.0, 30.0, 60.0) == 130.0
    assert next_tick(100.0, 0.0, 60.0) == 160.0
    assert math.isinf(next_tick(100.0, 0.0, 0.0))
