"""Metrics agree with fio, the kernel and promtool, also through a remount and during a storm of scrapes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.load import Job, fio
from tests.lab.kit.metrics import configured, exporter, scrape, series, storm, total
from tests.lab.kit.shell import attempt, becomes, run, tuned
from tests.lab.kit.unit import let_tick

if TYPE_CHECKING:
    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounted, Mounts

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev")]
SIZE = 4 << 20


def of(mounted: Mounted, direction: str) -> int:
    name = f"nfstuned_mount_server_{direction}_bytes_total"
    return int(total(series(scrape()), name, mount_point=str(mounted.point)))


def test_counters_are_those_of_fio_also_through_a_remount_and_during_a_storm_of_scrapes(
    stopped_daemon: Daemon, mount: Mounts
) -> None:
    stopped_daemon.configure(configured())
    stopped_daemon.start()
    with exporter():
        assert "DynamicUser=yes" in run("systemctl", "show", "nfstuned-exporter.service")
        used, moved = _counted(stopped_daemon, mount)
        _counted_after_a_remount(mount, used, moved)
        with storm():
            for share in "bcd":
                tuned(15360, mount(share, "vers=4.2,nosharecache"), seconds=5)
    assert stopped_daemon.entries(MESSAGE_ID=Message.CYCLE_FAILED.id) == []


def _counted(daemon: Daemon, mount: Mounts) -> tuple[Mounted, int]:
    """Hold the counters of a mount to fio's bytes; return the mount and the bytes written by now."""
    Path("/srv/a/load").write_bytes(os.urandom(SIZE))
    used = mount("a", "vers=4.1,nconnect=4")
    mount.bind(used)
    tuned(15360, used)
    let_tick(daemon)
    before = of(used, "written"), of(used, "read")
    fio(used, Job("write", "1M", direct=True, size="4M"))
    fio(used, Job("read", "1M", direct=True, size="4M"))
    after = before[0] + SIZE, before[1] + SIZE
    becomes(after, lambda: (of(used, "written"), of(used, "read")))
    text = scrape()
    checked = attempt("promtool", "check", "metrics", stdin=text)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    found = series(text)
    assert total(found, "nfstuned_mounts", exported="true") == 1
    assert total(found, "nfstuned_transport_connections") == 4
    assert total(found, "nfstuned_mount_read_ahead_bytes") == 15360 * 1024
    return used, after[0]


def _counted_after_a_remount(mount: Mounts, used: Mounted, moved: int) -> None:
    mount.clean()
    again = mount("a", "vers=4.1,nconnect=4", point=used.point)
    fio(again, Job("write", "1M", direct=True, size="4M"))
    # Series are of a place and a device number; with another number it would be another series.
    before = moved if again.device == used.device else 0
    becomes(before + SIZE, lambda: of(again, "written"))
