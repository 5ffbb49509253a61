"""A prepared image boots with all in effect; the files of `apply --persist` count at the next boot."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab import firstboot, rootdisk
from tests.lab.conftest import Lab
from tests.lab.firstboot import Booted, Disk, Seen
from tests.lab.rootdisk import DATA, DROP_IN, SHARE, VOLUME, Way

pytestmark = [pytest.mark.lab, pytest.mark.timeout(3600)]

BEFORE_LOGINS, IDLE, LOADED = "before-logins", "idle", "loaded"
CONNECTIONS = {SHARE: 4, VOLUME: 8, DATA: 1}
RULE, SLOTS = "etc/udev/rules.d/99-nfstuned.rules", "etc/modprobe.d/sunrpc-slots.conf"
MASK = "etc/udev/rules.d/99-nfs.rules"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "disk" in metafunc.fixturenames:
        chosen = firstboot.disks(metafunc.config.getoption("--lab"))
        metafunc.parametrize("disk", chosen, ids=str, scope="module")


@pytest.fixture(scope="module")
def boots(
    request: pytest.FixtureRequest,
    lab_folder: Path,
    say: Callable[[str], None],
    guests: ThreadPoolExecutor,
    lab: Lab,
) -> dict[Disk, Future[Booted]]:
    """Every disk that this session wants, and all other guests behind them."""
    found = (getattr(item, "callspec", None) for item in request.session.items)
    asked = (call.params.get("disk") for call in found if call is not None)
    wanted = dict.fromkeys(disk for disk in asked if isinstance(disk, Disk))
    boots = {disk: guests.submit(firstboot.boot, disk, lab_folder / str(disk), say) for disk in wanted}
    lab.start()
    return boots


@pytest.fixture
def booted(boots: dict[Disk, Future[Booted]], disk: Disk) -> Booted:
    return boots[disk].result()


def test_what_bake_prepared_is_in_effect_after_the_first_boot(disk: Disk, booted: Booted) -> None:
    if disk.way is Way.PERSIST:
        pytest.skip("nothing prepared it")
    (seen,) = booted.boots
    expected = firstboot.read_ahead_kb(disk.way)
    # Of the service alone everything waits for each mount's value; a rule of udev may still be at work.
    for moment in (IDLE, LOADED) if disk.way is Way.DAEMONLESS else (BEFORE_LOGINS, IDLE, LOADED):
        assert {point: seen.read_ahead_kb(moment, point) for point in expected} == expected
    for moment in (BEFORE_LOGINS, LOADED):
        assert {point: _connections(seen, moment, point) for point in CONNECTIONS} == CONNECTIONS
    assert seen.text("slots") == "128\n"
    for point, number in CONNECTIONS.items():
        carried = seen.carried(point)
        assert (len(carried), all(carried)) == (number, True), f"{point}: {carried}"


def test_the_nfsv4_client_has_an_identifier_made_of_the_machine_id(disk: Disk, booted: Booted) -> None:
    if disk.way is Way.PERSIST:
        pytest.skip("nothing prepared it")
    (seen,) = booted.boots
    expected = hashlib.sha256(f"{seen.text('machine-id').strip()} nfs client\n".encode()).hexdigest()
    assert seen.text("identifier") == f"{expected}\n"
    active = int(seen.shown("nfstuned-identity.service", "ActiveEnterTimestampMonotonic"))
    assert 0 < active < int(seen.shown("mnt-share.mount", "InactiveExitTimestampMonotonic"))


def test_nobody_logged_in_and_nothing_failed(booted: Booted) -> None:
    for seen in booted.boots:
        assert seen.text("who") == ""
        assert "session opened for user" not in seen.text("journal.txt")
        assert "getty" in seen.text("prompts")
        assert seen.text("failed") == ""


def test_the_service_is_there_before_the_first_mount(disk: Disk, booted: Booted) -> None:
    (seen, *_) = booted.boots
    if disk.way is Way.DAEMONLESS:
        assert seen.shown("nfstuned.service", "ActiveState") == "inactive"
        return
    assert seen.shown("nfstuned.service", "ActiveState") == "active"
    ready = int(seen.shown("nfstuned.service", "ActiveEnterTimestampMonotonic"))
    assert 0 < ready < int(seen.shown("mnt-share.mount", "InactiveExitTimestampMonotonic"))
    entries = [json.loads(line) for line in seen.text("service.journal").splitlines()]
    mine = [one for one in entries if one.get("MESSAGE_ID") == Message.READ_AHEAD_SET.id]
    set_kb = {one["NFSTUNED_MOUNT_POINT"]: int(one["NFSTUNED_NEW_KB"]) for one in mine}
    # There may be more: NFSv4 walks over superblocks of the server's pseudo file system, which are no mounts.
    assert set_kb.items() >= firstboot.read_ahead_kb(disk.way).items()
    # nfs-utils' rule is masked before the first mount.
    assert [
        one["MESSAGE"] for one in entries if one.get("MESSAGE_ID") == Message.READ_AHEAD_CONTESTED.id
    ] == []
    row = seen.status(SHARE)
    assert (row["read_ahead_kb"], row["read_ahead_target_kb"]) == (15360, 15360)


def test_bake_says_what_it_did_does_it_once_and_takes_it_back(disk: Disk, booted: Booted) -> None:
    if disk.way is Way.PERSIST:
        pytest.skip("nothing prepared it")
    report = booted.report
    start = "udev-rule" if disk.way is Way.DAEMONLESS else "service"
    assert next(one["kind"] for one in report.baked if one["outcome"] == "done") == start
    assert {one["kind"] for one in report.baked} == {start, "nconnect", "parameter", "identity"}
    assert {one["outcome"] for one in report.again + report.inside} <= {"skipped"}
    written = {DROP_IN, SLOTS} | ({RULE, MASK} if disk.way is Way.DAEMONLESS else set())
    assert written <= set(report.changed)
    assert report.left == ()


def test_after_apply_persist_the_next_boot_has_the_connections(disk: Disk, booted: Booted) -> None:
    if disk.way is not Way.PERSIST:
        pytest.skip("bake prepared it")
    first, second = booted.boots
    assert _connections(first, LOADED, SHARE) == 1
    assert len(first.carried(SHARE)) == 1
    (action,) = first.document("command.json")["actions"]
    assert (action["target"], action["new"], action["outcome"]) == (rootdisk.AZURE, 4, "done")
    for moment in (BEFORE_LOGINS, LOADED):
        assert _connections(second, moment, SHARE) == 4
    assert second.read_ahead_kb(LOADED, SHARE) == 15360
    carried = second.carried(SHARE)
    assert (len(carried), all(carried)) == (4, True), carried
    row = second.status(SHARE)
    assert (row["nconnect_requested"], row["nconnect"], row["connections"]) == (4, 4, 4)
    assert str(row["nconnect_requested_by"]).startswith(f"/{DROP_IN}:")


def _connections(seen: Seen, moment: str, point: str) -> int:
    """Return the nconnect of a mount as the kernel shows it; 1 where it shows none."""
    return seen.mount(moment, point).options.number("nconnect") or 1
