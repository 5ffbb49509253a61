"""Commands over trees of real kernel files."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from nfstuned.cli.app import main
from nfstuned.host.files.write import NewFile
from nfstuned.host.root import Root
from tests.check import hosts
from tests.tree import put

REPOSITORY = Path(__file__).parents[2]
CASE = "debian-13-6.12"
CONFIG = '[[policy]]\nmatch = { server = "10.1.2.0/24" }\nprofile = "azure-netapp-files"\n'
ENTRY = "# mine\n10.1.2.4:/vol1 /mnt/vol1\tnfs vers=4.1,hard 0 0\n"
COMMAND = "opt/nfstuned/bin/nfstuned"
"""An installation by pip, in a virtual environment."""
MOUNT_NFS = b"\x7fELF\0%%s: (linux nfs-utils %s)\n\0conf_init_dir: scandir %%s: %%s\0"
PROGRAM = (
    "import sys; from nfstuned.cli.app import main; from nfstuned.host.root import Root; "
    "sys.exit(main(sys.argv[2:], Root(sys.argv[1])))"
)
"""Python's text that runs a command over a tree."""
Golden = Callable[[Path, str], None]


@dataclass(frozen=True)
class Run:
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
        assert name == "nfstuned.rules.1" or {"time", "host"} <= document.keys()
        return document

    @property
    def actions(self) -> list[dict[str, Any]]:
        return list(self.document["actions"])

    @property
    def action(self) -> dict[str, Any]:
        (only,) = self.actions
        return only


@dataclass(frozen=True)
class Host:
    tree: Path
    capture: pytest.CaptureFixture[str]

    def run(self, *args: str) -> Run:
        self.capture.readouterr()
        status = main(args, Root(str(self.tree)))
        out, err = self.capture.readouterr()
        return Run(status, out, err)

    def read_ahead(self, device: str) -> int:
        """Return a superblock's value: the first line, a file keeps the rest of a longer one."""
        return int((self.tree / f"sys/class/bdi/{device}/read_ahead_kb").read_text().split()[0])

    def set_read_ahead(self, device: str, value: int) -> None:
        (self.tree / f"sys/class/bdi/{device}/read_ahead_kb").write_text(f"{value}\n")

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace text that a file must have."""
        file = self.tree / name
        text = file.read_bytes().decode("utf-8", "surrogateescape")
        assert old in text
        file.write_bytes(text.replace(old, new).encode("utf-8", "surrogateescape"))

    def configure(self, text: str) -> None:
        put(self.tree / "etc/nfstuned/nfstuned.toml", text)

    def install(self, version: bytes) -> None:
        put(self.tree / "usr/sbin/mount.nfs", MOUNT_NFS % version)

    def command(self, *args: str) -> list[str]:
        """Return a command over the tree for a process of its own."""
        return [sys.executable, "-c", PROGRAM, str(self.tree), *args]


MakeHost = Callable[[str], Host]


def furnish(made: Host) -> Host:
    """Give a host a mount.nfs, an fstab with one entry, and a policy for its server."""
    put(made.tree / "proc/sys/kernel/osrelease", "6.12.43+deb13-amd64\n")
    put(made.tree / "etc/fstab", ENTRY)
    made.install(b"2.8.3")
    made.configure(CONFIG)
    return made


@contextmanager
def full_at(write: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the disk full at a write, which is counted from 0, and at no other."""
    calls, real = count(), NewFile.write  # the single place where a disk can be full

    def full(new: NewFile, data: bytes) -> None:
        if next(calls) == write:
            raise OSError(28, "No space left on device", "new")
        real(new, data)

    with monkeypatch.context() as broken:
        broken.setattr(NewFile, "write", full)
        yield


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
