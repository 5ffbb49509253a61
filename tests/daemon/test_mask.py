"""`nfstuned udev mask` and `unmask` over a tree; udev's answer is in tests/lab/scenarios."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nfstuned.daemon.mask import Masks
from nfstuned.host.telemetry.journal import Message
from nfstuned.model.udev import FOLDER_MADE, MASK
from tests.core.test_udev_faults import AMAZONS, STOCK
from tests.host.entries import Entries
from tests.tree import Tree, everything

NFS, EC2 = "99-nfs.rules", "53-ec2-read-ahead-kb.rules"
CONF = "[nfsrahead]\nnfs4=4096\n"


class Udev(Tree):
    """A host with a udev that counts how often it is told."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.told = 0
        self.answer = ""
        self.write("proc/self/mountinfo", "")
        self.write(f"usr/lib/udev/rules.d/{NFS}", STOCK)
        (self.folder / "run/udev").mkdir(parents=True)

    def mask(self) -> int:
        return Masks(self.root, reload_rules=self._tell).make()

    def unmask(self) -> int:
        return Masks(self.root, reload_rules=self._tell).take()

    @property
    def masks(self) -> list[str]:
        folder = self.folder / "run/udev/rules.d"
        return sorted(one.name for one in folder.iterdir()) if folder.exists() else []

    def _tell(self) -> str:
        self.told += 1
        return self.answer


@pytest.fixture
def udev(tmp_path: Path) -> Udev:
    return Udev(tmp_path)


@pytest.mark.parametrize("there", ["no folder", "an empty folder", "other rules"])
def test_the_masks_are_taken_back_and_nothing_else(udev: Udev, there: str) -> None:
    others = there == "other rules"
    if there == "an empty folder":
        (udev.folder / "run/udev/rules.d").mkdir()
    if others:
        udev.write("run/udev/rules.d/10-other.rules", "# somebody else's\n")
        udev.write(f"usr/lib/udev/rules.d/{EC2}", AMAZONS)
    before = everything(udev.folder)
    assert udev.mask() == 0
    assert udev.masks == (["10-other.rules", EC2, NFS] if others else [NFS])
    mark = FOLDER_MADE if there == "no folder" else ""
    assert (udev.folder / "run/udev/rules.d" / NFS).read_text() == MASK + mark
    assert udev.mask() == 0
    assert udev.told == 1, "udev is told only of changes"
    assert udev.unmask() == 0
    assert everything(udev.folder) == before
    assert udev.unmask() == 0
    assert udev.told == 2


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (f"etc/udev/rules.d/{NFS}", STOCK, f"/etc/udev/rules.d/{NFS} is not the distribution's own"),
        (f"run/udev/rules.d/{NFS}", "", f"/run/udev/rules.d/{NFS} is not the distribution's own"),
        (f"usr/local/lib/udev/rules.d/{NFS}", STOCK, "/usr/local/lib"),
        (f"usr/lib/udev/rules.d/{NFS}", STOCK * 2, "/usr/lib"),
        ("etc/nfs.conf", CONF, "/etc/nfs.conf:2 sets nfs4=4096 below [nfsrahead]"),
        ("etc/nfs.conf.d/x.conf", CONF, "/etc/nfs.conf.d/x.conf:2 sets nfs4=4096"),
    ],
)
def test_an_administrators_rule_or_setting_stays_in_force(
    udev: Udev, name: str, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    udev.write(name, text)
    before = everything(udev.folder)
    assert udev.mask() == 0
    assert said in capsys.readouterr().out
    assert everything(udev.folder) == before
    assert udev.told == 0


def test_a_link_to_nowhere_hides_the_distributions_rule_and_holds_no_other_mask_up(udev: Udev) -> None:
    udev.write(f"usr/lib/udev/rules.d/{EC2}", AMAZONS)
    (udev.folder / "etc/udev/rules.d").mkdir(parents=True)
    (udev.folder / "etc/udev/rules.d" / NFS).symlink_to("/nowhere")
    assert udev.mask() == 0
    assert udev.masks == [EC2]


def test_a_reload_unmasks_a_rule_that_an_administrator_has_configured_since(udev: Udev) -> None:
    udev.mask()
    udev.write("etc/nfs.conf", CONF)
    assert udev.mask() == 0
    assert (udev.masks, udev.told) == ([], 2)
    (udev.folder / "etc/nfs.conf").write_text("[nfsrahead]\n# nfs4=4096\n")
    assert udev.mask() == 0
    assert (udev.masks, udev.told) == ([NFS], 3)


def test_a_service_that_only_observes_leaves_udev_as_it_is(udev: Udev) -> None:
    udev.mask()
    udev.write("etc/nfstuned/nfstuned.toml", '[daemon]\nmode = "observe"\n')
    udev.mask()
    assert udev.masks == []
    udev.write("etc/nfstuned/conf.d/10-on.toml", '[daemon]\nmode = "tune"\n')
    udev.mask()
    assert udev.masks == [NFS]


def test_where_no_udev_runs_nothing_is_made(udev: Udev) -> None:
    (udev.folder / "run/udev").rmdir()
    before = everything(udev.folder)
    assert (udev.mask(), udev.unmask()) == (0, 0)
    assert (everything(udev.folder), udev.told) == (before, 0)


def test_nothing_on_a_network_mount_is_read(udev: Udev, capsys: pytest.CaptureFixture[str]) -> None:
    udev.write("proc/self/mountinfo", "40 24 0:43 / /mnt/a rw shared:9 - nfs4 sa1:/a rw,addr=10.10.10.10\n")
    udev.write("etc/nfs.conf", "include=/mnt/a/nfs.conf\n")
    os.mkfifo(udev.folder / "never")
    assert udev.mask() == 0
    assert udev.masks == [NFS], capsys.readouterr()


def test_a_udev_that_does_not_reload_is_a_failure(udev: Udev, capsys: pytest.CaptureFixture[str]) -> None:
    udev.answer = "no answer within 15 s"
    assert udev.mask() == 1
    assert "udev could not reload its rules: no answer" in capsys.readouterr().err
    assert udev.masks == [NFS]


def test_each_entry_has_its_id_and_its_promised_fields(udev: Udev) -> None:
    entries = Entries()
    udev.write(f"usr/lib/udev/rules.d/{EC2}", AMAZONS.replace("15360", "4096"))
    masks = Masks(udev.root, entries.journal, lambda: "no udev")
    assert (masks.make(), masks.take()) == (1, 1)
    assert [(entry["MESSAGE_ID"], entry.get("NFSTUNED_FILE")) for entry in entries] == [
        (Message.RULE_MASKED.id, f"/run/udev/rules.d/{NFS}"),
        (Message.RULE_LEFT.id, EC2),
        (Message.RULES_FAILED.id, None),
        (Message.RULE_UNMASKED.id, f"/run/udev/rules.d/{NFS}"),
        (Message.RULES_FAILED.id, None),
    ]
    assert all("unknown" not in entry.values() for entry in entries)


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("etc/nfs.conf", "folder", "/etc/nfs.conf: a directory"),
        ("etc/nfs.conf.d", "loop", "/etc/nfs.conf.d: Too many levels"),
        (f"usr/lib/udev/rules.d/{NFS}", "loop", f"/usr/lib/udev/rules.d/{NFS}: Too many levels"),
        ("run/udev/rules.d", "file", "Not a directory"),
    ],
)
def test_a_file_that_cannot_be_read_or_made_masks_nothing(
    udev: Udev, name: str, kind: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = udev.folder / name
    path.unlink(missing_ok=True)
    if kind == "folder":
        path.mkdir(parents=True)
    elif kind == "loop":
        udev.link(name, path.name)
    else:
        udev.write(name)
    before = everything(udev.folder)
    assert udev.mask() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("udev's rules stay as they are: ")
    assert said in line
    assert (everything(udev.folder), udev.told) == (before, 0)
