"""Metrics are what fio, the kernel and promtool say, also through a remount and beside a storm of scrapes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.expect import becomes, tuned
from tests.lab.kit.load import Job, fio
from tests.lab.kit.metrics import (
    ADDRESS,
    SOCKET,
    configured,
    scrape,
    series,
    storm,
    total,
)
from tests.lab.kit.shell import attempt, wait_for
from tests.lab.kit.unit import let_tick

if TYPE_CHECKING:
    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounted, Mounts

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev")]
SIZE = 4 << 20
UNIX = f"unix:{SOCKET}"


def of(mounted: Mounted, what: str) -> int:
    name = f"nfstuned_mount_server_{what}_bytes_total"
    return int(total(series(scrape(UNIX)), name, mount_point=str(mounted.point)))


def test_counters_are_what_fio_moved_also_through_a_remount_and_beside_a_storm_of_scrapes(
    stopped_daemon: Daemon, mount: Mounts
) -> None:
    """An address needs the drop-in, which the journal says; a Unix socket does not."""
    stopped_daemon.configure(configured(listen=ADDRESS))
    stopped_daemon.start()
    entry = stopped_daemon.wait_for_entry(MESSAGE_ID=Message.METRICS_FAILED.id)
    assert f"prometheus.listen: {ADDRESS}: Address family not supported" in entry["MESSAGE"]
    assert "nfstuned-metrics.conf" in entry["MESSAGE"]
    stopped_daemon.configure(configured(listen=UNIX))
    stopped_daemon.reload()
    wait_for("the socket", _served, 30)

    Path("/srv/a/load").write_bytes(os.urandom(SIZE))
    used = mount("a", "vers=4.1,nconnect=4")
    mount.bind(used)
    tuned(15360, used)
    let_tick(stopped_daemon)
    before = of(used, "written"), of(used, "read")
    fio(used, Job("write", "1M", direct=True, size="4M"))
    fio(used, Job("read", "1M", direct=True, size="4M"))
    after = before[0] + SIZE, before[1] + SIZE
    becomes(after, lambda: (of(used, "written"), of(used, "read")))
    text = scrape(UNIX)
    checked = attempt("promtool", "check", "metrics", stdin=text)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    found = series(text)
    assert total(found, "nfstuned_mounts", exported="true") == 1
    assert total(found, "nfstuned_transport_connections") == 4
    assert total(found, "nfstuned_mount_read_ahead_bytes") == 15360 * 1024

    mount.clean()
    again = mount("a", "vers=4.1,nconnect=4", point=used.point)
    fio(again, Job("write", "1M", direct=True, size="4M"))
    # Series are of a place and a device number; with another number it would be another series.
    kept = after[0] if again.device == used.device else 0
    becomes(kept + SIZE, lambda: of(again, "written"))

    with storm(UNIX):
        for share in "bcd":
            tuned(15360, mount(share, "vers=4.2,nosharecache"), seconds=5)
    assert stopped_daemon.entries(MESSAGE_ID=Message.CYCLE_FAILED.id) == []


def _served() -> bool:
    try:
        return bool(scrape(UNIX))
    except OSError:
        return False
