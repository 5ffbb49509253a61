"""Commands over trees of real kernel files."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from nfstuned.cli.app import main
from nfstuned.host.root import Root
from tests.check import hosts

REPOSITORY = Path(__file__).parents[2]
GOLDEN = REPOSITORY / "tests/cli/golden"


@dataclass(frozen=True)
class Run:
    """What one command did."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Return stdout, which must be one JSON document that keeps its schema."""
        document: dict[str, Any] = json.loads(self.out)
        name = document["schema"].replace("/", ".")
        schema = json.loads((REPOSITORY / f"docs/schema/{name}.json").read_text())
        jsonschema.validate(document, schema)
        return document


@dataclass(frozen=True)
class Host:
    """A copy of a tree, and the commands over it."""

    tree: Path
    capture: pytest.CaptureFixture[str]

    def run(self, *args: str) -> Run:
        """Run one command."""
        self.capture.readouterr()
        status = main(args, Root(str(self.tree)))
        out, err = self.capture.readouterr()
        return Run(status, out, err)

    def read_ahead(self, device: str) -> int:
        """Return a superblock's value: the first line, a file keeps the rest of a longer one."""
        return int((self.tree / f"sys/class/bdi/{device}/read_ahead_kb").read_text().split()[0])

    def set_read_ahead(self, device: str, value: int) -> None:
        """Write as another program does."""
        (self.tree / f"sys/class/bdi/{device}/read_ahead_kb").write_text(f"{value}\n")

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace text that a file must have."""
        file = self.tree / name
        text = file.read_bytes().decode("utf-8", "surrogateescape")
        assert old in text
        file.write_bytes(text.replace(old, new).encode("utf-8", "surrogateescape"))

    def configure(self, text: str) -> None:
        """Write the administrator's configuration."""
        file = self.tree / "etc/nfstuned/nfstuned.toml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)


@pytest.fixture
def host(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[str], Host]]:
    """Return a maker of hosts by the name of their tree; every user may look at the copies."""
    folder = Path(tempfile.mkdtemp(prefix="nfstuned-test-"))
    folder.chmod(0o755)

    def make(case: str) -> Host:
        return Host(hosts.load(case).build(folder / case), capsys)

    yield make
    for inner in [path for path in folder.rglob("*") if path.is_dir()]:
        inner.chmod(0o755)
    shutil.rmtree(folder)
