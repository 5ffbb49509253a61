"""A mount has its read-ahead when mount(8) returns, long before a vendor's rule would set it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from tests.bench.bench_time_to_tuned import measure, table
from tests.lab.kit.race import race
from tests.lab.kit.server import SHARES

if TYPE_CHECKING:
    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounts

pytestmark = pytest.mark.release
VERSIONS = ("vers=3,nolock", "vers=4.1,nconnect=4", "vers=4.2")
AZURE_KB = 15360
MOUNTS = 30


@pytest.mark.parametrize("options", VERSIONS)
@pytest.mark.usefixtures("quiet_udev", "running_daemon")
def test_27_of_30_mounts_are_right_at_the_first_look_and_all_within_50_ms(
    mount: Mounts, options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = race(mount, options, AZURE_KB, itertools.islice(itertools.cycle(SHARES), MOUNTS))
    with capsys.disabled():
        print(f"\n  {seen}")
    assert seen.first_looks >= 27, str(seen)
    assert seen.worst_ms <= 50, str(seen)


def test_nfstuneds_median_is_at_most_a_quarter_of_the_vendors_rules(
    mount: Mounts, stopped_daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not stopped_daemon.active
    found = measure(mount)
    with capsys.disabled():
        print(f"\n{table(found)}")
    assert found["nfstuned"].median_ms <= found["the vendor's awk rule"].median_ms / 4, table(found)
