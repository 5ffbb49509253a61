"""`nfstuned apply --remount`: what it shows, what it asks, what it does, and what it refuses."""

from __future__ import annotations

import fcntl
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from nfstuned.host.files.replace import locked
from nfstuned.host.remount import REMOUNT_LOCK
from nfstuned.model.change import BusyUse
from nfstuned.model.system import Network, Reach, Reachable
from tests.cli import remounting
from tests.cli.conftest import REPOSITORY, Host
from tests.cli.remounting import Remounting, existing, prepare
from tests.cli.terminal import on_a_terminal

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


def actions(text: str) -> list[dict[str, Any]]:
    """Return the actions of what `apply --format json` printed, which must be as its schema says."""
    document = json.loads(text)
    jsonschema.validate(document, json.loads((REPOSITORY / "docs/schema/nfstuned.apply.1.json").read_text()))
    found: list[dict[str, Any]] = document["actions"]
    return found


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


def program(here: Remounting) -> list[str]:
    """Return the command over a host in a process of its own, but for the format."""
    return [sys.executable, "-m", remounting.__name__, str(here.tree)]


@pytest.fixture
def plan(here: Remounting, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a dry run shows before the lines of the mounts."""
    assert here.run(dry_run=True) == 0
    shown, _, _ = capsys.readouterr().out.partition("\n/mnt/a  ")
    assert shown.startswith("2 mounts of one server, ")
    return shown


def test_without_a_terminal_nothing_is_done_unasked(
    here: Remounting, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here.run(form="json") == 2
    out, err = capsys.readouterr()
    assert "--yes" in err
    assert {one["outcome"] for one in actions(out)} == {"planned"}
    assert here.ground.kernel.calls == []


@pytest.mark.parametrize(
    ("answer", "ending"), [(b"y\n", (0, "done")), (b"n\n", (1, "skipped")), (b"\n", (1, "skipped"))]
)
def test_on_a_terminal_it_shows_the_plan_and_asks(
    here: Remounting, plan: str, answer: bytes, ending: tuple[int, str]
) -> None:
    status, out, dialog = on_a_terminal([*program(here), "json"], answer)
    assert {(status, one["outcome"]) for one in actions(out)} == {ending}
    assert plan in dialog
    assert "Unmount them and mount them again? [y/N]" in dialog


def test_what_has_changed_while_it_asked_is_left(here: Remounting) -> None:
    returned, out, _ = on_a_terminal([*program(here), "json", "changing"], b"y\n")
    assert returned == 1
    assert {one["reason"] for one in actions(out)} == {
        "the host has changed since this was shown: nothing was done; try again"
    }


def test_while_another_one_is_at_it_nothing_is_done(
    here: Remounting, capsys: pytest.CaptureFixture[str]
) -> None:
    with locked(str(here.tree / REMOUNT_LOCK)):
        assert here.run(form="json", yes=True) == 1
    assert {one["reason"] for one in actions(capsys.readouterr().out)} == {
        "nothing was done: another nfstuned is at it"
    }
    assert here.ground.kernel.calls == []
    with (here.tree / REMOUNT_LOCK).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("point", ["/mnt", "/mnt/c", "/"])
def test_what_is_no_nfs_mount_cannot_be_tried(
    here: Remounting, capsys: pytest.CaptureFixture[str], point: str
) -> None:
    assert here.run(point, yes=True) == 2
    assert (
        capsys.readouterr().err == f"{point}: no NFS mount is there, or the kernel does not tell its server\n"
    )


def test_from_a_container_nothing_is_tried(here: Remounting, capsys: pytest.CaptureFixture[str]) -> None:
    here.ground.refusal = "only root can do this"
    assert here.run(yes=True) == 2
    assert capsys.readouterr() == ("", "nothing was changed: only root can do this\n")
    assert here.run(dry_run=True) == 0
    assert capsys.readouterr().err == "only root can do this\n"


def test_after_a_file_that_could_not_be_read_nothing_is_done(
    here: Remounting, capsys: pytest.CaptureFixture[str]
) -> None:
    (here.tree / "etc/nfsmount.conf").symlink_to("nfsmount.conf")
    assert here.run(form="json", yes=True) == 1
    assert {(one["outcome"], one["reason"]) for one in actions(capsys.readouterr().out)} == {
        ("failed", "it may depend on /etc/nfsmount.conf, which could not be read")
    }
    assert here.ground.kernel.calls == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--remount",), "requires an argument"),
        (("--remount", "relative"), "takes a mount point, which begins with a slash"),
        (("--remount", "--yes"), "takes a mount point, which begins with a slash"),
        (("--remount", "/mnt/a", "--fstab"), "one after the other"),
        (("--fstab", "--persist"), "one after the other"),
        (("--remount", "/mnt/a", "--follow-symlink"), "--follow-symlink goes with --fstab"),
        (("--follow-symlink",), "--follow-symlink goes with --fstab"),
        (("--yes",), "--yes goes with --fstab or --remount"),
        (("--persist", "--yes"), "--yes goes with --fstab or --remount"),
        (("--prune",), "--prune goes with --persist"),
        (("--fstab", "--prune"), "--prune goes with --persist"),
        (("--all",), "--all"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(
    host: Callable[[str], Host], arguments: tuple[str, ...], words: str
) -> None:
    run = host("no-nfs").run("apply", *arguments)
    assert (run.status, run.out) == (2, "")
    assert words in run.err


def test_a_broken_configuration_is_no_try(host: Callable[[str], Host]) -> None:
    here = host("no-nfs")
    (here.tree / "etc/nfstuned").mkdir(parents=True)
    here.configure("[")
    run = here.run("apply", "--remount", "--all", "--yes")
    assert (run.status, run.out) == (2, "")
    assert "etc/nfstuned/nfstuned.toml:1: " in run.err
