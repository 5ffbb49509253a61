"""A read that fails, each of a command's in turn: the fault is told, and the exit status says so."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import re
import shutil
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import pytest

from nfstuned.cli.app import main
from nfstuned.host.root import Root
from tests.check import hosts
from tests.host.faults import Fault, FaultyBare, FaultyImage, FaultyRoot

BROKEN = 2
TIME = re.compile(r'"time": "[^"]*"', re.ASCII)
"""When a document was made, which no fault decides."""
COMMANDS = (
    ("status", "--format", "json"),
    ("apply", "--dry-run"),
    ("check", "--offline", "--format", "json"),
    ("config", "show"),
)
OF_AN_IMAGE = ("check", "--format", "json", "--root")
OF_A_BAKE = ("bake", "--dry-run", "--format", "json", "--root")
TREES = ("azure-scenario-2", "autofs-direct", "tls")
"""Each kind of fault in them, and the first in others: kinds differ by the reader, and trees by the files."""
OTHERS = ("aznfs-raises", "nconnect-first-mount-v3", "netapp-slots-set")
IMAGE = "image-debian-13"
FAULTS = {
    "EIO": Fault(errno.EIO),
    "ELOOP": Fault(errno.ELOOP),
    "EIO-of-read": Fault(errno.EIO, late=True),
}
of_each_kind = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())


class Stream(io.StringIO):
    """A standard stream that a command may make fit, and close when it gives up."""

    def reconfigure(self, *, errors: str) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Stay readable."""


def run(root: Root, words: tuple[str, ...]) -> tuple[int, str, str]:
    out, err = Stream(), Stream()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(words), root)
    return status, TIME.sub('"time": null', out.getvalue()), err.getvalue()


@dataclass(frozen=True)
class Stage:
    tree: str
    words: tuple[str, ...]
    patch: pytest.MonkeyPatch

    def run(self, fault: Fault) -> tuple[int, str, str]:
        if self.words not in {OF_AN_IMAGE, OF_A_BAKE}:
            return run(FaultyRoot(self.tree, fault), self.words)
        with self.patch.context() as patch:
            patch.setattr("nfstuned.cli.check.ImageRoot", lambda folder: FaultyImage(folder, fault))
            patch.setattr(
                "nfstuned.app.image.BareRoot", lambda folder, hidden: FaultyBare(folder, hidden, fault)
            )
            return run(Root(self.tree), (*self.words, self.tree))


def judge(stage: Stage, kind: Fault, every: int = 1) -> None:
    """Let each read fail in turn: the result is the same, or it is told what failed, and the status is 2."""
    whole = replace(kind)
    status, out, _ = stage.run(whole)
    told, same, silent = 0, 0, []
    for number in range(0, whole.asked, every):
        fault = replace(kind, at=number)
        ended, shown, said = stage.run(fault)
        coded = "exit_code" not in out or json.loads(shown or '{"exit_code": 2}')["exit_code"] == ended
        if ended == BROKEN and coded and fault.failed in said:
            told += 1
        elif (ended, shown) == (status, out):
            same += 1
        else:
            silent.append((fault.failed, ended, said))
    print(f"{told + same + len(silent)} faults: {told} told, {same} the same, {len(silent)} silent")
    assert told > 0 or kind.late
    assert silent == []


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("name", "kind"), [*product(TREES, FAULTS), *((name, "EIO") for name in OTHERS)], ids=str
)
def test_no_read_fails_in_silence(
    name: str, kind: str, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge(Stage(str(hosts.load(name).build(tmp_path / name)), words, monkeypatch), FAULTS[kind])


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS[:-1], ids=" ".join)
@of_each_kind
def test_no_read_of_another_namespace_fails_in_silence(
    fault: Fault, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container: a process whose mounts and network are its own."""
    tree = hosts.load("azure-scenario-2").build(tmp_path / "host")
    shutil.copytree(tree / "proc/1", tree / "proc/4711")
    table = tree / "proc/4711/mountinfo"
    table.write_text("9" + table.read_text().replace("\n", "\n9").removesuffix("9"))
    judge(Stage(str(tree), words, monkeypatch), fault)


@pytest.mark.slow
@pytest.mark.parametrize("words", [OF_AN_IMAGE, OF_A_BAKE], ids=["check", "bake"])
@of_each_kind
def test_no_read_of_an_image_fails_in_silence(
    fault: Fault, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge(Stage(str(hosts.load(IMAGE).build(tmp_path / IMAGE)), words, monkeypatch), fault)


@pytest.mark.parametrize(
    ("name", "words"),
    [("azure-scenario-2", COMMANDS[2]), (IMAGE, OF_AN_IMAGE), (IMAGE, OF_A_BAKE)],
    ids=["host", "image", "bake"],
)
def test_no_tenth_read_fails_in_silence(
    name: str, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge(Stage(str(hosts.load(name).build(tmp_path / name)), words, monkeypatch), FAULTS["EIO"], every=10)


def test_an_unreadable_configuration_is_not_a_host_without_one(tmp_path: Path) -> None:
    tree = str(hosts.load("clean").build(tmp_path / "clean"))
    status, out, err = run(FaultyRoot(tree, Fault(errno.EIO, 0)), ("config", "check"))
    assert (status, out) == (BROKEN, "")
    assert "etc/nfstuned/nfstuned.toml: cannot be read: Input/output error\n" in err


def test_apply_sets_nothing_where_what_decides_could_not_be_read(tmp_path: Path) -> None:
    tree = hosts.load("azure-scenario-2").build(tmp_path / "low")
    whole = Fault(errno.EIO)
    run(FaultyRoot(str(tree), whole), ("apply", "--dry-run"))
    files = {path: path.read_text() for path in tree.glob("sys/class/bdi/*/read_ahead_kb")}
    refused = 0
    for number in range(whole.asked):
        fault = Fault(errno.EIO, number)
        status, out, err = run(FaultyRoot(str(tree), fault), ("apply",))
        if fault.failed.startswith(("proc/1/", "sys/class/bdi")):
            assert status == BROKEN, fault.failed
            assert fault.failed in out + err
            refused += 1
        for path, text in files.items():
            path.write_text(text)
    assert refused > 0
