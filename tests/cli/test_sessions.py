r"""tests/cli/sessions/*.session: commands over a tree, each with its output, its status and its changes.

    # The promise, in a sentence or two.
    host: clean
    $ nfstuned nconnect fstab --yes | tail -n 1
    ! /etc/fstab:1: a line of the standard error
    a line of the standard output
    status 1
    changed etc/fstab

The tree is of tests/hosts; `image NAME` has nfstuned's unit, `netapp NAME` also two volumes of Azure NetApp
Files; `furnished` and `installed` are those of `build`. Each command runs in the tree's folder: nfstuned in
this process, under an umask that gives others nothing, everything else by sh, which may also filter an
output, with the errors after `2>&1 |`. A document of JSON keeps its schema.

After a command of nfstuned come the names that it made (but for folders of mode 755 that are not empty),
changed or wrote again, and removed (but for those below a removed folder). `changes` lists the same since the
start. TREE is the folder's path. pytest --update-golden writes the outputs: review the difference.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nfstuned.cli import terminal
from tests.check.hosts import load
from tests.cli.baked import make, with_netapp
from tests.cli.conftest import COMMAND, Golden, Host, Run, furnish
from tests.tree import differences, fingerprints, put

FOLDER = Path(__file__).parent / "sessions"
State = dict[str, str]


def changes(before: State, after: State) -> Iterator[str]:
    """Yield a line for each name that is not as before."""
    filled = {str(Path(name).parent) for name in after.keys() - before.keys()}
    for name in differences(before, after):
        above, mode = str(Path(name).parent), after.get(name, "").split(" ")[0]
        if name in before and name in after:
            yield f"changed {name}"
        elif name in after and not (mode == "drwxr-xr-x" and name in filled):
            yield f"made {mode} {name}"
        elif name in before and (above in after or above not in before):
            yield f"removed {name}"


def build(words: str, folder: Path, capture: pytest.CaptureFixture[str]) -> Host:
    kind, _, name = words.rpartition(" ")
    here = Host(folder, capture)
    if name == "furnished":
        furnish(here)
    elif name == "installed":
        put(load("no-nfs").build(folder) / COMMAND, "#!/opt/nfstuned/bin/python\n", 0o755)
    elif kind:
        image = make(name, folder, capture)
        if kind == "netapp":
            with_netapp(image)
    else:
        load(name).build(folder)
    return here


def run(here: Host, command: str) -> Run:
    words, _, pipe = command.partition(" | ")
    both = words.endswith(" 2>&1")
    before = os.umask(0o077)
    try:
        done = here.run(*shlex.split(words.removesuffix(" 2>&1"))[1:])
    finally:
        os.umask(before)
    if done.out and words.endswith("--format json"):
        assert done.document
    if both:
        done = replace(done, out=done.err + done.out, err="")
    return replace(done, out=by_shell(here, pipe, done.out).out) if pipe else done


def by_shell(here: Host, command: str, given: str = "") -> Run:
    """Run a command of the system, which should have no error to report."""
    argv = ["sh", "-c", command]
    done = subprocess.run(argv, cwd=here.tree, input=given, capture_output=True, text=True, check=False)
    assert not done.stderr, f"{command}: {done.stderr}"
    return Run(done.returncode, done.stdout, "")


def lines(here: Host, command: str, start: State) -> Iterator[str]:
    before = fingerprints(here.tree)
    if command == "changes":
        yield from changes(start, before)
        return
    own = command.startswith("nfstuned ")
    done = run(here, command) if own else by_shell(here, command)
    shown = [*(f"! {line}".rstrip() for line in done.err.splitlines()), *done.out.splitlines()]
    yield from (line.replace(str(here.tree), "TREE") for line in shown)
    if done.status:
        yield f"status {done.status}"
    if own:
        yield from changes(before, fingerprints(here.tree))


@pytest.mark.skipif(shutil.which("findmnt") is None, reason="no findmnt")
@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.session")), ids=lambda file: file.stem)
def test_a_session_is_as_its_file_shows(
    file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    golden: Golden,
) -> None:
    head, *commands = re.split(r"^\$ ", file.read_text(), flags=re.MULTILINE)
    here = build(re.findall(r"^host: (.*)$", head, re.MULTILINE)[-1], tmp_path / "tree", capsys)
    monkeypatch.chdir(here.tree)
    monkeypatch.setattr(sys, "argv", [str(here.tree / COMMAND)])
    monkeypatch.setattr(terminal, "host_name", lambda: "HOST")
    monkeypatch.setattr(terminal, "utc", lambda _: "2026-11-20T13:00:00Z")
    start = fingerprints(here.tree)
    text = head
    for command in (one.split("\n")[0] for one in commands):
        text += "".join(f"{line}\n" for line in (f"$ {command}", *lines(here, command, start)))
    golden(file, text)
