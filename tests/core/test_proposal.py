"""A proposed fstab beside the mounts that exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nfstuned.cli.examine import Scope, examine
from nfstuned.host.builtin import builtin_policy
from nfstuned.host.proposal import FSTAB
from nfstuned.host.root import Root
from nfstuned.model.facts import Network
from tests.check import hosts

if TYPE_CHECKING:
    from pathlib import Path

    from nfstuned.model.facts import Target

SOURCE = "sa1.file.core.windows.net:/sa1/share"


def judged(folder: Path, fstab: str) -> tuple[Target, ...]:
    """Return the targets of a host with one mount, for which a file `new` proposes something."""
    root = Root(str(hosts.load("clean").build(folder / "host")))
    root.propose(FSTAB, "new", fstab)
    return examine(root, builtin_policy(), Scope(offline=True, proposal="new"), hosts.Told(Network())).targets


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_proposed_line_stands_for_itself_beside_the_mount_that_it_is_about(
    slash: str, tmp_path: Path
) -> None:
    live, proposed = judged(tmp_path, f"{SOURCE}{slash} /mnt/share{slash} nfs soft,nconnect=2 0 0\n")
    assert (live.subject, live.origin, live.options.get("nconnect")) == ("/mnt/share", "new:1", "4")
    assert live.wanted.get("nconnect") == "2"
    assert (proposed.subject, proposed.live, proposed.options.get("nconnect")) == ("new:1", None, "2")
    assert "soft" in [name for name, _ in proposed.options.pairs]


def test_a_mount_that_a_proposal_does_not_have_keeps_what_it_was_made_with(tmp_path: Path) -> None:
    live, proposed = judged(tmp_path, "srv:/b /mnt/b nfs nconnect=2 0 0\n")
    assert (live.wanted.get("nconnect"), live.origin) == ("4", "")
    assert proposed.subject == "new:1"


def test_what_is_mounted_and_asked_for_is_one_target(tmp_path: Path) -> None:
    root = Root(str(hosts.load("clean").build(tmp_path / "host")))
    (target,) = examine(root, builtin_policy(), Scope(offline=True), hosts.Told(Network())).targets
    assert (target.subject, target.origin) == ("/mnt/share", "/etc/fstab:3")
