"""tests/cli/usage.txt: commands that end with 2, print nothing on stdout, and name the reason on stderr.

The words after => are in the first line on stderr or the last; the words before ... are in the first. TREE is
a host's folder.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import MakeHost
from tests.tree import put

TABLE = Path(__file__).with_name("usage.txt").read_text()
ROWS = re.findall(r"^nfstuned ?(.*)  =>  (.*)$", TABLE, re.MULTILINE)


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
