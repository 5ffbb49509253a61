"""`nfstuned report` over a tree of kernel files, a file of samples, and a journal of journald's own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from nfstuned.cli.report import ReportOrder, write_report
from nfstuned.core.samples.sample import to_line
from nfstuned.host.root import Root
from tests.check import hosts
from tests.cli.conftest import REPOSITORY, MakeHost
from tests.core.pages import shown
from tests.host.journald import Told, record
from tests.parse.test_samples import SAMPLE
from tests.tree import put

TREE = "read-ahead-128"
NOW = time.time()
OLD, NEW = (replace(SAMPLE, time=NOW - ago, mount_points=("/mnt/share",)) for ago in (3 * 86400, 600))
OTHER = replace(NEW, mount_points=(os.fsdecode(b"/srv/\xff<b>"),), source="other:/x")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An Azure file share on a kernel that nobody has tuned."""
    return hosts.load(TREE).build(tmp_path / "host")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "samples.jsonl"
    found.write_bytes(to_line(OLD) + to_line(NEW) + to_line(OTHER))
    return found


def order(**more: object) -> ReportOrder:
    return replace(ReportOrder(None, None, None, None, offline=False, samples_only=False), **more)  # type: ignore[arg-type]


def written(tree: Path, asked: ReportOrder) -> tuple[int, str]:
    output = tree.parent / "page.html"
    status = write_report(
        Root(str(tree)), replace(asked, output=str(output)), hosts.World(hosts.load(TREE).network)
    )
    return status, shown(output.read_text())


@pytest.mark.parametrize(
    ("more", "present", "absent"),
    [
        ({}, ("NFS mounts in FILE", "/srv/\\377<b>"), "NFS101"),
        ({"since": "1h ago"}, ("1 sample, in use for 60 s",), "NFS101"),
        ({"mount": "/mnt/share"}, ("2 samples, in use for 2 min",), "/srv/"),
    ],
)
def test_a_file_of_another_host_is_shown_and_this_host_is_not(
    tree: Path, file: Path, more: dict[str, str], present: tuple[str, ...], absent: str
) -> None:
    status, page = written(tree, order(file=str(file), samples_only=True, **more))
    assert (status, absent in page) == (0, False)
    assert all(words.replace("FILE", str(file)) in page for words in present)
    assert page.count("Not checked: the page has samples only (--samples-only).") == 2


def test_the_page_has_the_hosts_findings(tree: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, page = written(tree, order(file=str(file)))
    assert status == 1  # there is no journal, which the page says
    assert "NFS101" in page
    assert "read-ahead is 128 KiB and the profile azure-files asks for 15360 KiB" in page
    assert "Not known: " in page
    assert "the service's changes are not on the page: " in capsys.readouterr().err


def test_damaged_lines_are_on_the_page_and_make_the_status_1(tree: Path, file: Path) -> None:
    file.write_bytes(to_line(NEW) + b"{\n{\n")
    status, page = written(tree, order(file=str(file), samples_only=True))
    assert (status, "2 damaged samples could not be read." in page) == (1, True)


def test_a_bad_file_costs_only_findings(tree: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tree / "etc/nfstuned/nfstuned.toml", "nonsense = 1\n")
    status, page = written(tree, order(file=str(file)))
    assert (status, "/mnt/share" in page, "nonsense" in capsys.readouterr().err) == (1, True, True)
    assert "Not checked: the configuration is invalid, see nfstuned config check." in page


class TestCommand:
    def test_a_page_goes_to_stdout_as_bytes(self, file: Path) -> None:
        command = [sys.executable, "-m", "nfstuned", "report", "--file", str(file), "--samples-only"]
        environ = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
        done = subprocess.run(command, cwd=REPOSITORY, env=environ, capture_output=True, check=True)
        assert "/srv/\\377<b>" in shown(done.stdout.decode("utf-8"))
        assert done.stderr == b""

    def test_a_file_without_samples_has_its_page_and_a_word(self, host: MakeHost, tmp_path: Path) -> None:
        (tmp_path / "empty.jsonl").touch()
        run = host("no-nfs").run("report", "--file", str(tmp_path / "empty.jsonl"), "--samples-only")
        assert run.status == 0
        assert "There are no samples of this time" in shown(run.out)
        assert run.err == "no samples: nothing was in use, or the service did not run\n"

    def test_a_terminal_gets_no_page(self, host: MakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
        here = host("no-nfs")
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        run = here.run("report")
        assert (run.status, run.out, "give --output FILE" in run.err) == (2, "", True)


class TestJournal:
    def test_samples_and_what_the_service_did_come_from_the_journal(self, tree: Path) -> None:
        fields: dict[str, object] = {
            "device": "0:43",
            "mount_point": "/mnt/share",
            "old_kb": 128,
            "new_kb": 15360,
        }
        told: list[Told] = [
            ("STARTED", "nfstuned 1", {"version": "1"}),
            ("READ_AHEAD_SET", "/mnt/share: read-ahead 128 -> 15360 KiB", fields),
            ("UNREADABLE", "of no interest", {"file": "/x"}),
        ]
        record(tree / "var/log/journal", [NEW, OTHER], told=told)
        status, page = written(tree, order())
        assert status == 0
        assert "nfstuned 1" in page
        # Once as a row of the table, then as a mark of three charts, the first of them in two widths.
        assert page.count("/mnt/share: read-ahead 128 -> 15360 KiB 128 -> 15360 KiB") == 4
        assert "of no interest" not in page
        assert "1 sample, in use for 60 s" in page
