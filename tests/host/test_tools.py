"""Tools as children, and no process after their time; reasons of failed units; findmnt, asked for real."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from nfstuned.host import tools
from nfstuned.host.tools import ToolResult, new_errors, run_tool
from nfstuned.model.mounts import UnitState
from tests.tree import put


@pytest.mark.parametrize(
    ("script", "done"),
    [
        ("echo one; echo noise >&2", ToolResult("one\n", "", "noise\n")),
        (
            "echo half; echo ' first' >&2; echo second >&2; exit 32",
            ToolResult("half\n", "first; second; sh ended with status 32", " first\nsecond\n"),
        ),
        ("echo $PATH", ToolResult("/usr/bin:/bin\n", "")),  # without the folders of a site's own programs
    ],
)
def test_tools_give_text_or_one_line(script: str, done: ToolResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/local/sbin:/usr/bin:/usr/local:/bin")
    assert run_tool(["sh", "-c", script], 30) == done


def test_who_says_too_much_is_cut_short() -> None:
    done = run_tool(["sh", "-c", "head -c 1000001 /dev/zero"], 30)
    assert (len(done.output), done.problem, done.cut) == (1_000_000, "", True)


def test_a_tool_that_is_missing_is_a_failure() -> None:
    assert run_tool(["/no/such/tool"], 30).problem == "/no/such/tool: No such file or directory"


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


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the child is left behind
def test_a_child_that_does_not_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill does not end it while it waits in the kernel for a server."""
    left: list[int] = []
    monkeypatch.setattr(tools, "GRACE_S", 0.1)
    with monkeypatch.context() as patched:
        patched.setattr(os, "killpg", lambda pid, _: left.append(pid))
        done = run_tool(["sleep", "30"], 0.1)
    os.killpg(left[0], signal.SIGKILL)
    assert done.problem == "no end within 0.1 s, and it cannot be killed: it waits in the kernel"
    assert done.late


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


SMB = """\
mount error(13): Permission denied
Refer to the mount.cifs(8) manual page (e.g. man mount.cifs) and kernel log messages (dmesg)
"""
Asked = list[tuple[Sequence[str], float]]
Says = Callable[..., Asked]
FAILED = UnitState(loaded=True, active="failed", invocation="5c0f")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Says:
    """Return what lets the journal say a text, each time after so many seconds, and what it was asked."""

    def answer(text: str, seconds: float = 0.0) -> Asked:
        calls: Asked = []
        clock = [0.0]

        def run(argv: Sequence[str], limit_s: float) -> ToolResult:
            calls.append((argv, limit_s))
            clock[0] += seconds
            return ToolResult(text, "")

        monkeypatch.setattr(tools, "run_tool", run)
        monkeypatch.setattr(time, "monotonic", lambda: clock[0])
        return calls

    return answer


def test_the_reason_is_the_last_line_that_says_one(asked: Says) -> None:
    for text, said in ((SMB, "mount error(13): Permission denied"), ("Refer to the x\n", ""), ("", "")):
        asked(text)
        assert tools.with_failure_reasons({"a.mount": FAILED})["a.mount"].failure == said


def test_it_is_of_the_last_start_or_else_of_this_boot(asked: Says) -> None:
    calls = asked("x\n")
    tools.with_failure_reasons({"a.mount": FAILED, "b.mount": UnitState(active="failed")})
    assert [argv[-2:] for argv, _ in calls] == [
        ["_SYSTEMD_INVOCATION_ID=5c0f", "_SYSTEMD_UNIT=a.mount"],
        ["--boot", "_SYSTEMD_UNIT=b.mount"],
    ]


def test_what_did_not_fail_is_not_asked_for_and_of_very_many_the_last_are_not(asked: Says) -> None:
    calls = asked("x\n", 3.0)
    states = {f"{number}.mount": FAILED for number in range(100)} | {"b.mount": UnitState(active="inactive")}
    spoken = tools.with_failure_reasons(states)
    assert spoken.keys() == states.keys()
    assert [state.failure for state in spoken.values()] == ["x"] * 7 + [""] * 94
    assert [limit_s for _, limit_s in calls] == [10.0, 10.0, 10.0, 10.0, 8.0, 5.0, 2.0]


needs_findmnt = pytest.mark.skipif(shutil.which("findmnt") is None, reason="no findmnt")
ENTRY = "srv:/x /nowhere/at/all nfs {} 0 0\n"


def write(folder: Path, name: str, text: str) -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


@needs_findmnt
def test_only_errors_that_were_not_there_before_count(tmp_path: Path) -> None:
    old = write(tmp_path, "old", ENTRY.format("defaults") + "what is this\n")
    new = write(tmp_path, "new", ENTRY.format("defaults,nconnect=4") + "what is this\n")
    assert new_errors(old, new) == ""
    new = write(tmp_path, "new", ENTRY.format("defaults 0 x y") + "what is this\n")
    assert new_errors(old, new) == "findmnt --verify refuses the new text: parse error at line 1"


@needs_findmnt
def test_without_findmnt_there_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    file = write(tmp_path, "old", "")
    assert "not installed" in new_errors(file, file)


@needs_findmnt
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exec sleep 60", "no answer within 0.2 s"),
        ("echo \"findmnt: unrecognized option '--verify'\" >&2; exit 1", "unrecognized option"),
        ("exit 3", "findmnt ended with status 3"),
        ("head -c 1000001 /dev/zero", "prints too much"),
    ],
)
def test_a_findmnt_that_does_not_do_its_work_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    stand_in(tmp_path, monkeypatch, script)
    file = write(tmp_path, "old", "")
    assert said in new_errors(file, file, 0.2 if "sleep" in script else 10.0)


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put another findmnt before that of the system."""
    fake = folder / "findmnt"
    put(fake, f"#!/bin/sh\n{script}\n", 0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
