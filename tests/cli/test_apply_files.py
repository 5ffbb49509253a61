"""The promises that `apply --fstab` and `apply --persist` have in common: nothing is changed by mistake."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nfstuned.app.change import Host as ChangedHost
from nfstuned.app.change import Way, Wish
from nfstuned.app.nconnect import FstabWay, PersistWay
from nfstuned.cli.apply import run_change
from nfstuned.host.root import Root
from nfstuned.model.mounts import PERSISTED
from nfstuned.model.system import Answer, Network
from tests.check.hosts import World
from tests.cli.conftest import ENTRY, Host, MakeHost, Run, furnish

AZURE = "sa1.file.core.windows.net"


@dataclass(frozen=True)
class Command:
    """One of the two commands: its options, the file that it writes, and its Way."""

    words: tuple[str, ...]
    file: str
    way: Callable[[ChangedHost], Way[Any]]


FSTAB = Command(("--fstab", "--yes"), "/etc/fstab", lambda host: FstabWay(host, follow=False))
PERSIST = Command(("--persist",), PERSISTED, lambda host: PersistWay(host, prune=False))
pytestmark = pytest.mark.parametrize("command", [FSTAB, PERSIST], ids=["fstab", "persist"])


@pytest.fixture
def here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Host:
    return furnish(Host(tmp_path, capsys))


@pytest.mark.parametrize(
    ("answer", "outcome", "words"),
    [
        (Answer(AZURE, ("10.0.0.4",), ("sa1.privatelink.file.core.windows.net",)), "planned", ""),
        (Answer(AZURE, ("52.239.238.8",)), "skipped", "is a public endpoint"),
        (Answer(AZURE, error="NXDOMAIN"), "skipped", "leads to no address here"),
        (Answer(AZURE, error="no answer within 3 s", final=False), "failed", "no answer within 3 s"),
    ],
)
def test_the_name_servers_decide_about_azure_files(
    here: Host, command: Command, answer: Answer, outcome: str, words: str
) -> None:
    (here.tree / "etc/fstab").write_text(f"{AZURE}:/sa1/share /mnt/a nfs vers=4.1 0 0\n")
    told = World(Network(answers=(answer,)))
    status = run_change(Root(str(here.tree)), "json", Wish(dry_run=True), command.way, told)
    action = Run(status, *here.capture.readouterr()).action
    assert (status, action["outcome"], action["new"]) == (int(outcome == "failed"), outcome, 4)
    assert words in action["reason"]


def test_a_file_that_could_not_be_read_does_not_count_as_absent(here: Host, command: Command) -> None:
    (here.tree / "etc/nfsmount.conf").symlink_to("nfsmount.conf")
    before = sorted(path.name for path in (here.tree / "etc").iterdir())
    for more in ((), ("--dry-run",)):
        run = here.run("apply", *command.words, *more, "--format", "json")
        assert (run.status, run.action["outcome"]) == (2, "failed")
        assert run.action["reason"] == "it may depend on /etc/nfsmount.conf, which could not be read"
        assert "/etc/nfsmount.conf: Too many levels of symbolic links\n" in run.err
    assert (here.tree / "etc/fstab").read_text() == ENTRY
    assert sorted(path.name for path in (here.tree / "etc").iterdir()) == before


def test_anything_but_a_file_cannot_be_tried(here: Host, command: Command) -> None:
    file = here.tree / command.file[1:]
    file.unlink(missing_ok=True)
    file.parent.mkdir(exist_ok=True)
    os.mkfifo(file)
    run = here.run("apply", *command.words)
    assert (run.status, run.out) == (2, "")
    assert run.err == f"{command.file}: a fifo where a file should be: not read\n"


def test_an_invalid_configuration_is_no_try(here: Host, command: Command) -> None:
    here.configure("[")
    run = here.run("apply", *command.words)
    assert (run.status, run.out, (here.tree / "etc/fstab").read_text()) == (2, "", ENTRY)
    assert not (here.tree / PERSISTED[1:]).exists()


@pytest.mark.usefixtures("as_user")
def test_a_user_may_look_and_learns_that_root_may_write(host: MakeHost, command: Command) -> None:
    here = furnish(host("no-nfs"))
    (here.tree / "etc").chmod(0o555)
    assert here.run("apply", *command.words, "--dry-run").status == 0
    run = here.run("apply", *command.words, "--format", "json")
    assert (run.status, run.action["outcome"]) == (1, "failed")
    assert run.action["reason"].endswith("Permission denied, so that it is as it was; run it as root")
    assert (here.tree / "etc/fstab").read_text() == ENTRY
