"""The text of NFS411: the programs that wait, and the kernel's messages about the server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nfstuned.app.facts import Scope, examine
from nfstuned.core.rules.nfs4_endpoint import stalled
from nfstuned.host.config import builtin_policy
from nfstuned.host.root import Root
from nfstuned.model.facts import Facts
from tests.check import hosts

SILENT = "nfs: server {} not responding, still trying"


def facts(tmp_path: Path, words: str = "", name: str = "mount-stalled") -> Facts:
    case = hosts.load(name)
    root = Root(str(case.build(tmp_path / "host")))
    return examine(root, builtin_policy(), Scope(), hosts.World(case.network, words=words))


def message(known: Facts) -> str:
    (fault,) = stalled.judge(known)
    return fault.message


@pytest.mark.parametrize(
    ("server", "said"),
    [("sa1.file.core.windows.net", True), ("10.10.10.10", True), ("10.10.10.1", False), ("nas", False)],
)
def test_the_kernels_words_of_this_server_are_passed_on(tmp_path: Path, server: str, *, said: bool) -> None:
    words = SILENT.format(server)
    assert (f'; the kernel says "{words}"' in message(facts(tmp_path, words))) is said


def test_a_server_that_answers_again_is_not_quoted(tmp_path: Path) -> None:
    assert "the kernel says" not in message(facts(tmp_path, "nfs: server 10.10.10.10 OK"))


def test_the_first_of_many_waiters_are_named(tmp_path: Path) -> None:
    known = replace(facts(tmp_path), waiters={"0:46": tuple(f"cp ({pid})" for pid in range(9))})
    assert "of the programs with files of it wait cp (0), cp (1)" in message(known)
    assert "cp (8)" not in message(known)


def test_a_server_in_its_grace_period_answers(tmp_path: Path) -> None:
    text = message(facts(tmp_path, name="mount-recovering"))
    assert "answers again, and has served nobody yet" in text
    assert "have waited for an answer" not in text
