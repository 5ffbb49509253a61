"""The questions of a check about the world beyond files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nfstuned.app.facts import Scope, examine
from nfstuned.host.network.outside import LiveOutside, Questions
from nfstuned.host.policy import load_policy
from nfstuned.host.root import Root
from nfstuned.model.system import Network
from tests.check import hosts


@dataclass(frozen=True)
class Listener(hosts.World):
    """A world that remembers its questions, and has no answers."""

    asked: list[Questions] = field(default_factory=list)

    def ask(self, questions: Questions, *, offline: bool) -> tuple[Network, tuple[str, ...]]:
        assert not offline
        self.asked.append(questions)
        return Network(), ()

    def pause(self, seconds: float) -> float:
        raise AssertionError(f"nothing is measured for {seconds} s")


def questions(name: str, folder: Path) -> Questions:
    root, world = Root(str(hosts.load(name).build(folder / "host"))), Listener(Network())
    examine(root, load_policy(root), Scope(), world)
    (asked,) = world.asked
    return asked


@pytest.mark.parametrize(
    "line", ["nas:/e /e nfs addr=nas.example.com 0 0", "//nas/e /e cifs guest,ip=nas.example.com 0 0"]
)
def test_a_name_instead_of_an_address_does_not_end_the_check(tmp_path: Path, line: str) -> None:
    folder = hosts.load("clean").build(tmp_path / "host")
    (folder / "etc/fstab").write_text(line + "\n")
    root = Root(str(folder))
    facts = examine(root, load_policy(root), Scope(offline=True), LiveOutside(root))
    assert "/etc/fstab:1" in [target.subject for target in facts.targets]


@pytest.mark.parametrize(
    ("host", "names"),
    [
        ("clean", ("sa1.file.core.windows.net",)),
        ("tls", ()),
        ("tls-in-fstab", ("sa1.file.core.windows.net",)),
    ],
)
def test_the_name_behind_a_tunnel_is_from_a_line(host: str, names: tuple[str, ...], tmp_path: Path) -> None:
    asked = questions(host, tmp_path)
    assert asked.names == names
    assert asked.servers == (("10.10.10.10", 2049),)
    assert asked.addresses == ("10.10.10.10",)


def test_nothing_is_asked_about_a_containers_own_mounts(tmp_path: Path) -> None:
    asked = questions("container-mounts-by-itself", tmp_path)
    assert (asked.names, asked.servers, asked.addresses) == ((), (), ())
