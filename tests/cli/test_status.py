"""`nfstuned status` over trees of real kernel files."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import GOLDEN, REPOSITORY, Host

MakeHost = Callable[[str], Host]
CASES = ("debian-13-5.10", "debian-13-6.12", "no-nfs")


def mount(document: dict[str, Any], point: str) -> dict[str, Any]:
    (found,) = [row for row in document["mounts"] if row["mount_point"] == point]
    return dict(found)


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("case", CASES)
def test_the_output_is_the_golden_one(
    case: str, form: str, host: MakeHost, golden: Callable[[Path, str], None]
) -> None:
    run = host(case).run("status", "--format", form)
    golden(GOLDEN / case / f"status.{form.replace('text', 'txt')}", run.out)
    assert (run.status, run.err) == (0, "")


@pytest.mark.parametrize("case", CASES)
def test_json_keeps_its_schema(case: str, host: MakeHost) -> None:
    assert host(case).run("status", "--format", "json").document["schema"] == "nfstuned.status/1"


def test_without_nfs_it_says_so(host: MakeHost) -> None:
    run = host("no-nfs").run("status")
    assert (run.status, run.out, run.err) == (0, "No NFS mounts.\n", "")


def test_an_unreadable_line_is_named_and_the_other_mounts_are_shown(host: MakeHost) -> None:
    here = host("debian-13-6.12")
    here.edit("proc/1/mountinfo", "59 27 0:45 ", "59 27 0-45 ")
    run = here.run("status", "--format", "json")
    assert run.status == 0
    assert re.fullmatch(r"/proc/1/mountinfo:\d+: .*0-45.*\n", run.err)
    points = [row["mount_point"] for row in run.document["mounts"]]
    assert "/mnt/1" not in points
    assert len(points) == 8


def test_an_invalid_configuration_costs_only_the_targets(host: MakeHost) -> None:
    here = host("debian-13-6.12")
    here.configure("[nconnect]\nmode = 7\n[deamon]\n")
    run = here.run("status", "--format", "json")
    assert run.status == 2
    assert len([line for line in run.err.splitlines() if "nfstuned.toml" in line]) == 2
    assert "invalid" in run.err
    row = mount(run.document, "/mnt/2")
    assert (row["provider"], row["read_ahead_kb"], row["nconnect"]) == ("azure-files", 128, 4)
    assert (row["profile"], row["read_ahead_target_kb"], row["nconnect_target"]) == (None, None, None)


def test_a_request_that_the_kernel_ignored_is_shown(host: MakeHost) -> None:
    here = host("debian-13-6.12")
    here.edit("run/mount/utab", "vers=3,nolock", "vers=3,nolock,nconnect=8")
    row = mount(here.run("status", "--format", "json").document, "/mnt/1")
    assert (row["nconnect_requested"], row["nconnect"], row["connections"]) == (8, 1, 1)
    assert "8/1/- ignored" in here.run("status").out


def test_fstab_has_the_request_of_a_mount_that_utab_does_not_know(host: MakeHost) -> None:
    here = host("debian-13-6.12")
    (here.tree / "run/mount/utab").unlink()
    (here.tree / "etc/fstab").write_text("sa1.file.core.windows.net:/a/ /mnt/2/ nfs4 nconnect=16 0 0\n")
    row = mount(here.run("status", "--format", "json").document, "/mnt/2")
    assert row["nconnect_requested"] == 16


def test_a_mount_without_a_stanza_of_its_own_has_the_connections_of_its_superblock(host: MakeHost) -> None:
    here = host("debian-13-6.12")
    here.edit("proc/1/mountstats", "mounted on /mnt/bind with", "mounted on /mnt/elsewhere with")
    row = mount(here.run("status", "--format", "json").document, "/mnt/bind")
    assert row["connections"] == 4


def test_without_mountstats_the_connections_are_not_known(host: MakeHost) -> None:
    here = host("debian-13-6.12")
    (here.tree / "proc/1/mountstats").unlink()
    run = here.run("status", "--format", "json")
    assert {row["connections"] for row in run.document["mounts"]} == {None}


def test_where_a_connections_line_is_damaged_they_are_not_known(host: MakeHost) -> None:
    here = host("debian-13-6.12")
    here.edit("proc/1/mountstats", "xprt:\ttcp", "xprt:\ttcp x")
    run = here.run("status", "--format", "json")
    assert {row["connections"] for row in run.document["mounts"]} == {None}


def test_names_cannot_play_with_the_terminal(host: MakeHost) -> None:
    here = host("debian-13-6.12")
    here.edit("proc/1/mountinfo", " /mnt/1 ", " /mnt/\\033[31m\\012x\udcff[bold] ")
    run = here.run("status")
    assert "/mnt/\\x1b[31m\\nx\\xff[bold] " in run.out
    assert "\x1b" not in run.out


def test_a_name_that_is_not_utf8_survives_in_json(host: MakeHost) -> None:
    here = host("debian-13-6.12")
    here.edit("proc/1/mountinfo", " /mnt/1 ", " /mnt/caf\udce9 ")
    points = [row["mount_point"] for row in here.run("status", "--format", "json").document["mounts"]]
    assert os.fsencode(points[-1]) == b"/mnt/with space"
    assert b"/mnt/caf\xe9" in [os.fsencode(point) for point in points]


def test_a_lazily_unmounted_file_system_is_noted_and_is_no_mount(host: MakeHost) -> None:
    here = host("debian-13-6.12")
    mountinfo = here.tree / "proc/1/mountinfo"
    lines = mountinfo.read_text().splitlines(keepends=True)
    mountinfo.write_text("".join(line for line in lines if " 0:45 " not in line))
    run = here.run("status")
    assert "/mnt/1" not in run.out
    assert "1 file system without a visible mount: 0:45" in run.out


def test_a_mount_of_another_mount_namespace_is_shown(host: MakeHost) -> None:
    here = host("debian-13-6.12")
    mountinfo = (here.tree / "proc/1/mountinfo").read_text()
    elsewhere = here.tree / "proc/4711/mountinfo"
    elsewhere.parent.mkdir()
    (line,) = [line for line in mountinfo.splitlines() if " /mnt/1 " in line]
    elsewhere.write_text(line.replace("59 27", "900 890").replace("/mnt/1", "/private") + "\n")
    row = mount(here.run("status", "--format", "json").document, "/private")
    assert (row["device"], row["read_ahead_kb"], row["connections"]) == ("0:45", 128, 1)


def test_after_undo_it_says_undone(host: MakeHost) -> None:
    here = host("debian-13-6.12")
    here.run("apply")
    here.run("undo")
    run = here.run("status")
    assert "128/15360 undone" in run.out
    assert "9 mounts undone by the administrator" in run.out


@pytest.mark.usefixtures("as_user")
def test_a_file_that_a_user_may_not_read_is_named_once(host: MakeHost) -> None:
    here = host("debian-13-6.12")
    (here.tree / "proc/1/mountstats").chmod(0)
    run = here.run("status", "--format", "json")
    assert run.status == 0
    assert run.err == "/proc/1/mountstats: permission denied; root can read it\n"
    assert mount(run.document, "/mnt/2")["read_ahead_kb"] == 128


def on_a_terminal(tree: Path, columns: int, **environment: str) -> str:
    """Return the output on a terminal of that width."""
    code = (
        "import sys; from nfstuned.cli.app import main; from nfstuned.host.root import Root; "
        f"sys.exit(main(['status'], Root({str(tree)!r})))"
    )
    ours, theirs = pty.openpty()
    environ = {"PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": str(columns), "LC_ALL": "C.UTF-8"}
    subprocess.run(
        [sys.executable, "-c", code], stdout=theirs, env=environ | environment, cwd=REPOSITORY, check=True
    )
    os.close(theirs)
    text = b""
    try:
        while chunk := os.read(ours, 65536):
            text += chunk
    except OSError:  # the other side is closed and all is read
        pass
    os.close(ours)
    return text.decode()


def test_a_terminal_gets_colour(host: MakeHost) -> None:
    assert "\x1b[33mlow\x1b[0m" in on_a_terminal(host("debian-13-6.12").tree, 80)


def test_with_no_color_a_terminal_gets_the_same_words_without(host: MakeHost) -> None:
    text = on_a_terminal(host("debian-13-6.12").tree, 80, NO_COLOR="1")
    assert "\x1b" not in text
    assert " low" in text


def test_eighty_columns_are_enough(host: MakeHost) -> None:
    table = on_a_terminal(host("debian-13-6.12").tree, 80, NO_COLOR="1").split("\r\n")[:10]
    assert max(map(len, table)) <= 80
    assert "sa1.fil....net:/a" in "".join(table)


def test_a_pipe_gets_whole_names(host: MakeHost) -> None:
    assert "sa1.file.core.windows.net:/a/cross" in host("debian-13-6.12").run("status").out
