"""The tuner over a tree of files; that the kernel's own files behave so is shown in tests/lab/scenarios."""

from __future__ import annotations

import errno
import gc
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from nfstuned.app.read_ahead import carry_out, plan_without_holds
from nfstuned.daemon import tuner
from nfstuned.daemon.reporter import FORGOTTEN_S, Reporter
from nfstuned.daemon.tuner import Tuner
from nfstuned.daemon.watched import HIDDEN_S, SEARCH_S, UNNAMED_S, WatchedDevice
from nfstuned.errors import ParseError
from nfstuned.host.config import builtin_policy
from nfstuned.host.events import Writes
from nfstuned.host.observe import do_nothing
from nfstuned.host.read_ahead import FIRST_START, Bdi, State, hold_existing, undo
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Message
from nfstuned.model.mounts import Action, Outcome, Result
from nfstuned.model.policy import Assignment, Match, Policy, Profile, ReadAhead
from tests.host.entries import Entries
from tests.host.faults import Fault, FaultyRoot
from tests.tree import link, put

POLICY = Policy(
    providers=builtin_policy().providers,
    profiles=(
        Profile("azure-files", ReadAhead(15360)),
        Profile("generic", ReadAhead(1024)),
        Profile("netapp-ontap", ReadAhead(1024)),
        Profile("fast", ReadAhead(65536)),
    ),
)
AZURE = "sa1.file.core.windows.net"
FEW = 10
NEVER = float("inf")


class Host:
    """A tree that looks like a host with NFS mounts, and a tuner on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries = Entries()
        self.now = 0.0
        self._volumes: dict[str, str] = {}
        self._mounts: dict[str, str] = {}
        (folder / "proc/1/net/nfsfs").mkdir(parents=True)
        self._save()
        root = Root(str(folder))
        self.state = State(root)
        self.state.prepare()
        self.root = root
        self.tuner = Tuner(root, Reporter(self.entries.journal), lambda: self.now)
        self.tuner.policy = POLICY

    def assign(self, profile: str, **match: tuple[str, ...]) -> None:
        assignment = Assignment(Match(**match), profile, "nfstuned.toml, policy 1")
        self.tuner.policy = replace(POLICY, assignments=(assignment,))

    def faulty(self, error: int) -> tuple[Fault, Tuner]:
        """Return a tuner of which a read may fail."""
        fault = Fault(error)
        faulty = Tuner(FaultyRoot(str(self.folder), fault), Reporter(self.entries.journal), lambda: self.now)
        faulty.policy = POLICY
        return fault, faulty

    def bdi(self, device: str, value: int = 128) -> None:
        file = self.folder / "sys/class/bdi" / device / "read_ahead_kb"
        os.replace(put(file.with_name("fresh"), f"{value}\n"), file)

    def volume(self, device: str) -> None:
        self.bdi(device)
        self._volumes[device] = f"v4 0a0a0a0a  801 {device:<12} 0:0                               no "
        self._save()

    def tunnel(self, device: str) -> None:
        """Make a superblock with its requests through a local tunnel."""
        self.bdi(device)
        self._volumes[device] = f"v4 7f000001 4e51 {device:<12} 0:0                               no "
        self._save()

    def mount(
        self, device: str, source: str = f"{AZURE}:/a", point: str = "/mnt/a", options: str = ""
    ) -> None:
        self._mounts[point] = (
            f"{30 + len(self._mounts)} 24 {device} / {point} rw shared:9 - nfs4 {source} "
            f"rw,vers=4.2,rsize=262144,addr=10.10.10.10{options}"
        )
        self._save()

    def mount_elsewhere(self, device: str, source: str = f"{AZURE}:/a", point: str = "/mnt/a") -> None:
        """Mount in a mount namespace of another process's own, in the host's network namespace."""
        process = self.folder / "proc/77"
        link(process / "net/nfsfs", self.folder / "proc/1/net/nfsfs")
        put(
            process / "mountinfo",
            f"90 80 {device} / {point} rw shared:9 - nfs4 {source} rw,rsize=262144,addr=10.10.10.10\n",
        )

    def appear(self, device: str) -> None:
        """Make a superblock, and let the kernel announce it."""
        self.volume(device)
        self.tuner.added(device)

    def vanish(self, device: str) -> None:
        """Remove a superblock, and let the kernel say so."""
        self.unmount(device)
        self.tuner.removed(device)

    def show(self) -> None:
        """Make a superblock with a mount, of which no event was seen."""
        self.volume("0:43")
        self.mount("0:43")

    def look(self, *, deep: bool = False) -> None:
        self.tuner.look(deep=deep)

    def unmount(self, device: str) -> None:
        self._volumes.pop(device, None)
        self._mounts = {p: line for p, line in self._mounts.items() if f" {device} " not in line}
        self._save()
        # Kept, so that its inode is not given to the next file: sysfs does not do that either.
        grave = self.folder / "grave"
        grave.mkdir(exist_ok=True)
        file = self.folder / "sys/class/bdi" / device / "read_ahead_kb"
        file.rename(grave / f"{device}.{len(list(grave.iterdir()))}")

    def set(self, device: str, value: int) -> None:
        (self.folder / "sys/class/bdi" / device / "read_ahead_kb").write_text(f"{value}\n")

    def value(self, device: str) -> int:
        # The kernel replaces the value; a file keeps the end of a longer one.
        return int((self.folder / "sys/class/bdi" / device / "read_ahead_kb").read_text().split()[0])

    def _save(self) -> None:
        folder = self.folder / "proc/1"
        rows = "".join(f"{row}\n" for row in self._volumes.values())
        (folder / "net/nfsfs/volumes").write_text("NV SERVER   PORT DEV          FSID  FSC\n" + rows)
        (folder / "net/nfsfs/servers").write_text(
            f"NV SERVER   PORT USE HOSTNAME\nv4 0a0a0a0a  801   2 {AZURE}\n" if rows else ""
        )
        lines = "".join(f"{line}\n" for line in self._mounts.values())
        (folder / "mountinfo").write_text("24 1 254:0 / / rw - ext4 /dev/vda rw\n" + lines)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_a_new_superblock_is_tuned_at_once_and_reported_once_when_its_mount_shows(host: Host) -> None:
    host.appear("0:43")
    assert host.value("0:43") == 15360
    assert host.entries == []
    host.mount("0:43")
    host.look()
    host.look(deep=True)
    (text,) = host.entries.texts(Message.READ_AHEAD_SET)
    assert text == f"/mnt/a: read-ahead 128 -> 15360 KiB (azure-files by name {AZURE})"


def test_a_server_without_a_vendors_number_keeps_the_kernels_value(host: Host) -> None:
    """The number of an earlier version is taken back."""
    host.volume("0:43")
    host.mount("0:43", "nas:/v")
    host.look()
    assert host.value("0:43") == 1024
    host.volume("0:44")
    host.mount("0:44", "nas:/w", "/mnt/w")
    host.tuner.policy = builtin_policy()
    for _ in range(2):
        host.look()
    assert (host.value("0:43"), host.value("0:44")) == (128, 128)
    texts = host.entries.texts(Message.READ_AHEAD_SET)
    assert [text.partition(" KiB")[0] for text in texts] == [
        "/mnt/a: read-ahead 128 -> 1024",
        "/mnt/a: read-ahead 1024 -> 128",
    ]
    assert "0:44" not in host.state.all()


def test_the_first_start_after_an_installation_leaves_the_mounts_that_exist(host: Host) -> None:
    host.show()
    put(host.folder / FIRST_START, "")
    hold_existing(host.root, host.state)
    host.look()
    assert host.tuner.held_mounts() == ("/mnt/a",)
    host.appear("0:44")
    assert (host.value("0:43"), host.value("0:44")) == (128, 15360)
    hold_existing(host.root, host.state)
    host.mount("0:44", point="/mnt/b")
    host.tuner.added("0:43")
    host.look()
    assert host.value("0:43") == 128
    assert host.tuner.held_mounts() == ("/mnt/a",)
    carry_out(host.root, plan_without_holds(host.tuner.snapshot, POLICY))
    host.look()
    assert (host.value("0:43"), host.tuner.held_mounts()) == (15360, ())


def test_a_service_that_only_observes_writes_nothing_and_reports_each_value_once(host: Host) -> None:
    host.tuner.policy = replace(POLICY, mode="observe")
    host.appear("0:43")
    host.mount("0:43")
    for _ in range(2):
        host.look(deep=True)
        host.set("0:43", 256)
        host.tuner.rules_ran("0:43", "add")
    host.look()
    texts = host.entries.texts(Message.READ_AHEAD_WANTED)
    assert [text.partition(" (")[0] for text in texts] == [
        "/mnt/a: read-ahead 128 KiB, only observed: 15360",
        "/mnt/a: read-ahead 256 KiB, only observed: 15360",
    ]
    assert host.value("0:43") == 256
    assert host.state.all() == {}


@pytest.mark.parametrize("lives_s", [0, UNNAMED_S - 1])
def test_a_pseudo_root_is_not_reported(host: Host, lives_s: float) -> None:
    host.appear("0:44")
    if lives_s:
        host.look(deep=True)
        assert host.tuner.search_at_s == UNNAMED_S
    host.now = lives_s
    host.vanish("0:44")
    host.look(deep=True)
    assert host.tuner.search_at_s == NEVER
    assert host.entries == []
    assert host.state.all() == {}


def test_a_superblock_without_a_mount_is_reported_in_the_end_by_its_number(host: Host) -> None:
    host.appear("0:44")
    host.look(deep=True)
    host.now = UNNAMED_S
    host.look()
    assert host.entries == []
    host.look(deep=True)
    host.look(deep=True)
    (text,) = host.entries.texts(Message.READ_AHEAD_SET)
    assert text.startswith("0:44: read-ahead 128 -> 15360 KiB")


@pytest.mark.parametrize("owned", [False, True])
def test_a_change_during_a_look_is_reported_by_the_next_one(host: Host, *, owned: bool) -> None:
    """A number that changes hands has its new owner's message, although the removal comes late."""

    def change() -> None:
        host.tuner.serve_events = do_nothing
        if owned:
            host.unmount("0:43")
        host.appear("0:43")
        host.mount("0:43")

    if owned:
        host.show()
    host.tuner.serve_events = change
    host.look()
    if owned:
        host.tuner.removed("0:43")
    host.look()
    assert len(host.entries.texts(Message.READ_AHEAD_SET)) == 1
    assert host.value("0:43") == 15360
    assert set(host.state.all()) == {"0:43"}


def test_a_device_that_is_not_nfs_is_not_touched(host: Host) -> None:
    host.bdi("0:50")
    host.tuner.added("0:50")
    assert host.tuner.search_at_s == SEARCH_S
    host.look(deep=True)
    assert host.value("0:50") == 128


def test_a_mount_of_another_namespace_may_be_attached_at_any_time(host: Host) -> None:
    """Without it the superblock has the least value that its mount may ask for."""
    host.assign("fast", mount_point=("/mnt/late",))
    host.appear("0:43")
    searches = []
    for _ in range(5):
        host.look()
        searches.append(host.tuner.search_at_s)
        host.now = host.tuner.search_at_s
        host.look(deep=True)
    assert searches == [SEARCH_S, UNNAMED_S, 2 * UNNAMED_S, 4 * UNNAMED_S, 8 * UNNAMED_S]
    assert host.value("0:43") == 15360
    host.mount_elsewhere("0:43", point="/mnt/late")
    host.now = host.tuner.search_at_s
    host.look(deep=True)
    assert host.value("0:43") == 65536
    host.look()
    assert (host.value("0:43"), host.tuner.search_at_s) == (65536, host.now + HIDDEN_S)


def test_a_device_that_is_gone_leaves_nothing_for_the_collector(host: Host) -> None:
    """Each mount of NFSv4 has a pseudo-root that is gone, and a full collection comes after hours."""
    gc.collect()
    for _ in range(5):
        host.tuner.may_be_written("0:99")
        host.tuner.added("0:99")
    assert gc.collect() == 0


def test_a_device_that_is_gone_already_and_a_value_that_stayed_right_need_no_look(host: Host) -> None:
    host.appear("0:43")
    host.tuner.must_look = False
    host.tuner.may_be_written("0:43")
    host.tuner.added("0:60")
    assert not host.tuner.must_look


def test_superblocks_that_come_together_need_one_read_of_nfsfs(host: Host) -> None:
    """Those that are gone by then, or no NFS mounts, do not keep the others from their values."""
    fault, tuner = host.faulty(errno.EIO)
    others = [f"0:{number}" for number in range(45, 55)]
    for device in ("0:43", "0:44", *others):
        host.volume(device)
    host.bdi("0:60")
    tuner.added("0:43")
    before = fault.asked
    tuner.added("0:44")
    alone, before = fault.asked - before, fault.asked
    tuner.added("0:59", *others[:5], "0:60", *others[5:])
    volumes_and_servers = 2
    assert fault.asked - before == len(others) * (alone - volumes_and_servers) + volumes_and_servers
    assert [host.value(device) for device in others] == [15360] * len(others)
    assert host.value("0:60") == 128


def test_a_look_at_many_superblocks_serves_events_after_each(host: Host) -> None:
    fault, tuner = host.faulty(errno.EIO)
    asked = [0]
    tuner.serve_events = lambda: asked.append(fault.asked)
    for number in range(40, 80):
        host.volume(f"0:{number}")
    for _ in range(2):
        tuner.look(deep=False)
    assert max(later - before for before, later in pairwise(asked)) < FEW


def test_without_a_policy_nothing_is_written(host: Host) -> None:
    host.tuner.policy = None
    host.show()
    host.tuner.added("0:43")
    host.look(deep=True)
    assert host.value("0:43") == 128
    assert [s.device for s in host.tuner.snapshot.superblocks] == ["0:43"]


def test_where_vasts_client_is_installed_every_superblock_waits_for_its_options(host: Host) -> None:
    put(host.folder / "usr/bin/vastnfs-ctl", "#!/bin/sh\n", 0o755)
    host.tuner.policy = builtin_policy()
    host.look(deep=True)
    mounts = (("0:43", "nas:/v", "/mnt/v", ",spread_reads"), ("0:44", f"{AZURE}:/a", "/mnt/a", ""))
    for device, source, point, options in mounts:
        host.appear(device)
        assert host.value(device) == 128
        assert host.tuner.must_look
        host.mount(device, source, point, options)
    host.look()
    assert host.value("0:43") == 128
    assert host.value("0:44") == 15360


def test_an_early_value_that_the_mount_contradicts_is_corrected_in_one_report(host: Host) -> None:
    host.appear("0:43")
    host.assign("generic", mount_point=("/mnt/a",))
    host.mount("0:43")
    host.look()
    assert host.value("0:43") == 1024
    (text,) = host.entries.texts(Message.READ_AHEAD_SET)
    assert text.startswith("/mnt/a: read-ahead 128 -> 1024 KiB")


def test_another_writer_is_overruled_three_times_and_then_left(host: Host) -> None:
    host.appear("0:43")
    host.mount("0:43")
    host.look()
    for second in range(6):
        host.now = float(second)
        host.set("0:43", 128)
        host.tuner.may_be_written("0:43")
        # The answer comes before the look that tells of it.
        assert host.value("0:43") == (15360 if second < 3 else 128)
        assert host.tuner.must_look is (second <= 3)
        host.look()
    assert host.value("0:43") == 128
    assert len(host.entries.texts(Message.READ_AHEAD_CONTESTED)) == 3
    assert len(host.entries.texts(Message.READ_AHEAD_LEFT)) == 1


def test_a_write_of_udevs_rules_counts_once_and_rules_without_a_write_do_not(host: Host) -> None:
    test_another_writer_is_overruled_three_times_and_then_left(host)
    before = host.tuner.contests["0:43"].count
    host.tuner.writes = Writes(host.root)
    host.look()
    host.set("0:43", 256)
    for device in host.tuner.writes.drain():
        host.tuner.may_be_written(device)
    for _ in range(3):
        host.tuner.rules_ran("0:43", "change")
    host.look()
    host.tuner.writes.close()
    assert host.tuner.contests["0:43"].count == before + 1


def test_rules_that_run_late_for_earlier_superblocks_of_the_number_are_no_fight(host: Host) -> None:
    for _ in range(5):
        host.appear("0:43")
        host.vanish("0:43")
    host.appear("0:43")
    host.mount("0:43")
    for _ in range(6):
        host.set("0:43", 128)
        host.tuner.rules_ran("0:43", "add")
        assert host.value("0:43") == 15360
    for wanted in (15360, 15360, 128):
        host.set("0:43", 128)
        host.tuner.rules_ran("0:43", "change")
        assert host.value("0:43") == wanted


def test_a_number_without_a_backlog_allows_three_changes(host: Host) -> None:
    for _ in range(5):
        host.appear("0:43")
        host.tuner.rules_ran("0:43", "add")
        host.vanish("0:43")
    host.appear("0:43")
    for wanted in (15360, 15360, 15360, 128):
        host.set("0:43", 128)
        host.tuner.may_be_written("0:43")
        assert host.value("0:43") == wanted


@pytest.mark.parametrize("deep", [False, True])
def test_a_contest_waits_for_a_name_and_follows_the_report_of_the_change(host: Host, *, deep: bool) -> None:
    """A mount names it, or its number once other namespaces were searched."""
    host.appear("0:43")
    host.set("0:43", 128)
    host.tuner.may_be_written("0:43")
    host.look()
    assert host.entries == []
    if not deep:
        host.mount("0:43")
    host.look(deep=deep)
    host.look()
    assert host.entries.names() == ["READ_AHEAD_SET", "READ_AHEAD_CONTESTED"]
    assert host.entries[1]["MESSAGE"].startswith("0:43: " if deep else "/mnt/a: ")


def test_a_conflict_of_policies_is_reported_once(host: Host) -> None:
    host.assign("generic", mount_point=("/mnt/b",))
    host.show()
    host.mount("0:43", point="/mnt/b")
    for _ in range(3):
        host.look()
    assert len(host.entries.of(Message.POLICY_CONFLICT)) == 1


RULE = 'SUBSYSTEM=="bdi", ACTION=="add", PROGRAM="/usr/libexec/nfsrahead %k", ATTR{read_ahead_kb}="%c"'


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ("%c", " (see /etc/udev/rules.d/99-nfs.rules, set by [nfsrahead] of /etc/nfs.conf)"),
        ("128", " (see /etc/udev/rules.d/99-nfs.rules)"),
        ("256", ""),
    ],
)
def test_a_contest_names_the_rule_that_writes_the_value_found(host: Host, value: str, seen: str) -> None:
    put(host.folder / "etc/udev/rules.d/99-nfs.rules", RULE.replace("%c", value))
    test_another_writer_is_overruled_three_times_and_then_left(host)
    for text in host.entries.texts(Message.READ_AHEAD_CONTESTED) + host.entries.texts(
        Message.READ_AHEAD_LEFT
    ):
        assert text.endswith((f"to 15360 again{seen}", f"keeps changing it{seen}"))


def test_a_value_that_is_back_for_a_minute_ends_the_contest_also_without_reads(host: Host) -> None:
    test_another_writer_is_overruled_three_times_and_then_left(host)
    values = ((128, 70), (128, 80), (15360, 90), (65536, 100), (15360, 110), (15360, 169), (15360, 170))
    for value, second in values:
        host.now = float(second)
        host.set("0:43", value)
        host.look()
        contest = host.tuner.contests["0:43"]
        # A look that shows the same value of the other writer is no other write.
        assert (contest.left, contest.count) == (second < 170, 6)
    host.set("0:43", 128)
    host.tuner.may_be_written("0:43")
    assert host.value("0:43") == 15360


def test_a_value_that_comes_back_between_others_is_not_answered(host: Host) -> None:
    """A measurement tries each value for minutes, by turns, and the looks are a minute apart."""
    test_another_writer_is_overruled_three_times_and_then_left(host)
    for turn in range(1, 9):
        value = 15360 if turn % 2 else 128
        host.now = turn * 90.0
        host.set("0:43", value)
        host.tuner.may_be_written("0:43")
        # Before the next turn.
        for seconds in (1.0, 58.0):
            host.now = turn * 90.0 + seconds
            host.look()
            assert host.value("0:43") == value
            assert host.tuner.contests["0:43"].left
    host.set("0:43", 15360)
    host.tuner.may_be_written("0:43")
    host.now += 60.0
    host.look()
    assert not host.tuner.contests["0:43"].left


def test_a_decision_for_the_other_writers_value_ends_the_contest(host: Host) -> None:
    test_another_writer_is_overruled_three_times_and_then_left(host)
    host.set("0:43", 1024)
    host.assign("netapp-ontap", export=("/a",))
    for second in (100, 160):
        assert host.tuner.contests["0:43"].left
        host.now = float(second)
        host.look()
    assert not host.tuner.contests["0:43"].left


def test_a_reload_takes_up_a_superblock_that_was_left(host: Host) -> None:
    test_another_writer_is_overruled_three_times_and_then_left(host)
    host.tuner.start_over()
    host.look()
    assert host.value("0:43") == 15360


def test_an_undo_stays_at_every_event(host: Host) -> None:
    host.show()
    host.look()
    undo(host.root, host.state)
    host.set("0:43", 128)
    for serve in (host.tuner.added, host.tuner.may_be_written):
        serve("0:43")
        host.look(deep=True)
        assert host.value("0:43") == 128
    host.tuner.start_over()
    host.look(deep=True)
    assert host.value("0:43") == 128


def test_an_undo_during_a_look_stays(host: Host) -> None:
    """At each step of a look in turn; of several superblocks each is read at a time of its own."""
    devices = ("0:42", "0:43")
    for device in devices:
        host.volume(device)
        host.mount(device, point=f"/mnt/{device}")
    for number in range(100):
        for device in devices:
            host.state.drop(device)
            host.set(device, 128)
        host.tuner.start_over()
        host.tuner.serve_events = do_nothing
        host.look()
        assert [host.value(device) for device in devices] == [15360, 15360]
        steps = iter(range(100))

        def undo_at_step(at: int = number, steps: Iterator[int] = steps) -> None:
            if next(steps) == at:
                undo(host.root, host.state)

        host.tuner.serve_events = undo_at_step
        host.look()
        if next(steps) <= number:
            break
        assert [host.value(device) for device in devices] == [128, 128], f"undone at step {number}"
    assert number > 5


def test_the_next_superblock_of_a_number_starts_afresh(host: Host) -> None:
    host.appear("0:43")
    host.vanish("0:43")
    host.volume("0:43")
    host.set("0:43", 512)
    host.tuner.added("0:43")
    record = host.state.get("0:43")
    assert record is not None
    assert (record.original_kb, record.written_kb) == (512, 15360)


def test_removals_that_went_unseen_are_noticed(host: Host) -> None:
    for device in ("0:43", "0:44"):
        host.appear(device)
    host.unmount("0:44")
    host.volume("0:44")
    host.tuner.forget_lost()
    assert set(host.state.all()) == {"0:43"}


def test_stopping_can_put_every_value_back(host: Host) -> None:
    host.appear("0:43")
    host.tuner.restore()
    assert host.value("0:43") in {128, 12860}
    assert host.entries.texts(Message.READ_AHEAD_RESTORED) != []


def test_an_unreadable_line_or_file_of_another_process_holds_up_no_mount(host: Host) -> None:
    host.show()
    file = host.folder / "proc/1/mountinfo"
    file.write_text("x 24 0:99 / /mnt/bad rw - nfs4 sa1:/b rw\n" + file.read_text())
    host.look()
    host.look()
    (text,) = host.entries.texts(Message.UNREADABLE)
    assert text == "/proc/1/mountinfo:1: mount id is not a number: 'x'"
    assert host.value("0:43") == 15360
    host.set("0:43", 128)
    link(host.folder / "proc/77/mountinfo", "mountinfo")
    host.look(deep=True)
    assert not host.tuner.blind
    assert host.value("0:43") == 15360
    assert "/proc/77/mountinfo" in host.entries.texts(Message.UNREADABLE)[1]


def test_a_damaged_row_of_a_new_device_leads_to_a_look(host: Host) -> None:
    host.volume("0:43")
    file = host.folder / "proc/1/net/nfsfs/volumes"
    file.write_text(file.read_text().replace("0a0a0a0a", "zz"))
    host.tuner.must_look = False
    host.tuner.added("0:43")
    assert host.tuner.must_look
    assert host.entries.texts(Message.UNREADABLE) != []


@pytest.mark.parametrize("error", [errno.EIO, errno.EMFILE, errno.EACCES])
def test_a_read_that_fails_changes_no_value(host: Host, monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    """Each read of a look in turn: what could not be read is not empty, and the next look is a whole one."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    fault, tuner = host.faulty(error)
    tuner.policy = replace(POLICY, profiles=tuple(replace(each, lower=True) for each in POLICY.profiles))
    for device in ("0:43", "0:44"):
        host.volume(device)
        host.mount(device, point=f"/mnt/{device}")
    tuner.look(deep=True)
    asked = fault.asked
    assert [host.value(device) for device in ("0:43", "0:44")] == [15360, 15360]
    for number in range(asked):
        host.entries.clear()
        fault.asked, fault.at, fault.failed = 0, number, ""
        tuner.look(deep=True)
        if not fault.failed:
            break  # the first look had asked for more, once for all
        assert [host.value(device) for device in ("0:43", "0:44")] == [15360, 15360], fault.failed
        denied = error == errno.EACCES and fault.failed == "proc/1/uid_map"
        if not denied and (not fault.failed.startswith("proc/") or fault.failed.startswith("proc/1/")):
            assert tuner.blind, fault.failed
            assert tuner.must_look
            (told,) = host.entries.texts(Message.UNREADABLE)
            assert fault.failed in told
        fault.at = None
        tuner.look(deep=True)
        assert not tuner.blind
        assert len(tuner.snapshot.superblocks) == 2
    assert number > 10


@pytest.mark.parametrize("event", ["added", "removed", "may_be_written", "forget_lost"])
@pytest.mark.parametrize("error", [errno.EIO, errno.EMFILE, errno.EACCES])
def test_failed_reads_lose_none(host: Host, monkeypatch: pytest.MonkeyPatch, event: str, error: int) -> None:
    """Each read of what follows an event in turn: nothing is made of it, and a look follows."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    fault, tuner = host.faulty(error)
    host.volume("0:43")
    tuner.added("0:43")
    host.mount("0:43")
    tuner.look(deep=False)
    records = host.state.all()
    failed = set()
    for number in range(100):
        if event in {"added", "may_be_written"}:
            host.set("0:43", 128)
        tuner.must_look = False
        fault.asked, fault.at, fault.failed = 0, number, ""
        getattr(tuner, event)(*(() if event == "forget_lost" else ("0:43",)))
        fault.at = None
        assert host.state.all() == records, fault.failed
        if not fault.failed:
            break
        failed.add(fault.failed)
        # A record that stays longer than its superblock costs nothing.
        assert tuner.must_look or fault.failed.startswith("run/"), fault.failed
        host.now += FORGOTTEN_S + number
        host.entries.clear()
        tuner.report_faults()
        tuner.report_faults()
        assert [text for text in host.entries.texts(Message.UNREADABLE) if fault.failed in text] != []
        assert len(host.entries.texts(Message.UNREADABLE)) == 1
        tuner.look(deep=False)
        assert host.value("0:43") == 15360
    assert failed


def test_a_fault_that_lasts_is_reported_once(host: Host) -> None:
    reporter = Reporter(host.entries.journal)
    fault = ParseError("/proc/1/mountstats", 0, "Input/output error")
    for now in range(0, 3 * int(FORGOTTEN_S), 60):
        reporter.fault(fault, now)
    assert len(host.entries.texts(Message.UNREADABLE)) == 1
    reporter.forget_unreadable(())  # a look at files without it
    reporter.fault(fault, 5 * FORGOTTEN_S)
    assert len(host.entries.texts(Message.UNREADABLE)) == 2


def test_a_file_that_fails_for_a_look_and_at_an_event_is_reported_once(host: Host) -> None:
    reporter = Reporter(host.entries.journal)
    first, second = (ParseError(f"/run/{name}", 0, "No space left on device") for name in "ab")
    reporter.fault(first, 0.0)
    reporter.unreadable(first, second)
    reporter.fault(second, 1.0)
    assert host.entries.texts(Message.UNREADABLE) == [str(first), str(second)]


def test_many_files_with_the_same_error_have_one_line_and_wrong_lines_one_each(host: Host) -> None:
    reporter = Reporter(host.entries.journal)
    why = "Input/output error"
    errors = [ParseError(f"/sys/class/bdi/0:{n}/read_ahead_kb", 0, why) for n in range(30)]
    errors += [ParseError("/proc/1/mountinfo", n, "no mount id") for n in (3, 4)]
    reporter.unreadable(*errors)
    reporter.unreadable(*errors)
    assert host.entries.texts(Message.UNREADABLE) == [
        f"/sys/class/bdi/0:0/read_ahead_kb: {why} (other files with this error: 29)",
        "/proc/1/mountinfo:3: no mount id",
        "/proc/1/mountinfo:4: no mount id",
    ]


@pytest.mark.parametrize(("reason", "lines"), [(errno.EMFILE, 1), (errno.ENOMEM, 1), (errno.EIO, 4)])
def test_a_shortage_is_reported_once_and_not_for_each_file(host: Host, reason: int, lines: int) -> None:
    reporter, why = Reporter(host.entries.journal), os.strerror(reason)
    for _ in range(2):
        for name in ("/proc/1/mountinfo", "/sys/class/bdi"):
            reporter.unreadable(ParseError(name, 0, why))
        for name in ("/proc/1/mountstats", "/proc/vmstat"):
            reporter.fault(ParseError(name, 0, why), 0.0)
    assert len(host.entries.texts(Message.UNREADABLE)) == lines
    # A look that can read all is its end.
    reporter.forget_unreadable(())
    reporter.unreadable(ParseError("/sys/class/bdi", 0, why))
    assert len(host.entries.texts(Message.UNREADABLE)) == lines + 1


def test_only_mounts_of_the_hosts_own_namespace_decide(host: Host) -> None:
    """A user who may mount in a namespace of his own chooses the mount points there."""
    host.show()
    host.mount_elsewhere("0:43", point="/srv/fast")
    host.assign("fast", mount_point=("/srv/fast",))
    host.look(deep=True)
    assert [mount.foreign for s in host.tuner.snapshot.superblocks for mount in s.mounts] == [False, True]
    assert host.value("0:43") == 15360
    host.unmount("0:43")


def test_a_mount_of_another_namespace_keeps_its_value_at_looks_that_do_not_see_it(host: Host) -> None:
    """Most looks see the host's own namespace alone: what they cannot see is not taken back."""
    host.assign("azure-files", export=("/a",))
    host.volume("0:43")
    host.mount_elsewhere("0:43", "nas:/a")
    (host.folder / "proc/1/net/nfsfs/servers").write_text("NV SERVER PORT USE NAME\nv4 0a0a0a0a  801 2 nas\n")
    host.look(deep=True)
    assert host.value("0:43") == 15360
    host.look()
    assert host.value("0:43") == 15360
    host.set("0:43", 128)
    host.look()
    assert host.value("0:43") == 15360
    (contested,) = host.entries.texts(Message.READ_AHEAD_CONTESTED)
    assert contested.startswith("/mnt/a: ")


@pytest.mark.parametrize("detached", [True, False])
def test_a_mount_behind_a_tunnel_keeps_its_value_at_looks_that_do_not_see_it(
    host: Host, *, detached: bool
) -> None:
    """The look shows no mount with a loopback source, and the tunnel counts all the same."""
    put(
        host.folder / "etc/stunnel/microsoft/aznfs/nfsv4_fileShare/stunnel_10.0.0.4.conf",
        "[s]\naccept = 127.0.0.1:20049\nconnect = 10.0.0.4:2049\n",
    )
    host.tunnel("0:43")
    options = "rw,vers=4.1,rsize=262144,port=20049,addr=127.0.0.1"
    mounted = f"90 80 0:43 / /mnt/a rw - nfs4 127.0.0.1:/a {options}\n"
    own = host.folder / "proc/1/mountinfo"
    if detached:
        own.write_text(mounted)
    else:
        host.mount_elsewhere("0:43")
        put(host.folder / "proc/77/mountinfo", mounted)
    host.look(deep=True)
    assert host.value("0:43") == 15360
    own.write_text("")
    host.look()
    assert host.value("0:43") == 15360


@pytest.mark.parametrize("named", [True, False])
def test_a_name_of_a_tunnels_server_counts_without_a_mount_of_the_tunnel(host: Host, *, named: bool) -> None:
    """Over NFSv4.1 the kernel sends a later mount of the server over the tunnel's connections."""
    put(
        host.folder / "etc/stunnel/microsoft/aznfs/nfsv4_fileShare/stunnel_10.0.0.4.conf",
        "[s]\naccept = 127.0.0.1:20049\nconnect = 10.0.0.4:2049\n",
    )
    host.tunnel("0:43")
    if named:
        host.tunnel("0:44")
        host.mount("0:44", "127.0.0.1:/b", "/mnt/b", ",port=20049")
    with (host.folder / "proc/1/mountinfo").open("a") as file:
        file.write("90 80 0:43 / /mnt/a rw - nfs4 nas:/a rw,vers=4.1,rsize=262144,addr=127.0.0.1\n")
    host.look()
    assert host.value("0:43") == 15360


@pytest.mark.parametrize("result", [Result.FAILED, Result.SKIPPED])
def test_no_refusal_is_reported_as_set(host: Host, monkeypatch: pytest.MonkeyPatch, result: Result) -> None:
    host.show()
    host.look()
    host.set("0:43", 128)
    monkeypatch.setattr(tuner, "apply_action", lambda _root, _state, action: Outcome(action, result, "why"))
    host.look()
    host.look()
    assert host.entries.texts(Message.READ_AHEAD_CONTESTED) == []
    assert bool(host.entries.texts(Message.READ_AHEAD_FAILED)) == (result is Result.FAILED)


def test_a_refusal_that_lasts_is_reported_once_and_again_when_it_changes_or_ended(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [(Result.FAILED, "full")] * 3 + [(Result.FAILED, "read-only")] * 2 + [(Result.DONE, "")]
    answers += [(Result.FAILED, "full")] * 2
    host.show()
    for result, why in answers:
        monkeypatch.setattr(
            tuner, "apply_action", lambda _root, _state, action, r=result, w=why: Outcome(action, r, w)
        )
        host.look()
    reasons = [entry["NFSTUNED_REASON"] for entry in host.entries.of(Message.READ_AHEAD_FAILED)]
    assert reasons == ["full", "read-only", "full"]
    assert len(host.entries.of(Message.READ_AHEAD_SET)) == 1


def test_writes_that_failed_are_no_contest(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mount was left at the kernel's value, as if another writer kept changing it."""
    host.show()
    with monkeypatch.context() as patch:
        patch.setattr(Bdi, "write_kb", no_space)
        for _ in range(10):
            host.look()
    host.look()
    assert host.value("0:43") == 15360
    assert host.entries.names() == ["READ_AHEAD_FAILED", "READ_AHEAD_SET"]


def test_a_value_that_cannot_be_put_back_is_reported(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.show()
    host.look()
    monkeypatch.setattr(State, "put", no_space)
    host.tuner.restore()
    (text,) = host.entries.texts(Message.READ_AHEAD_FAILED)
    assert text == "0:43: read-ahead of 128 KiB refused: 0:43: No space left on device"
    assert host.value("0:43") == 15360


def no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_two_changes_that_end_where_they_began_are_no_change() -> None:
    watched, there = WatchedDevice("0:43"), Action("read-ahead", "0:43", 1, "/a", 128, 8192, "x")
    for action in (there, replace(there, old_kb=8192, new_kb=128)):
        watched.add_change(Outcome(action, Result.DONE, ""))
    assert watched.change is None


def test_an_unmount_in_another_namespace_counts_at_a_look_that_sees_it(host: Host) -> None:
    host.assign("fast", mount_point=("/mnt/a",))
    host.volume("0:43")
    host.mount_elsewhere("0:43")
    host.look(deep=True)
    assert host.value("0:43") == 65536
    (host.folder / "proc/77/mountinfo").write_text("90 80 254:0 / / rw - ext4 /dev/vda rw\n")
    host.look(deep=True)
    assert host.value("0:43") == 15360


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("searched", [False, True])
def test_a_superblock_that_outlives_its_mounts_here_is_searched(
    host: Host, *, elsewhere: bool, searched: bool
) -> None:
    """A container may hold it, or a program with an open file; the mount that is gone decides no more."""
    host.assign("fast", mount_point=("/mnt/a",))
    host.show()
    host.look(deep=searched)
    assert (host.value("0:43"), host.tuner.search_at_s) == (65536, NEVER)
    (host.folder / "proc/1/mountinfo").write_text("24 1 254:0 / / rw - ext4 /dev/vda rw\n")
    if elsewhere:
        host.mount_elsewhere("0:43", point="/mnt/b")
    host.now = 100.0
    host.look()
    host.look()
    assert (host.value("0:43"), host.tuner.search_at_s) == (65536, host.now + SEARCH_S)
    host.now = host.tuner.search_at_s
    host.look(deep=True)
    host.look()
    assert host.value("0:43") == 15360
    assert host.tuner.search_at_s == (host.now + HIDDEN_S if elsewhere else 100 + UNNAMED_S)


@pytest.mark.parametrize("event", ["removed", "forget_lost"])
@pytest.mark.parametrize("hidden", [False, True])
def test_a_superblock_that_went_unread_is_searched_no_more(
    host: Host, monkeypatch: pytest.MonkeyPatch, event: str, *, hidden: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    fault, tuner = host.faulty(errno.EMFILE)
    host.volume("0:43")
    tuner.added("0:43")
    if hidden:
        host.mount_elsewhere("0:43")
    tuner.look(deep=True)
    assert tuner.search_at_s == (HIDDEN_S if hidden else UNNAMED_S)
    host.unmount("0:43")
    for _ in range(2):
        fault.asked, fault.at, fault.failed = 0, 0, ""
        getattr(tuner, event)(*(() if event == "forget_lost" else ("0:43",)))
        assert (fault.failed != "", tuner.must_look) == (True, True)
    tuner.look(deep=False)
    assert tuner.search_at_s == NEVER
    assert host.state.all() == {}
