"""A prepared image boots with all in effect; the files of `nconnect persist` count at the next boot."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nfstuned.host.telemetry.journal import Message
from nfstuned.model.kernel import Mount, MountStats
from nfstuned.parse.proc.mounts import parse_mountinfo
from nfstuned.parse.proc.mountstats import parse_mountstats
from tests.lab import guest, recipe, rootdisk
from tests.lab.conftest import Lab
from tests.lab.rootdisk import DATA, DROP_IN, SHARE, VOLUME, Disk, Report, Way

pytestmark = [pytest.mark.lab, pytest.mark.timeout(3600)]

BEFORE_LOGINS, IDLE, LOADED = "before-logins", "idle", "loaded"
CONNECTIONS = {SHARE: 4, VOLUME: 8, DATA: 1}
RULE, SLOTS = "etc/udev/rules.d/99-nfstuned.rules", "etc/modprobe.d/sunrpc-slots.conf"
MASK = "etc/udev/rules.d/99-nfs.rules"
_START = Path(__file__).parent / "kit/first_boot.sh"
_LIMITS = guest.Limits(total_s=1800, first_s=900, quiet_s=300, retries=2, processors=1)
"""The first word comes after a whole Debian has started: a minute, and several on a busy machine."""
_PERSIST = "nfstuned nconnect persist --format json\n"
_RULE_KB, _GENERIC_KB = 15360, 1024


def disks(tier: str) -> tuple[Disk, ...]:
    """Return the root disks that a tier boots: one with the newest kernel in `ci`, every way in `all`."""
    oldest, newest = recipe.SERIES[0].name, recipe.SERIES[-1].name
    service = Disk(newest, "trixie", Way.SERVICE)
    others = (
        Disk(oldest, "bookworm", Way.SERVICE),
        Disk(newest, "trixie", Way.DAEMONLESS),
        Disk(oldest, "bookworm", Way.PERSIST),
    )
    return {"ci": (service,), "all": (service, *others)}.get(tier, ())


@dataclass(frozen=True)
class Seen:
    """The files of one boot of a disk, as kit/first_boot.sh leaves them. A moment is one of its looks."""

    boot: guest.Result
    folder: Path

    def mount(self, moment: str, point: str) -> Mount:
        """Return a mount; raise LookupError where it is not there."""
        for one in parse_mountinfo(self.text(f"{moment}/mountinfo")):
            if isinstance(one, Mount) and one.point == point:
                return one
        raise LookupError(f"{point} is not mounted: {self.text('failed')}")

    def read_ahead_kb(self, moment: str, point: str) -> int:
        device = self.mount(moment, point).device
        lines = (line.split() for line in self.text(f"{moment}/read_ahead_kb").splitlines())
        return int(next(value for name, value in lines if name == device))

    def carried(self, point: str) -> tuple[int, ...]:
        """Return how many requests each connection of a mount sent during the load."""
        before, after = self._sends("idle", point), self._sends("loaded", point)
        return tuple(one - other for one, other in zip(after, before, strict=True))

    def shown(self, unit: str, name: str) -> str:
        lines = (line.partition("=") for line in self.text(unit).splitlines())
        return next(value for key, _, value in lines if key == name)

    def status(self, point: str) -> Mapping[str, Any]:
        rows: list[dict[str, Any]] = self.document("status.json")["mounts"]
        return next(row for row in rows if row["mount_point"] == point)

    def document(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text(name))
        return found

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def _sends(self, moment: str, point: str) -> list[int]:
        stanzas = parse_mountstats(self.text(f"{moment}/mountstats"))
        (mine,) = [one for one in stanzas if isinstance(one, MountStats) and one.point == point]
        return [transport.sends for transport in mine.transports]


@dataclass(frozen=True)
class Booted:
    """A disk that was made and booted: once, or twice where its first boot persists the connections."""

    report: Report
    boots: tuple[Seen, ...]


def boot(disk: Disk, target: Path, say: Callable[[str], None]) -> Booted:
    """Make a disk and boot it; its results go into `target`. Raises AssertionError when it does not end."""
    # A program that runs as root makes the disk: its failure counts, not the cleaning up.
    with tempfile.TemporaryDirectory(prefix="nfstuned-disk-", ignore_cleanup_errors=True) as folder:
        say(f"making the disk {disk}: {target}")
        report = rootdisk.make(disk, Path(folder))
        keeps = disk.way is Way.PERSIST
        system = guest.System(disk.release, Path(folder) / rootdisk.IMAGE, keeps)
        boots = []
        for number, command in enumerate((_PERSIST, "") if keeps else ("",), 1):
            payload = _payload(Path(folder) / f"payload-{number}", command, disk.way)
            mine = target / f"boot-{number}"
            boots.append(_boot(system, payload, mine, lambda line: say(f"{disk} | {line}")))
    return Booted(report, tuple(boots))


def read_ahead_kb(way: Way) -> Mapping[str, int]:
    """Return the read-ahead that each mount of a disk should have: a udev rule knows no servers."""
    if way is Way.PERSIST:
        return {SHARE: _RULE_KB}
    data = _RULE_KB if way is Way.DAEMONLESS else _GENERIC_KB
    return {SHARE: _RULE_KB, VOLUME: _RULE_KB, DATA: data}


def _payload(folder: Path, command: str, way: Way) -> Path:
    folder.mkdir()
    shutil.copy(_START, folder / "start")
    (folder / "command").write_text(command)
    lines = (f"{point} {kb}\n" for point, kb in read_ahead_kb(way).items())
    (folder / "expected").write_text("".join(lines))
    return folder


def _boot(system: guest.System, payload: Path, target: Path, say: Callable[[str], None]) -> Seen:
    result = guest.boot(system, payload, target, say, _LIMITS)
    assert result.passed, f"{result.explain()}\nsee {target}"
    assert result.files is not None
    return Seen(result, result.files)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "disk" in metafunc.fixturenames:
        chosen = disks(metafunc.config.getoption("--lab"))
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
    boots = {disk: guests.submit(boot, disk, lab_folder / str(disk), say) for disk in wanted}
    lab.start()
    return boots


@pytest.fixture
def booted(boots: dict[Disk, Future[Booted]], disk: Disk) -> Booted:
    return boots[disk].result()


@pytest.fixture
def prepared(disk: Disk, booted: Booted) -> Booted:
    if disk.way is Way.PERSIST:
        pytest.skip("bake did not prepare it")
    return booted


def test_all_that_bake_prepared_is_in_effect_after_the_first_boot(disk: Disk, prepared: Booted) -> None:
    (seen,) = prepared.boots
    expected = read_ahead_kb(disk.way)
    # Of the service alone everything waits for each mount's value; a rule of udev may still be at work.
    for moment in (IDLE, LOADED) if disk.way is Way.DAEMONLESS else (BEFORE_LOGINS, IDLE, LOADED):
        assert {point: seen.read_ahead_kb(moment, point) for point in expected} == expected
    for moment in (BEFORE_LOGINS, LOADED):
        assert {point: _connections(seen, moment, point) for point in CONNECTIONS} == CONNECTIONS
    assert seen.text("slots") == "128\n"
    for point, number in CONNECTIONS.items():
        carried = seen.carried(point)
        assert (len(carried), all(carried)) == (number, True), f"{point}: {carried}"


def test_the_nfsv4_client_has_an_identifier_made_of_the_machine_id(prepared: Booted) -> None:
    (seen,) = prepared.boots
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
    assert set_kb.items() >= read_ahead_kb(disk.way).items()
    # nfs-utils' rule is masked before the first mount.
    assert [
        one["MESSAGE"] for one in entries if one.get("MESSAGE_ID") == Message.READ_AHEAD_CONTESTED.id
    ] == []
    row = seen.status(SHARE)
    assert (row["read_ahead_kb"], row["read_ahead_target_kb"]) == (15360, 15360)


def test_bake_reports_its_changes_makes_them_once_and_takes_them_back(disk: Disk, prepared: Booted) -> None:
    report = prepared.report
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
