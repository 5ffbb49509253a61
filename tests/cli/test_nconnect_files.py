"""`nconnect fstab` and `nconnect persist`: the endpoint decides, the document of both, a user, and status."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nfstuned.app.change import Host as ChangedHost
from nfstuned.app.change import Way, Wish
from nfstuned.app.nconnect import FstabWay, PersistWay
from nfstuned.cli.nconnect import run_change
from nfstuned.host.root import Root
from nfstuned.model.mounts import PERSISTED
from nfstuned.model.system import Answer, Network
from tests.check.hosts import World
from tests.cli.conftest import CASE, ENTRY, Host, MakeHost, Run, furnish

AZURE = "sa1.file.core.windows.net"
JSON = ("--format", "json")


@dataclass(frozen=True)
class Command:
    """One of the two commands: its options, its Way, and the target in its document."""

    words: tuple[str, ...]
    way: Callable[[ChangedHost], Way[Any]]
    target: dict[str, str]


FSTAB = Command(
    ("fstab", "--yes"),
    lambda host: FstabWay(host, follow=False),
    {"kind": "fstab", "target": "/etc/fstab:2", "mount_point": "/mnt/vol1"},
)
PERSIST = Command(
    ("persist",), lambda host: PersistWay(host, prune=False), {"kind": "persist", "target": "10.1.2.4"}
)
of_both = pytest.mark.parametrize("command", [FSTAB, PERSIST], ids=["fstab", "persist"])


@pytest.fixture
def here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Host:
    return furnish(Host(tmp_path, capsys))


@pytest.mark.parametrize(
    ("answer", "outcome", "words"),
    [
        (Answer(AZURE, ("10.0.0.4",), ("sa1.privatelink.file.core.windows.net",)), "planned", ""),
        (Answer(AZURE, ("52.239.238.8",)), "skipped", "is a public endpoint"),
        (Answer(AZURE, error="NXDOMAIN"), "skipped", "resolves to no address here"),
        (Answer(AZURE, error="no answer within 3 s", final=False), "failed", "no answer within 3 s"),
    ],
)
@of_both
def test_the_name_servers_decide_about_azure_files(
    here: Host, command: Command, answer: Answer, outcome: str, words: str
) -> None:
    (here.tree / "etc/fstab").write_text(f"{AZURE}:/sa1/share /mnt/a nfs vers=4.1 0 0\n")
    told = World(Network(answers=(answer,)))
    status = run_change(Root(str(here.tree)), "json", Wish(dry_run=True), command.way, told)
    action = Run(status, *here.capture.readouterr()).action
    assert (status, action["outcome"], action["new"]) == (int(outcome == "failed"), outcome, 4)
    assert words in action["reason"]


@of_both
def test_json_is_one_document_and_the_difference_is_on_stderr(here: Host, command: Command) -> None:
    difference = here.run("nconnect", *command.words, "--dry-run").out.rpartition(" 0 0\n")
    run = here.run("nconnect", *command.words, *JSON)
    assert (run.status, run.err) == (0, "".join(difference[:2]))
    reason = "azure-netapp-files recommends nconnect=8"
    assert run.action == command.target | {"old": None, "new": 8, "outcome": "done", "reason": reason}
    assert here.run("nconnect", *command.words, *JSON).actions == []


@pytest.mark.usefixtures("as_user")
@of_both
def test_a_user_may_look_and_learns_that_root_may_write(host: MakeHost, command: Command) -> None:
    here = furnish(host("no-nfs"))
    (here.tree / "etc").chmod(0o555)
    assert here.run("nconnect", *command.words, "--dry-run").status == 0
    run = here.run("nconnect", *command.words, *JSON)
    assert (run.status, run.action["outcome"]) == (1, "failed")
    assert run.action["reason"].endswith("Permission denied, so that it is as it was; run it as root")
    assert (here.tree / "etc/fstab").read_text() == ENTRY


def test_status_names_the_drop_in_as_who_asks(host: MakeHost) -> None:
    here = host(CASE)
    here.install(b"2.8.3")
    actions = here.run("nconnect", "persist", *JSON).actions
    done = [(one["target"], one["new"], one["outcome"]) for one in actions]
    assert done == [("10.10.10.10", 4, "done"), (AZURE, 4, "done")]
    rows = {row["mount_point"]: row for row in here.run("status", *JSON).document["mounts"]}
    asked = {point: (row["nconnect_requested"], row["nconnect"]) for point, row in rows.items()}
    assert (asked["/mnt/2"], asked["/mnt/3"]) == ((4, 4), (None, 1))
    line = (here.tree / PERSISTED[1:]).read_text().splitlines().index(f'[ Server "{AZURE}" ]') + 2
    assert rows["/mnt/2"]["nconnect_requested_by"] == f"{PERSISTED}:{line}"
