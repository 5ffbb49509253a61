"""What `apply --live` and `apply --remount` have in common: whom they ask, and when they do nothing."""

from __future__ import annotations

import fcntl
import sys
from pathlib import Path

import pytest

from nfstuned.host.change.remount import LOCK
from nfstuned.host.files.replace import locked
from tests.cli.groupchange import COMMANDS, Command, HostOnDisk, actions
from tests.cli.terminal import on_a_terminal


@pytest.fixture(params=COMMANDS, ids=lambda command: command.module.rpartition(".")[2])
def command(request: pytest.FixtureRequest) -> Command:
    asked = request.param
    assert isinstance(asked, Command)
    return asked


@pytest.fixture
def here(command: Command, tmp_path: Path) -> HostOnDisk:
    return command.prepare(tmp_path / "host")


def program(command: Command, here: HostOnDisk) -> list[str]:
    """Return what runs the command over a host in a process of its own, but for the format."""
    return [sys.executable, "-m", command.module, str(here.tree)]


@pytest.fixture
def plan(here: HostOnDisk, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a dry run shows before the lines of the mounts."""
    assert here.run(dry_run=True) == 0
    shown, _, _ = capsys.readouterr().out.partition("\n/mnt/a  ")
    assert shown.startswith("2 mounts of one server, ")
    return shown


def test_without_a_terminal_nothing_is_done_unasked(
    here: HostOnDisk, capsys: pytest.CaptureFixture[str]
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
    here: HostOnDisk, command: Command, plan: str, answer: bytes, ending: tuple[int, str]
) -> None:
    status, out, talk = on_a_terminal([*program(command, here), "json"], answer)
    assert {(status, one["outcome"]) for one in actions(out)} == {ending}
    assert plan in talk
    assert command.question in talk


def test_what_has_changed_while_it_asked_is_left(here: HostOnDisk, command: Command) -> None:
    returned, out, _ = on_a_terminal([*program(command, here), "json", "changing"], b"y\n")
    assert returned == 1
    assert {one["reason"] for one in actions(out)} == {
        "the host has changed since this was shown: nothing was done; try again"
    }


def test_while_another_one_is_at_it_nothing_is_done(
    here: HostOnDisk, capsys: pytest.CaptureFixture[str]
) -> None:
    with locked(str(here.tree / LOCK)):
        assert here.run(form="json", yes=True) == 1
    assert {one["reason"] for one in actions(capsys.readouterr().out)} == {
        "nothing was done: another nfstuned is at it"
    }
    assert here.ground.kernel.calls == []
    with (here.tree / LOCK).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("point", ["/mnt", "/mnt/c", "/"])
def test_what_is_no_nfs_mount_cannot_be_tried(
    here: HostOnDisk, capsys: pytest.CaptureFixture[str], point: str
) -> None:
    assert here.run(point, yes=True) == 2
    assert (
        capsys.readouterr().err == f"{point}: no NFS mount is there, or the kernel does not tell its server\n"
    )


def test_from_a_container_nothing_is_tried(here: HostOnDisk, capsys: pytest.CaptureFixture[str]) -> None:
    here.ground.refusal = "only root can do this"
    assert here.run(yes=True) == 2
    assert capsys.readouterr() == ("", "nothing was changed: only root can do this\n")
    assert here.run(dry_run=True) == 0
    assert capsys.readouterr().err == "only root can do this\n"


def test_after_a_file_that_could_not_be_read_nothing_is_done(
    here: HostOnDisk, capsys: pytest.CaptureFixture[str]
) -> None:
    (here.tree / "etc/nfsmount.conf").symlink_to("nfsmount.conf")
    assert here.run(form="json", yes=True) == 1
    assert {(one["outcome"], one["reason"]) for one in actions(capsys.readouterr().out)} == {
        ("failed", "it may depend on /etc/nfsmount.conf, which could not be read")
    }
    assert here.ground.kernel.calls == []
