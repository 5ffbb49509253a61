"""`nfstuned nconnect remount`: what it shows, what it asks, what it does, and what it refuses."""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nfstuned.host.files.replace import locked
from nfstuned.host.remount import REMOUNT_LOCK
from nfstuned.model.change import BusyUse
from nfstuned.model.system import Network, Reach, Reachable
from tests.cli import remounting
from tests.cli.conftest import Run
from tests.cli.remounting import Remounting, prepare
from tests.cli.terminal import on_a_terminal

STOP = "systemctl stop --job-mode=ignore-dependencies --"
PLAN = f"""\
2 mounts of one server, nconnect 1 -> 4 (/etc/fstab:4 asks for nconnect=4; put it also into /etc/fstab:3, \
or the next boot decides again):
  {STOP} mnt-b.mount
  {STOP} mnt-a.mount
  systemctl start -- mnt-b.mount
  systemctl start -- mnt-a.mount
"""
REASON = "/etc/fstab:4 asks for nconnect=4; put it also into /etc/fstab:3, or the next boot decides again"


Runner = Callable[..., Run]


@pytest.fixture
def run(here: Remounting, capsys: pytest.CaptureFixture[str]) -> Runner:
    def runs(point: str = "", form: str = "text", **more: bool) -> Run:
        capsys.readouterr()
        return Run(here.run(point, form, **more), *capsys.readouterr())

    return runs


@pytest.fixture
def here(tmp_path: Path) -> Remounting:
    return prepare(tmp_path / "host")


def test_a_dry_run_shows_the_commands_and_with_yes_they_run(here: Remounting, run: Runner) -> None:
    done = run(dry_run=True)
    assert (done.status, done.err) == (0, "")
    planned = (f"/mnt/{name}  nconnect 1 -> 4  planned  ({REASON})\n" for name in "ab")
    assert done.out == f"{PLAN}{''.join(planned)}2 planned\n"
    assert here.ground.kernel.calls == []
    here.ground.asked.clear()
    done = run(yes=True)
    assert done.status == 0
    assert done.out.startswith(PLAN)
    assert "2 done\n" in done.out
    assert "sudo nfstuned apply\n" in done.out
    assert here.ground.kernel.mounts == {"/mnt/a": 4, "/mnt/b": 4}
    assert here.ground.asked == [(frozenset({"0:46", "0:47"}), ("mnt-a.mount", "mnt-b.mount"))]
    assert here.ground.places == [("10.10.20.5", 2049)]


def test_json_is_one_document_and_the_plan_is_talk(run: Runner) -> None:
    done = run("/mnt/a/", "json", yes=True)
    assert (done.status, done.err) == (0, PLAN)
    assert done.actions[0] == {
        "kind": "remount",
        "target": "/mnt/a",
        "old": 1,
        "new": 4,
        "outcome": "done",
        "reason": REASON,
        "mounted": True,
        "command": None,
    }


def test_a_mount_that_does_not_return_has_its_command(here: Remounting, run: Runner, tmp_path: Path) -> None:
    here.ground = refusing(tmp_path / "text").ground
    done = run(yes=True)
    assert (done.status, "2 failed\n" in done.out) == (1, True)
    assert (
        "These are not mounted now; to finish:\n"
        "  sudo systemctl start -- mnt-a.mount\n"
        "  sudo systemctl start -- mnt-b.mount\n"
    ) in done.out
    here.ground = refusing(tmp_path / "json").ground
    done = run(form="json", yes=True)
    first, command = done.actions[0], "systemctl start -- mnt-a.mount"
    assert (done.status, first["outcome"]) == (1, "failed")
    assert (first["mounted"], first["command"]) == (False, command)
    assert first["reason"].startswith(f"not mounted now: {command}: mount refused")
    assert first["reason"].endswith(f"; to finish: sudo {command}")
    here.ground = prepare(tmp_path / "next").ground
    assert run(dry_run=True).status == 0


def refusing(tree: Path) -> Remounting:
    return prepare(tree, lambda step, _: "refused" if step == "mount" else "")


def test_who_keeps_a_mount_busy_is_named_and_nothing_is_done(here: Remounting, run: Runner) -> None:
    here.ground.uses = (BusyUse("0:46", "tail (4711) has /mnt/a/log open"),)
    for dry_run in (True, False):
        done = run("/mnt/b", "json", dry_run=dry_run, yes=True)
        assert (done.status, done.err) == (1, "")
        assert ends(done) == {("failed", "in use: tail (4711) has /mnt/a/log open")}
    assert here.ground.kernel.calls == []


def ends(done: Run) -> set[tuple[str, str]]:
    """Return the outcomes of the actions with their reasons."""
    return {(action["outcome"], action["reason"]) for action in done.actions}


def test_a_server_that_does_not_answer_is_left_without_a_look_at_users(here: Remounting, run: Runner) -> None:
    here.network = Network(reaches=(Reach("10.10.20.5", 2049, Reachable.TIMEOUT, "no answer within 2 s"),))
    done = run(form="json", yes=True)
    reason = (
        "its server does not answer (10.10.20.5 port 2049: no answer within 2 s): "
        "it could not be mounted again"
    )
    assert (done.status, {why for _, why in ends(done)}) == (1, {reason})
    assert (here.ground.asked, here.ground.kernel.calls) == ([], [])


def test_mounts_that_are_right_are_nothing_to_do(here: Remounting, run: Runner) -> None:
    table = here.tree / "proc/1/mountinfo"
    table.write_text(table.read_text().replace("proto=tcp", "proto=tcp,nconnect=4"))
    for point in ("", "/mnt/a"):
        done = run(point, yes=True)
        assert (done.status, done.out[:13]) == (0, "Nothing to do")


def test_mounts_left_on_purpose_are_a_failure_only_if_asked_for(here: Remounting, run: Runner) -> None:
    table = here.tree / "proc/1/mountinfo"
    trigger = "90 27 0:90 / /mnt/b rw shared:190 - autofs /etc/auto.direct rw,fd=5\n"
    table.write_text(trigger + table.read_text().replace("69 27 0:47", "69 90 0:47"))
    done = run("", "json", yes=True)
    assert (done.status, {outcome for outcome, _ in ends(done)}) == (0, {"skipped"})
    assert run("/mnt/a", "json", yes=True).status == 1


def program(here: Remounting) -> list[str]:
    """Return the command over a host in a process of its own, but for the format."""
    return [sys.executable, "-m", remounting.__name__, str(here.tree)]


def test_without_a_terminal_nothing_is_done_unasked(here: Remounting, run: Runner) -> None:
    done = run(form="json")
    assert (done.status, "--yes" in done.err) == (2, True)
    assert {outcome for outcome, _ in ends(done)} == {"planned"}
    assert here.ground.kernel.calls == []


@pytest.mark.parametrize(
    ("answer", "status", "outcome"), [(b"y\n", 0, "done"), (b"n\n", 1, "skipped"), (b"\n", 1, "skipped")]
)
def test_on_a_terminal_it_plans_and_asks(here: Remounting, answer: bytes, status: int, outcome: str) -> None:
    returned, out, dialog = on_a_terminal([*program(here), "json"], answer)
    assert (returned, {end for end, _ in ends(Run(returned, out, ""))}) == (status, {outcome})
    assert PLAN in dialog
    assert "Unmount them and mount them again? [y/N]" in dialog


def test_what_has_changed_while_it_asked_is_left(here: Remounting) -> None:
    done = Run(*on_a_terminal([*program(here), "json", "changing"], b"y\n"))
    reason = "the host changed after the plan was shown: nothing was done; try again"
    assert (done.status, {why for _, why in ends(done)}) == (1, {reason})


def test_while_another_one_is_at_it_nothing_is_done(here: Remounting, run: Runner) -> None:
    with locked(str(here.tree / REMOUNT_LOCK)):
        done = run(form="json", yes=True)
    reason = "nothing was done: another nfstuned is remounting"
    assert (done.status, {why for _, why in ends(done)}) == (1, {reason})
    assert here.ground.kernel.calls == []
    with (here.tree / REMOUNT_LOCK).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("point", ["/mnt", "/mnt/c", "/"])
def test_what_is_no_nfs_mount_cannot_be_tried(run: Runner, point: str) -> None:
    error = f"{point}: no NFS mount is there, or the kernel does not show its server\n"
    assert run(point, yes=True) == Run(2, "", error)


def test_from_a_container_nothing_is_tried(here: Remounting, run: Runner) -> None:
    here.ground.refusal = "only root can do this"
    assert run(yes=True) == Run(2, "", "nothing was changed: only root can do this\n")
    dry = run(dry_run=True)
    assert (dry.status, dry.err) == (0, "only root can do this\n")


def test_after_a_file_that_could_not_be_read_nothing_is_done(here: Remounting, run: Runner) -> None:
    (here.tree / "etc/nfsmount.conf").symlink_to("nfsmount.conf")
    done = run(form="json", yes=True)
    reason = "it may depend on /etc/nfsmount.conf, which could not be read"
    assert (done.status, ends(done)) == (1, {("failed", reason)})
    assert here.ground.kernel.calls == []
