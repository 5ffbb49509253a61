"""Tools as children: their output, and no process after their time."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from nfstuned.host.command import Done, run_tool


def test_the_output_of_a_tool_is_returned() -> None:
    assert run_tool(["sh", "-c", "echo one; echo noise >&2"], 30) == Done("one\n", "", "noise\n")


def test_a_failure_has_the_tools_words_in_one_line() -> None:
    done = run_tool(["sh", "-c", "echo half; echo ' first' >&2; echo second >&2; exit 32"], 30)
    assert done == Done("half\n", "first; second; sh ended with status 32", " first\nsecond\n")


def test_who_says_too_much_is_cut_short() -> None:
    done = run_tool(["sh", "-c", "head -c 1000001 /dev/zero"], 30)
    assert (len(done.output), done.problem, done.cut) == (1_000_000, "", True)


def test_a_tool_that_is_missing_is_a_failure() -> None:
    assert run_tool(["/no/such/tool"], 30).problem == "/no/such/tool: No such file or directory"


def test_a_tool_is_not_looked_for_where_a_site_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/local/sbin:/usr/bin:/usr/local:/bin")
    assert run_tool(["sh", "-c", "echo $PATH"], 30) == Done("/usr/bin:/bin\n", "")


def test_a_tool_has_a_session_of_its_own_and_no_input() -> None:
    program = "import os, sys; print(os.getsid(0) == os.getpid(), repr(sys.stdin.read()))"
    assert run_tool([sys.executable, "-c", program], 30).output == "True ''\n"


def test_a_tool_that_takes_too_long_ends_with_its_children(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    started = time.monotonic()
    done = run_tool(["sh", "-c", f"echo trying >&2; sleep 300 & echo $! >{file}; wait"], 0.7)
    assert time.monotonic() - started < 20
    assert (done.problem, done.late) == ("trying; no end within 0.7 s", True)
    assert _ends(int(file.read_text()))


def test_a_child_that_a_tool_leaves_running_is_not_waited_for() -> None:
    started = time.monotonic()
    done = run_tool(["sh", "-c", "sleep 30 & echo $!"], 25)
    assert time.monotonic() - started < 20
    os.kill(int(done.output), 9)
    assert done.problem == ""


def _ends(pid: int) -> bool:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False
