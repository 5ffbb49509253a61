"""nfstuned has a mount right in at most a quarter of the time of the vendor's rule; prints the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.bench_time_to_tuned import measure, table

if TYPE_CHECKING:
    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounts

pytestmark = pytest.mark.release


def test_nfstuneds_median_is_at_most_a_quarter_of_the_vendors_rules(
    mount: Mounts, stopped_daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not stopped_daemon.active
    found = measure(mount)
    with capsys.disabled():
        print(f"\n{table(found)}")
    assert found["nfstuned"].median_ms <= found["the vendor's awk rule"].median_ms / 4, table(found)
