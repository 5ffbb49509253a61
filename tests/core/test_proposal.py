"""The lines of a host's own fstab next to its mounts, as `check --fstab /etc/fstab` judges them."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.app.facts import Scope, examine
from nfstuned.host.config import builtin_policy
from nfstuned.host.root import Root
from nfstuned.model.facts import Facts, Target
from nfstuned.parse.tree import FSTAB
from tests.check import hosts
from tests.core.nconnect_hosts import faults

OPTIONS = "vers=4,minorversion=1,_netdev,nofail"
SOURCE = "sa1.file.core.windows.net:/sa1/share"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def proposed(folder: Path, name: str, *lines: str) -> Facts:
    """Return the facts of a host with changed lines in its fstab, which is also called `new`."""
    case = hosts.load(name)
    tree, new = case.build(folder / "host"), Path("new")
    (tree / FSTAB).write_text("".join(f"{line}\n" for line in lines))
    new.unlink(missing_ok=True)
    new.hardlink_to(tree / FSTAB)
    root = Root(str(tree))
    root.propose(str(new), new.read_text())
    return examine(root, builtin_policy(), Scope(proposal="new"), hosts.World(case.network))


def judged(folder: Path, fstab: str) -> tuple[Target, ...]:
    """Return the targets of a host with one mount and changed lines in its fstab."""
    return proposed(folder, "clean", fstab).targets


def nas(name: str, asked: str = "") -> str:
    """Return a line for one of the two mounts of a host on which the first decided for the second."""
    return f"nas1.example.com:/srv/{name} /mnt/{name} nfs {OPTIONS}{asked} 0 0"


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_proposed_line_stands_for_itself_next_to_its_mount(slash: str, tmp_path: Path) -> None:
    live, asked = judged(tmp_path, f"{SOURCE}{slash} /mnt/share{slash} nfs soft,nconnect=2 0 0\n")
    assert (live.subject, live.origin, live.options.get("nconnect")) == ("/mnt/share", "new:1", "4")
    assert live.wanted.get("nconnect") == "2"
    assert (asked.subject, asked.live, asked.options.get("nconnect")) == ("new:1", None, "2")
    assert "soft" in [name for name, _ in asked.options.pairs]


def test_lines_that_replace_all_mounts_of_a_server_inherit_nothing_from_them(tmp_path: Path) -> None:
    for number, count in enumerate(("", ",nconnect=4", ",nconnect=8")):
        found = proposed(tmp_path / str(number), "nconnect-first-mount-v41", nas("a", count), nas("b", count))
        assert not faults("NFS204", found)


def test_a_line_for_a_mount_point_replaces_what_is_mounted_there_from_elsewhere(tmp_path: Path) -> None:
    lines = (nas("a").replace("/srv/a", "/srv/c"), nas("b", ",nconnect=4"))
    assert not faults("NFS204", proposed(tmp_path, "nconnect-first-mount-v41", *lines))


def test_a_mount_that_a_proposal_leaves_out_still_decides(tmp_path: Path) -> None:
    (fault,) = faults("NFS204", proposed(tmp_path, "nconnect-first-mount-v41", nas("b", ",nconnect=4")))
    assert fault.subject == "new:1"
    assert "the mount would get 1: all mounts of one server" in fault.message
    assert fault.remedy == (
        "sudo umount /mnt/b /mnt/a && sudo mount /mnt/b && "
        "sudo mount -t nfs4 -o vers=4,minorversion=1,sec=sys,_netdev,nofail,nconnect=4 "
        "nas1.example.com:/srv/a /mnt/a"
    )


def test_a_mount_is_told_how_it_comes_to_what_a_proposal_has(tmp_path: Path) -> None:
    line = f"{SOURCE} /mnt/share nfs {OPTIONS},nconnect="
    second = line.replace("sa1", "sa2").replace("/mnt/share", "/mnt/sa2")
    again = "sudo umount /mnt/share && sudo mount /mnt/share"
    (raised,) = faults("NFS201", proposed(tmp_path / "1", "azure-scenario-1", second + "4 0 0"))
    assert (raised.subject, raised.remedy) == ("/mnt/sa2", again.replace("/mnt/share", "/mnt/sa2"))
    (asked,) = faults("NFS202", proposed(tmp_path / "2", "nconnect-16", line + "8 0 0"))
    assert (asked.subject, asked.remedy) == ("new:1", f"set nconnect=4 in new:1, then {again}")
    (lowered,) = faults("NFS202", proposed(tmp_path / "3", "nconnect-16", line + "4 0 0"))
    assert lowered.remedy == again


def test_a_mount_and_the_line_that_is_proposed_for_it_count_once(tmp_path: Path) -> None:
    one, two, three = (
        f"sa1.file.core.windows.net:/sa1/share{number} /mnt/{point} nfs {OPTIONS}"
        for number, point in enumerate(("one", "two", "three"), 1)
    )
    alike = tuple(f"{line},nconnect=4 0 0" for line in (one, two, three))
    assert not faults("NFS205", proposed(tmp_path / "1", "azure-scenario-3", *alike))
    lines = (f"{one},nconnect=4 0 0", f"{two} 0 0", f"{three} 0 0")
    (fault,) = faults("NFS205", proposed(tmp_path / "2", "azure-scenario-3", *lines))
    assert "4 on /mnt/one, none on /mnt/three and 1 more;" in fault.message
    other = (alike[0].replace("share1", "share9"), *alike[1:])
    assert not faults("NFS205", proposed(tmp_path / "3", "azure-scenario-3", *other))


def test_a_proposal_that_moves_every_mount_to_tls_or_back_mixes_nothing(tmp_path: Path) -> None:
    line = f"{SOURCE[:-5]}{{0}} /mnt/{{0}} {{1}} {OPTIONS} 0 0"
    tls, clear = ([line.format(name, kind) for name in ("share", "other")] for kind in ("aznfs", "nfs"))
    assert not faults("NFS407", proposed(tmp_path / "1", "clean", *tls))
    assert not faults("NFS407", proposed(tmp_path / "2", "tls", *clear))
    (fault,) = faults("NFS407", proposed(tmp_path / "3", "clean", *tls[1:]))
    assert fault.subject == "/mnt/share"
    (fault,) = faults("NFS407", proposed(tmp_path / "4", "clean", clear[0], tls[1]))
    assert fault.subject == "new:1"
