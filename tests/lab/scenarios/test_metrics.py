"""Metrics agree with fio, the kernel and promtool; each alert fires in a situation of its own."""

from __future__ import annotations

import json
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.lab.kit import dns
from tests.lab.kit.alerts import dashboard_queries, names
from tests.lab.kit.daemon import STATE, Daemon, nfstuned
from tests.lab.kit.faults import silent
from tests.lab.kit.fstab import lines
from tests.lab.kit.load import Job, fio, writing
from tests.lab.kit.metrics import (
    LINK,
    TEXTFILE,
    configured,
    exporter,
    fired,
    fires,
    prometheus,
    query,
    scrape,
    series,
    storm,
    total,
)
from tests.lab.kit.mounts import Mounted, Mounts, set_read_ahead_kb
from tests.lab.kit.server import ADDRESS as SERVER
from tests.lab.kit.server import AZURE, OTHER_ADDRESS
from tests.lab.kit.shell import Say, attempt, becomes, restored, run, tuned, wait_for
from tests.lab.kit.unit import let_tick

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev")]

SIZE = 4 << 20


def of(mounted: Mounted, direction: str) -> int:
    name = f"nfstuned_mount_server_{direction}_bytes_total"
    return int(total(series(scrape()), name, mount_point=str(mounted.point)))


def test_counters_are_fios_through_a_remount_and_many_scrapes(stopped_daemon: Daemon, mount: Mounts) -> None:
    stopped_daemon.start(configured())
    with exporter():
        assert "DynamicUser=yes" in run("systemctl", "show", "nfstuned-exporter.service")
        used, moved = _counted(stopped_daemon, mount)
        _counted_after_a_remount(mount, used, moved)
        with storm():
            for share in "bcd":
                tuned(15360, mount(share, "vers=4.2,nosharecache"), seconds=5)
    assert stopped_daemon.failed_cycles == []


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


FINDINGS = STATE / "findings.prom"
SLOTS = Path("/proc/sys/sunrpc/tcp_max_slot_table_entries")
LARGE, HEADS, HEAD = 16 << 20, 16, 256 << 10
V3 = "vers=3,nolock,rsize=65536,actimeo=600"


@pytest.mark.release
@pytest.mark.timeout(900)
def test_each_alert_fires_and_the_dashboard_has_data(stopped_daemon: Daemon, mount: Mounts, say: Say) -> None:
    """The rules are the project's own with less waiting (`shortened`); nothing else of them differs."""
    LINK.parent.mkdir(parents=True, exist_ok=True)
    LINK.symlink_to(TEXTFILE)
    _files()
    stopped_daemon.start(configured(textfile=str(TEXTFILE)))
    with exporter(), prometheus():
        nconnect = fires("NfstunedNconnectBelowProfile"), fires("NfstunedNconnectInherited")
        found = fires("NfstunedEndpointDrift"), fires("NfstunedMountMissing")
        with nconnect[0], nconnect[1], found[0], found[1], fires("NfstunedFindingError"):
            used = _mounted_in_the_wrong_order(mount)
            _checked_after_the_name_moved(stopped_daemon)
        say(sorted(fired()))
        with fires("NfstunedOverFetch"):
            _read_the_heads_of_many_files(used)
        stale = fires("NfstunedFindingsStale")
        with fires("NfstunedTlsExpires"), fires("NfstunedReadAheadReverted"), stale:
            _make_the_findings_old()
            _revert_until_it_is_left(used)
        with fires("NfstunedMountStalled"), writing([used]), silent(SERVER):
            wait_for("the alert of the stall", lambda: "NfstunedMountStalled" in fired(), 150)
        with fires("NfstunedRetransmissions"), fires("NfstunedBacklog"):
            _read_while_the_network_loses_everything(mount)
            _read_over_two_slots(mount)
        say(sorted(fired()))
        assert [text for text in dashboard_queries() if not query(text)] == []
        with fires("NfstunedConfigurationRefused"):
            _reload(stopped_daemon, "[prometheus]\nlisten = 9814\n")
        with fires("NfstunedMountsLeftOut"):
            _reload(stopped_daemon, configured(textfile=str(TEXTFILE), max_mounts=1))
        with fires("NfstunedDown"), fires("NfstunedStale"):
            stopped_daemon.stop()
        assert fired() == names()
    LINK.unlink()
    TEXTFILE.unlink()


def _files() -> None:
    """Put the files to read on the server: they are sparse, and it sends zeros."""
    heads = [Path(f"/srv/b/head{number}") for number in range(HEADS)]
    for path in (Path("/srv/c/large"), Path("/srv/d/large"), *heads):
        path.touch()
        os.truncate(path, LARGE)


def _mounted_in_the_wrong_order(mount: Mounts) -> Mounted:
    """Mount two shares of one account: the first asks for no connections, the second for four."""
    with dns.zone(_private(SERVER)):
        mount("a", "vers=4.1")
        time.sleep(2)  # mountstats counts ages in seconds, by which the first is known
        second = mount("b", "vers=4.1,nconnect=4")
        tuned(15360, second)
    return second


def _checked_after_the_name_moved(daemon: Daemon) -> None:
    """Let the timer's service check, and compare it with the command outside of its sandbox.

    A line of fstab is not mounted, either.
    """
    with dns.zone(_private(OTHER_ADDRESS)), lines(("never", f"{AZURE}:/srv/d", "vers=4.1,nofail")):
        run("systemctl", "start", "nfstuned-check.service", timeout=180)
        output = json.loads(nfstuned("check", "--format", "json", timeout=120).stdout)
    let_tick(daemon)
    assert _found() == {(one["rule"], one["severity"]) for one in output["findings"]}


def _make_the_findings_old() -> None:
    """Leave the file as if the timer had not run for years, and as if it had found faults of tunnels."""
    text = FINDINGS.read_text()
    text, changed = re.subn(r'(?m)^(nfstuned_findings\{.*rule="NFS41[56]".*\}) .*$', r"\1 1.0", text)
    assert changed == 2
    FINDINGS.write_text(re.sub(r"(?m)^(nfstuned_findings_timestamp_seconds) .*$", r"\1 1.0", text))


def _revert_until_it_is_left(mounted: Mounted) -> None:
    """Set the read-ahead back again and again, as another program would."""

    def again() -> bool:
        set_read_ahead_kb(mounted.device, 128)
        return bool(query("nfstuned_mount_read_ahead_left == 1"))

    wait_for("the read-ahead to be left", again, 60)


def _read_the_heads_of_many_files(mounted: Mounted) -> None:
    """Read the first 256 KiB of many files: of each the kernel asks for four times that."""

    end = time.monotonic() + 120
    while "NfstunedOverFetch" not in fired():
        assert time.monotonic() < end, "not enough was fetched, or not fast enough"
        for number in range(HEADS):
            with (mounted.point / f"head{number}").open("rb", buffering=0) as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                assert len(file.read(HEAD)) == HEAD


def _read_while_the_network_loses_everything(mount: Mounts) -> None:
    """NFSv3 sends again at each timeout, here of a second. Open the file before it."""
    used = mount("c", f"{V3},timeo=10")
    tuned(15360, used)
    with (used.point / "large").open("rb", buffering=0) as file, ThreadPoolExecutor(1) as pool:
        with silent(SERVER):
            job = pool.submit(file.read, SIZE)
            time.sleep(6)
        assert len(job.result(120)) == SIZE


def _read_over_two_slots(mount: Mounts) -> None:
    """Read ahead over a connection that was made to carry two requests at a time.

    Only growth after a counter's first scrape is a rate.
    """
    counters = "nfstuned_transport_sends_total"
    known = len(query(counters))
    with restored(SLOTS, "2"):
        used = mount("d", V3, host="sa3.file.core.windows.net")
    tuned(15360, used)
    wait_for("the new connection's counters", lambda: len(query(counters)) > known, 60)
    with (used.point / "large").open("rb", buffering=0) as file:
        while file.read(SIZE):
            pass


def _reload(daemon: Daemon, text: str) -> None:
    daemon.configure(text)
    daemon.reload()


def _found() -> set[tuple[str, str]]:
    """Return rule and severity of the findings in the metrics."""
    rows = series(scrape()).items()
    found = [dict(labels) for (name, labels), value in rows if name == "nfstuned_findings" and value]
    return {(labels["rule"], labels["severity"]) for labels in found}


def _private(address: str) -> list[str]:
    """The records of the account's private endpoint."""
    link = AZURE.replace(".file.", ".privatelink.file.", 1)
    return [f"cname={AZURE},{link}", f"host-record={link},{address}"]
