"""The pages' transcripts: each block below `<!-- host: NAME -->` is a run over that tree of tests/hosts.

Its commands begin with a dollar sign: `nfstuned` runs in this process, on a terminal with 100 columns, also
after `sudo`; a pipe gives it a text, or filters its output. The text of `cat FILE` is made the file.
pytest --update-golden writes the outputs into the page: review the difference.
"""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.check.hosts import World, load
from tests.cli.conftest import REPOSITORY, Golden, Host
from tests.tree import put

BLOCK = re.compile(
    r"^(?P<head><!-- host: (?P<host>\S+) -->\n```\n)(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
PAGES = [
    page
    for page in (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md")))
    if BLOCK.search(page.read_text())
]
COMMAND = re.compile(
    r"(?:(?P<given>printf .*) \| )?(?:sudo )?nfstuned (?P<words>[^|]*)(?: \| (?P<filter>.*))?$"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_transcripts_of_a_page_are_runs(
    page: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    golden: Golden,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    text = page.read_text()
    for number, block in enumerate(BLOCK.finditer(text)):
        case = load(block["host"])
        here = Host(case.build(tmp_path / str(number)), capsys)
        world = World(case.network)
        monkeypatch.setattr("nfstuned.cli.check.live_outside", lambda _root, world=world: world)
        monkeypatch.chdir(here.tree)
        body = "".join(f"{line}\n" for line in _lines(block["body"], here, monkeypatch))
        text = text.replace(block[0], f"{block['head']}{body}```")
    golden(page, text)


def _lines(body: str, here: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the lines of a block with the outputs of a run."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield f"$ {command}"
        if command.startswith("cat "):
            put(here.tree / command.removeprefix("cat "), shown)
            yield from shown.splitlines()
            continue
        found = COMMAND.match(command)
        assert found, command
        given = _shell(found["given"], "") if found["given"] else ""
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(given.encode())))
        done = here.run(*shlex.split(found["words"]))
        out = done.err + done.out
        yield from (_shell(found["filter"], out) if found["filter"] else out).splitlines()


def _shell(command: str, given: str) -> str:
    return subprocess.run(
        ["sh", "-c", command], input=given, capture_output=True, text=True, check=True
    ).stdout
