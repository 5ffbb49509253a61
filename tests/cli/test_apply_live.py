"""`nfstuned apply --live`: what it shows, what it asks, what it adds, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nfstuned.model.facts import Network, Reach, Reachable
from tests.cli.conftest import Host
from tests.cli.groupchange import actions
from tests.cli.living import Living, prepare

SWITCH = "/sys/kernel/sunrpc/xprt-switches/switch-2"
PLAN = f"""\
2 mounts of one server, connections 2 -> 4 (/etc/fstab:4 asks for nconnect=4):
  add 2 connections through {SWITCH}/add_xprt, one by one
  after each, send requests over /mnt/a, and take all back if a connection carries none
"""
REASON = "/etc/fstab:4 asks for nconnect=4"


@pytest.fixture
def here(tmp_path: Path) -> Living:
    return prepare(tmp_path / "host")


def refused(here: Living, capsys: pytest.CaptureFixture[str], point: str = "/mnt/b") -> str:
    """Return why nothing is done, dry or not; nothing may have been tried."""
    reasons = set()
    for dry_run in (True, False):
        assert here.run(point, "json", dry_run=dry_run, yes=True) == 1
        out, err = capsys.readouterr()
        assert err == ""
        found = actions(out)
        assert {one["outcome"] for one in found} == {"failed"}
        reasons |= {one["reason"] for one in found}
    assert here.ground.kernel.calls == []
    (reason,) = reasons
    return str(reason)


def test_a_dry_run_shows_the_plan_and_sends_nothing(here: Living, capsys: pytest.CaptureFixture[str]) -> None:
    assert here.run(dry_run=True) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out == PLAN + (
        f"/mnt/a  connections 2 -> 4  planned  ({REASON})\n"
        f"/mnt/b  connections 2 -> 4  planned  ({REASON})\n"
        "2 planned\n"
    )
    assert here.ground.kernel.calls == []


def test_with_yes_all_carry_requests_afterwards(here: Living, capsys: pytest.CaptureFixture[str]) -> None:
    assert here.run(yes=True) == 0
    out, _ = capsys.readouterr()
    assert out == PLAN + (
        f"/mnt/a  connections 2 -> 4  done  ({REASON})\n"
        f"/mnt/b  connections 2 -> 4  done  ({REASON})\n"
        "2 done\n"
        "They last until the mounts are unmounted; /proc/mounts goes on to show nconnect=2.\n"
    )
    assert len(here.ground.kernel.lines) == 4
    (plan,) = here.ground.plans
    assert plan.place == ("10.10.20.5", 2049)


def test_json_is_one_document_and_the_plan_is_talk(here: Living, capsys: pytest.CaptureFixture[str]) -> None:
    assert here.run("/mnt/a/", "json", yes=True) == 0
    out, err = capsys.readouterr()
    assert err == PLAN
    assert actions(out)[0] == {
        "kind": "live",
        "target": "/mnt/a",
        "old": 2,
        "new": 4,
        "outcome": "done",
        "reason": REASON,
        "mounted": True,
        "command": None,
    }


def test_one_that_carries_nothing_is_taken_back_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = prepare(tmp_path / "host", lambda step, _: "denied" if step == "add" else "")
    assert here.run(form="json", yes=True) == 1
    (reason,) = {one["reason"] for one in actions(capsys.readouterr().out)}
    assert reason == (
        "connection 3: requests over /mnt/a come to nothing (Operation not permitted); what was added was "
        "taken back, and 2 connections carry requests as before"
    )
    assert len(here.ground.kernel.lines) == 2


def test_a_mount_with_one_connection_is_refused(here: Living, capsys: pytest.CaptureFixture[str]) -> None:
    here.change("proc/1/mountinfo", ",nconnect=2", "")
    assert refused(here, capsys).startswith("/mnt/a, /mnt/b was made without nconnect: ")


def test_a_mount_without_noresvport_is_refused(here: Living, capsys: pytest.CaptureFixture[str]) -> None:
    here.change("proc/1/mountinfo", ",noresvport", "")
    assert refused(here, capsys).startswith("/mnt/a, /mnt/b was made without noresvport: ")


@pytest.mark.parametrize("release", ["5.10.0-35-cloud-amd64", "6.1.0-50-cloud-amd64", "6.18.9+deb13-amd64"])
def test_a_kernel_without_the_fix_is_refused(
    here: Living, capsys: pytest.CaptureFixture[str], release: str
) -> None:
    here.change("proc/sys/kernel/osrelease", "7.2.12+deb13-cloud-amd64", release)
    assert refused(here, capsys).startswith(f"Linux {release} cannot do it safely: ")


def test_a_reserved_port_is_refused(here: Living, capsys: pytest.CaptureFixture[str]) -> None:
    here.change(f"{SWITCH[1:]}/xprt-3-tcp/xprt_info", "src_port=40001", "src_port=783")
    assert refused(here, capsys).startswith("xprt-3-tcp comes from a port of at most 1023")


def test_a_server_that_does_not_answer_is_refused(here: Living, capsys: pytest.CaptureFixture[str]) -> None:
    here.network = Network(reaches=(Reach("10.10.20.5", 2049, Reachable.TIMEOUT, "no answer within 2 s"),))
    assert refused(here, capsys) == "its server does not answer (10.10.20.5 port 2049: no answer within 2 s)"


def test_a_kernel_that_tells_nothing_of_connections_is_refused(
    here: Living, capsys: pytest.CaptureFixture[str]
) -> None:
    (here.tree / "sys/fs/nfs/0:47/nfs_client").unlink()
    assert refused(here, capsys) == "the kernel does not tell which connections it uses (/sys/fs/nfs)"


def test_fewer_connections_are_refused_where_they_are_asked_for(
    here: Living, capsys: pytest.CaptureFixture[str]
) -> None:
    here.change("etc/fstab", "nconnect=4", "nconnect=1")
    here.change("proc/1/mountinfo", "nconnect=2", "nconnect=4")
    assert refused(here, capsys).startswith("it has more connections than it should")
    assert here.run(yes=True) == 0
    assert capsys.readouterr().out.startswith("Nothing to do")


def test_mounts_that_are_right_are_nothing_to_do(here: Living, capsys: pytest.CaptureFixture[str]) -> None:
    here.change("proc/1/mountinfo", "nconnect=2", "nconnect=4")
    for point in ("--all", "/mnt/a"):
        assert here.run(point, yes=True) == 0
        assert capsys.readouterr().out.startswith("Nothing to do")


def test_connections_that_were_added_before_are_nothing_to_do(
    here: Living, capsys: pytest.CaptureFixture[str]
) -> None:
    stats = here.tree / "proc/1/mountstats"
    lines = stats.read_text().splitlines(keepends=True)
    stats.write_text("".join(line * 2 if line.startswith("\txprt:") else line for line in lines))
    assert here.run(yes=True) == 0
    assert capsys.readouterr().out.startswith("Nothing to do")


class TestUsage:
    @pytest.mark.parametrize(
        "arguments",
        [
            ("--live", "relative"),
            ("--live", "/mnt/a", "--remount", "/mnt/a"),
            ("--live", "--fstab"),
            ("--live", "--prune"),
            ("--live", "--follow-symlink", "--dry-run"),
        ],
    )
    def test_what_makes_no_sense_is_wrong_usage(
        self, host: Callable[[str], Host], arguments: tuple[str, ...]
    ) -> None:
        run = host("no-nfs").run("apply", *arguments)
        assert (run.status, run.out) == (2, "")
        assert "Error: " in run.err

    @pytest.mark.parametrize(
        "arguments",
        [("--live", "--dry-run"), ("--dry-run", "--live"), ("--live", "--all", "--dry-run")],
    )
    def test_without_a_mount_point_all_are_meant(
        self, host: Callable[[str], Host], arguments: tuple[str, ...]
    ) -> None:
        run = host("no-nfs").run("apply", *arguments)
        assert run.status == 0
        assert run.out.startswith("Nothing to do")

    def test_a_mount_point_may_follow(self, host: Callable[[str], Host]) -> None:
        here = host("no-nfs")
        for arguments in (("--live", "/mnt/a"), ("--live=/mnt/a",)):
            run = here.run("apply", *arguments, "--dry-run")
            assert run.status == 2
            assert "/mnt/a: no NFS mount is there" in run.err
