"""`nfstuned apply --remount`: what it shows, what it asks, what it does, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nfstuned.model.connections import BusyUse
from nfstuned.model.facts import Network, Reach, Reachable
from tests.cli.conftest import Host
from tests.cli.groupchange import actions
from tests.cli.remounting import Remounting, existing, prepare

STOP = "systemctl stop --job-mode=ignore-dependencies --"
PLAN = f"""\
2 mounts of one server, nconnect 1 -> 4 (/etc/fstab:4 asks for nconnect=4; put it also into /etc/fstab:3, \
or the next boot decides anew):
  {STOP} mnt-b.mount
  {STOP} mnt-a.mount
  systemctl start -- mnt-b.mount
  systemctl start -- mnt-a.mount
"""
REASON = "/etc/fstab:4 asks for nconnect=4; put it also into /etc/fstab:3, or the next boot decides anew"


@pytest.fixture
def here(tmp_path: Path) -> Remounting:
    return prepare(tmp_path / "host")


def test_a_dry_run_shows_the_commands_and_does_nothing(
    here: Remounting, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here.run(dry_run=True) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out == PLAN + (
        f"/mnt/a  nconnect 1 -> 4  planned  ({REASON})\n"
        f"/mnt/b  nconnect 1 -> 4  planned  ({REASON})\n"
        "2 planned\n"
    )
    assert here.ground.kernel.calls == []


def test_with_yes_all_have_the_number_afterwards(
    here: Remounting, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here.run(yes=True) == 0
    out, _ = capsys.readouterr()
    assert out.startswith(PLAN)
    assert "2 done\n" in out
    assert "sudo nfstuned apply\n" in out
    assert here.ground.kernel.mounts == {"/mnt/a": 4, "/mnt/b": 4}
    assert here.ground.asked == [(frozenset({"0:46", "0:47"}), ("mnt-a.mount", "mnt-b.mount"))]
    assert here.ground.places == [("10.10.20.5", 2049)]


def test_json_is_one_document_and_the_plan_is_talk(
    here: Remounting, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here.run("/mnt/a/", "json", yes=True) == 0
    out, err = capsys.readouterr()
    assert err == PLAN
    assert actions(out)[0] == {
        "kind": "remount",
        "target": "/mnt/a",
        "old": 1,
        "new": 4,
        "outcome": "done",
        "reason": REASON,
        "mounted": True,
        "command": None,
    }


def test_what_is_not_mounted_in_the_end_is_named_with_its_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = prepare(tmp_path / "host", lambda step, _: "refused" if step == "mount" else "")
    assert here.run(yes=True) == 1
    out, _ = capsys.readouterr()
    assert "2 failed\n" in out
    assert (
        "These are not mounted now; to finish:\n"
        "  sudo systemctl start -- mnt-a.mount\n"
        "  sudo systemctl start -- mnt-b.mount\n"
    ) in out
    assert existing(here.tree).run(form="json", dry_run=True) == 0
    here = prepare(tmp_path / "again", lambda step, _: "refused" if step == "mount" else "")
    capsys.readouterr()
    assert here.run(form="json", yes=True) == 1
    first = actions(capsys.readouterr().out)[0]
    assert (first["outcome"], first["mounted"], first["command"]) == (
        "failed",
        False,
        "systemctl start -- mnt-a.mount",
    )
    assert first["reason"].startswith("not mounted now: systemctl start -- mnt-a.mount: mount refused")
    assert first["reason"].endswith("; to finish: sudo systemctl start -- mnt-a.mount")


def test_who_keeps_a_mount_busy_is_named_and_nothing_is_done(
    here: Remounting, capsys: pytest.CaptureFixture[str]
) -> None:
    here.ground.uses = (BusyUse("0:46", "tail (4711) has /mnt/a/log open"),)
    for dry_run in (True, False):
        assert here.run("/mnt/b", "json", dry_run=dry_run, yes=True) == 1
        out, err = capsys.readouterr()
        assert err == ""
        assert {(one["outcome"], one["reason"]) for one in actions(out)} == {
            ("failed", "in use: tail (4711) has /mnt/a/log open")
        }
    assert here.ground.kernel.calls == []


def test_a_server_that_does_not_answer_is_left_alone_and_nobody_is_looked_at(
    here: Remounting, capsys: pytest.CaptureFixture[str]
) -> None:
    here.network = Network(reaches=(Reach("10.10.20.5", 2049, Reachable.TIMEOUT, "no answer within 2 s"),))
    assert here.run(form="json", yes=True) == 1
    (reason,) = {one["reason"] for one in actions(capsys.readouterr().out)}
    assert reason == (
        "its server does not answer (10.10.20.5 port 2049: no answer within 2 s): "
        "a mount could not be made again"
    )
    assert (here.ground.asked, here.ground.kernel.calls) == ([], [])


def test_mounts_that_are_right_are_nothing_to_do(
    here: Remounting, capsys: pytest.CaptureFixture[str]
) -> None:
    table = here.tree / "proc/1/mountinfo"
    table.write_text(table.read_text().replace("proto=tcp", "proto=tcp,nconnect=4"))
    for point in ("--all", "/mnt/a"):
        assert here.run(point, yes=True) == 0
        assert capsys.readouterr().out.startswith("Nothing to do")


def test_what_is_left_alone_on_purpose_is_a_failure_only_where_it_was_asked_for(
    here: Remounting, capsys: pytest.CaptureFixture[str]
) -> None:
    table = here.tree / "proc/1/mountinfo"
    trigger = "90 27 0:90 / /mnt/b rw shared:190 - autofs /etc/auto.direct rw,fd=5\n"
    table.write_text(trigger + table.read_text().replace("69 27 0:47", "69 90 0:47"))
    assert here.run("--all", "json", yes=True) == 0
    assert {one["outcome"] for one in actions(capsys.readouterr().out)} == {"skipped"}
    assert here.run("/mnt/a", "json", yes=True) == 1


class TestUsage:
    @pytest.mark.parametrize(
        "arguments",
        [
            ("--remount",),
            ("--remount", "relative"),
            ("--remount", "--yes"),
            ("--remount", "/mnt/a", "--fstab"),
            ("--remount", "/mnt/a", "--follow-symlink"),
            ("--yes",),
            ("--all",),
        ],
    )
    def test_what_makes_no_sense_is_wrong_usage(
        self, host: Callable[[str], Host], arguments: tuple[str, ...]
    ) -> None:
        run = host("no-nfs").run("apply", *arguments)
        assert (run.status, run.out) == (2, "")
        assert "Error: " in run.err

    def test_a_broken_configuration_is_no_try(self, host: Callable[[str], Host]) -> None:
        here = host("no-nfs")
        (here.tree / "etc").mkdir(exist_ok=True)
        (here.tree / "etc/nfstuned").mkdir()
        here.configure("[")
        run = here.run("apply", "--remount", "--all", "--yes")
        assert (run.status, run.out) == (2, "")
        assert "etc/nfstuned/nfstuned.toml:1: " in run.err
