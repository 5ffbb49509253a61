"""A mount has its read-ahead when mount(8) returns; where nfs-utils interferes, soon after and for good."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit import rivals
from tests.lab.kit.expect import tuned
from tests.lab.kit.race import race
from tests.lab.kit.server import SHARES

if TYPE_CHECKING:
    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounts
    from tests.lab.kit.server import Server

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


def test_with_nfs_utils_rule_in_place_30_of_30_mounts_end_right(
    mount: Mounts, running_daemon: Daemon, server: Server
) -> None:
    wanted = [(f"many{n}", options) for n in range(MOUNTS // 3) for options in VERSIONS]
    server.export(*dict.fromkeys(share for share, _ in wanted))
    mounted = [mount(share, options) for share, options in wanted]
    rivals.settle()
    tuned(AZURE_KB, *mounted)
    time.sleep(3)
    values = [one.read_ahead_kb for one in mounted]
    assert values == [AZURE_KB] * MOUNTS, f"did not stay: {values}\n{_said(running_daemon)}"


def _said(daemon: Daemon) -> str:
    return "\n".join(entry["MESSAGE"] for entry in daemon.entries())
