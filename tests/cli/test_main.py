"""Streams, exit codes and help of the command as a whole."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from nfstuned import __version__
from nfstuned.host.root import Root
from tests.cli.conftest import REPOSITORY, MakeHost
from tests.tree import put

COMMANDS = (
    *(
        "status",
        "why",
        "wait",
        "apply",
        "undo",
        "check",
        "explain",
        "rules",
        "samples",
        "top",
        "report",
        "bake",
    ),
    *("nconnect fstab", "nconnect persist", "nconnect remount"),
    *("install-files", "daemon", "config show", "config check", "config schema", "completion"),
)


def python(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )


def test_version(host: MakeHost) -> None:
    run = host("no-nfs").run("--version")
    assert (run.status, run.out) == (0, f"nfstuned {__version__}\n")


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example_and_the_exit_status(command: str, flag: str, host: MakeHost) -> None:
    run = host("no-nfs").run(*command.split(), flag)
    assert (run.status, run.err) == (0, "")
    assert "Examples:\n" in run.out
    assert "Exit status:\n    0  " in run.out
    assert max(len(line) for line in run.out.splitlines()) <= 100


def test_the_help_names_every_command(host: MakeHost) -> None:
    text = host("no-nfs").run("--help").out
    assert [one for one in COMMANDS if f"\n  {one.split()[0]} " not in text] == []
    assert "..." not in text.partition("Commands:")[2]


def test_python_m_is_the_same_command() -> None:
    run = python("-m", "nfstuned", "--version")
    assert (run.returncode, run.stdout) == (0, f"nfstuned {__version__}\n")
    assert "Usage: nfstuned status" in python("-m", "nfstuned", "status", "--nonsense").stderr


def test_it_works_on_the_host_that_it_runs_on() -> None:
    assert python("-m", "nfstuned", "config", "check").returncode in {0, 2}
    assert python("-m", "nfstuned", "status").stdout


def shell(script: str) -> tuple[int, str]:
    """Run a command line with nfstuned in it; return its status and what it says on stderr."""
    text = f"set -o pipefail; {script.replace('nfstuned', f'{sys.executable} -m nfstuned')}"
    run = subprocess.run(["bash", "-c", text], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return run.returncode, run.stderr


def test_a_reader_that_leaves_early_is_no_accident_but_did_not_get_a_verdict() -> None:
    assert shell("(nfstuned config schema || exit 3) | head -1 >/dev/null") == (0, "")
    assert shell("nfstuned check --offline | true") == (2, "")


@pytest.mark.parametrize("command", ["check --offline", "--help"])
@pytest.mark.parametrize(
    ("redirection", "said"),
    [
        (">/dev/full", "nfstuned: No space left on device\n"),
        (">&-", "nfstuned: standard output is closed\n"),
        ("2>&- >/dev/full", ""),
    ],
)
def test_output_that_cannot_be_written_is_one_line_and_2(command: str, redirection: str, said: str) -> None:
    assert shell(f"nfstuned {command} {redirection}") == (2, said)


def test_a_mistake_of_its_own_is_one_line_and_2(host: MakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    def confuse(*_: object) -> None:
        raise ValueError("confused\nand lost")

    monkeypatch.setattr(Root, "names", confuse)
    run = host("no-nfs").run("status")
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
    assert run.err.startswith("nfstuned: ValueError: confused\\nand lost (")
    assert "test_main.py:" in run.err


def test_a_host_without_a_kernel_release_is_reported_in_one_line(host: MakeHost) -> None:
    here = host("no-nfs")
    (here.tree / "proc/sys/kernel/osrelease").unlink()
    run = here.run("status")
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("/proc/sys/kernel/osrelease:1: ")


@pytest.mark.parametrize(
    ("words", "needless"),
    [
        ([], ["rich", "pydantic", "psutil", "pyroute2", "pyudev", "asyncio"]),
        (
            ["check", "--root", "ROOT"],
            ["socket", "nfstuned.host.network.names", "nfstuned.core.samples.rates"],
        ),
        (["explain", "NFS101"], ["rich"]),
    ],
)
def test_no_command_loads_needless_modules(words: list[str], needless: list[str], tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    words = [word.replace("ROOT", str(tmp_path)) for word in words]
    run = f"from nfstuned.cli.app import main; main({words})" if words else "import nfstuned.cli"
    done = python("-c", f"import sys; {run}; print([m for m in {needless} if m in sys.modules])")
    assert done.stdout.splitlines()[-1] == "[]"


EARLY = """
import os, signal, sys
where = sys.argv.pop(1)
class Early:
    def find_spec(self, name, *_):
        if name == where:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Early())
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
from nfstuned.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("module", "args"),
    [
        ("nfstuned.cli.app", ["status"]),
        ("click", ["status"]),
        ("nfstuned.cli.check", ["check"]),
        ("nfstuned.daemon.loop", ["daemon"]),
        ("nfstuned.daemon.mask", ["udev", "mask"]),
    ],
)
def test_ctrl_c_while_modules_are_loaded_is_130_and_no_traceback(module: str, args: list[str]) -> None:
    done = python("-c", EARLY, module, *args)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


USAGE = Path(__file__).with_name("usage.txt").read_text()
ROWS = re.findall(r"^nfstuned ?(.*)  =>  (.*)$", USAGE, re.MULTILINE)
"""Commands that end with 2, print nothing on stdout, and name the reason on stderr: the words after => are in
its first line or the last, the words before ... in the first. TREE is a host's folder."""


@pytest.mark.parametrize(("command", "words"), ROWS)
def test_a_command_that_cannot_be_tried_names_the_reason(command: str, words: str, host: MakeHost) -> None:
    here = host("clean")
    put(here.tree / "new", "nas:/x /mnt nfs vers=4.1,_netdev,nofail 0 0\n")
    tree = str(here.tree)
    arguments = [word.replace("TREE", tree).replace(r"\n", "\n") for word in shlex.split(command)]
    run = here.run(*arguments)
    lines, (first, _, last) = run.err.splitlines(), words.replace("TREE", tree).rpartition(" ... ")
    assert (run.status, run.out) == (2, "")
    assert lines[0].startswith(("Usage: nfstuned", last))
    assert first in lines[0]
    assert last in lines[0] or last in lines[-1]
