"""Metrics are what fio, the kernel and check say; a real Prometheus scrapes them, and its alerts fire."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nfstuned.host.journal import Message
from tests.lab.kit.daemon import nfstuned
from tests.lab.kit.expect import becomes, tuned
from tests.lab.kit.load import Job, fio
from tests.lab.kit.metrics import ADDRESS, SOCKET, prometheus, query, scrape, series, storm, total
from tests.lab.kit.mounts import set_read_ahead_kb
from tests.lab.kit.shell import attempt, run, wait_for
from tests.lab.kit.unit import let_tick, override

if TYPE_CHECKING:
    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounted, Mounts

pytestmark = [pytest.mark.long, pytest.mark.timeout(300), pytest.mark.usefixtures("quiet_udev")]
SIZE = 4 << 20
DROP_IN = Path("/lab/systemd/nfstuned-metrics.conf")
DASHBOARD = Path("/lab/docs/prometheus/nfstuned.dashboard.json")
TEXTFILE = Path("/var/lib/prometheus/node-exporter/nfstuned.prom")


def configured(**keys: str) -> str:
    table = "".join(f'{name} = "{value}"\n' for name, value in keys.items())
    return f'[daemon]\nsample_interval = "1s"\n\n[prometheus]\n{table}'


def load(share: str) -> None:
    """Put the file for fio on the server."""
    Path(f"/srv/{share}/load").write_bytes(os.urandom(SIZE))


def of(mounted: Mounted, name: str, address: str = f"unix:{SOCKET}") -> float:
    return total(series(scrape(address)), name, mount_point=str(mounted.point))


def test_counters_are_what_fio_moved_also_through_a_remount(stopped_daemon: Daemon, mount: Mounts) -> None:
    """A Unix socket needs no drop-in; a bind mount is the same superblock."""
    stopped_daemon.configure(configured(listen=f"unix:{SOCKET}"))
    stopped_daemon.start()
    load("a")
    used = mount("a", "vers=4.1,nconnect=4")
    mount.bind(used)
    tuned(15360, used)
    let_tick(stopped_daemon)
    written, read = (f"nfstuned_mount_server_{what}_bytes_total" for what in ("written", "read"))
    before = of(used, written), of(used, read)
    fio(used, Job("write", "1M", direct=True, size="4M"))
    fio(used, Job("read", "1M", direct=True, size="4M"))
    becomes((SIZE, SIZE), lambda: (of(used, written) - before[0], of(used, read) - before[1]))
    text = scrape(f"unix:{SOCKET}")
    assert attempt("promtool", "check", "metrics", stdin=text).returncode == 0
    found = series(text)
    assert total(found, "nfstuned_mounts", exported="true") == 1
    assert total(found, "nfstuned_transport_connections") == 4
    assert total(found, "nfstuned_mount_read_ahead_bytes") == 15360 * 1024
    mount.clean()
    again = mount("a", "vers=4.1,nconnect=4", point=used.point)
    becomes(1.0, lambda: total(series(scrape(f"unix:{SOCKET}")), "nfstuned_mounts", exported="true"))
    fio(again, Job("write", "1M", direct=True, size="4M"))
    name = "nfstuned_mount_server_written_bytes_total"
    becomes(2.0 * SIZE, lambda: total(series(scrape(f"unix:{SOCKET}")), name))


def test_an_address_needs_the_drop_in_and_the_journal_says_so(stopped_daemon: Daemon, mount: Mounts) -> None:
    stopped_daemon.configure(configured(listen=ADDRESS, textfile=str(TEXTFILE)))
    stopped_daemon.start()
    tuned(15360, mount("a"))
    entry = stopped_daemon.wait_for_entry(MESSAGE_ID=Message.METRICS_FAILED.id)
    assert entry["MESSAGE"].startswith("prometheus.")
    stopped_daemon.stop()
    TEXTFILE.parent.mkdir(parents=True, exist_ok=True)
    with override(DROP_IN.read_text()):
        stopped_daemon.start()
        let_tick(stopped_daemon)
        wait_for("the file for node_exporter", TEXTFILE.exists)
        assert total(series(scrape(ADDRESS)), "nfstuned_mounts", exported="true") == 1
        assert total(series(TEXTFILE.read_text()), "nfstuned_mounts", exported="true") == 1
        stopped_daemon.stop()
    TEXTFILE.unlink()


def test_a_real_prometheus_scrapes_it_and_the_dashboard_has_data(
    stopped_daemon: Daemon, mount: Mounts
) -> None:
    load("a")
    with override(DROP_IN.read_text()):
        stopped_daemon.configure(configured(listen=ADDRESS))
        stopped_daemon.start()
        used = mount("a", "vers=4.1,nconnect=2")
        tuned(15360, used)
        run("sh", "-c", "nfstuned check --format prometheus >/run/nfstuned/findings.prom || true")
        with prometheus():
            wait_for("a scrape", lambda: bool(query("nfstuned_build_info")), 60)
            for _ in range(4):
                fio(used, Job("read", "1M", direct=True, size="4M"))
                fio(used, Job("write", "1M", direct=False, size="4M"))
                let_tick(stopped_daemon)
            without = [expression for expression in _queries() if not query(expression)]
            assert [name for name in without if not _may_be_empty(name)] == []
            assert [one["value"][1] for one in query('up{job="nfstuned"}')] == ["1"]
            # The condition of an alert: the alert itself waits for minutes.
            set_read_ahead_kb(used.device, 64)
            reverted = "nfstuned_mount_read_ahead_bytes < nfstuned_mount_read_ahead_target_bytes"
            wait_for("the alert's condition", lambda: not query(reverted), 30)
            stopped_daemon.stop()
            wait_for("the scrape to fail", lambda: bool(query('up{job="nfstuned"} == 0')), 30)
            assert {one["metric"]["alertname"] for one in query("ALERTS")} >= {"NfstunedDown"}


def test_what_check_finds_is_in_the_metrics_from_its_own_sandbox(
    stopped_daemon: Daemon, mount: Mounts
) -> None:
    unit = Path("/etc/systemd/system/nfstuned-check.service")
    unit.write_text(Path("/lab/systemd/nfstuned-check.service").read_text())
    run("systemctl", "daemon-reload")
    stopped_daemon.configure(configured(listen=f"unix:{SOCKET}"))
    stopped_daemon.start()
    tuned(15360, mount("a", "vers=4.1,soft"))
    run("systemctl", "start", "nfstuned-check.service", timeout=120)
    said = json.loads(nfstuned("check", "--format", "json").stdout)
    expected = {(f["rule"], f["severity"]) for f in said["findings"]}
    let_tick(stopped_daemon)
    found = series(scrape(f"unix:{SOCKET}"))
    told = {
        (dict(labels)["rule"], dict(labels)["severity"])
        for (name, labels), value in found.items()
        if name == "nfstuned_findings" and value
    }
    assert told == expected
    unit.unlink()
    run("systemctl", "daemon-reload")


def test_mounts_are_tuned_in_time_beside_a_storm_of_scrapes(stopped_daemon: Daemon, mount: Mounts) -> None:
    stopped_daemon.configure(configured(listen=f"unix:{SOCKET}"))
    stopped_daemon.start()
    tuned(15360, mount("a"))
    let_tick(stopped_daemon)
    with storm(f"unix:{SOCKET}"):
        for share in "bcd":
            tuned(15360, mount(share, "vers=4.2,nosharecache"), seconds=2)


def _queries() -> list[str]:
    """Return every query of the dashboard, as Grafana would send it."""
    found = re.findall(r'"expr": ("(?:[^"\\]|\\.)*")', DASHBOARD.read_text())
    replaced = (("$instance", ".*"), ("$mount_point", ".*"), ("$__rate_interval", "1m"))
    queries = [json.loads(text) for text in found]
    for old, new in replaced:
        queries = [text.replace(old, new) for text in queries]
    assert queries
    return queries


def _may_be_empty(expression: str) -> bool:
    """Tell whether nothing is a right answer on a host where all is well."""
    return "nfstuned_findings" in expression or "nconnect_target" in expression
