"""Images that are to be prepared, and their files."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from nfstuned.cli.app import main
from nfstuned.host.root import Root
from tests.check.hosts import load
from tests.cli.conftest import CONFIG, MOUNT_NFS, REPOSITORY, Run
from tests.tree import put

ANF = (
    "10.1.2.4:/vol1 /mnt/vol1 nfs vers=4.1,hard,_netdev 0 0\n"
    "10.1.2.5:/vol2 /mnt/vol2 nfs vers=3,hard,_netdev 0 0\n"
)
UNIT = "usr/lib/systemd/system/nfstuned.service"
WANTED = "etc/systemd/system/multi-user.target.wants/nfstuned.service"
RULE = "etc/udev/rules.d/99-nfstuned.rules"
DROP_IN = "etc/nfsmount.conf.d/50-nfstuned.conf"
RECORD = "etc/nfstuned-baked.json"
SLOTS, SESSION = "etc/modprobe.d/sunrpc-slots.conf", "etc/modprobe.d/nfs-slots.conf"
MACHINE_ID = "9f3a4b2c1d0e8f7a6b5c4d3e2f1a0b9c\n"


@dataclass(frozen=True)
class Image:
    tree: Path
    capture: pytest.CaptureFixture[str]

    def run(self, *args: str) -> Run:
        self.capture.readouterr()
        status = main([args[0], "--root", str(self.tree), *args[1:]], Root("/nonexistent"))
        out, err = self.capture.readouterr()
        return Run(status, out, err)

    def put(self, name: str, text: str | bytes) -> None:
        put(self.tree / name, text)

    def has(self, name: str) -> bool:
        """Return whether there is a file or a link, also to nowhere."""
        return os.path.lexists(self.tree / name)

    def findings(self, *families: str) -> list[str]:
        """Return the rules that `nfstuned check --root` finds broken, of these families."""
        found = self.run("check", "--format", "json").document["findings"]
        return [one["rule"] for one in found if one["rule"].startswith(families)]

    def copy(self, target: Path) -> Image:
        return Image(Path(shutil.copytree(self.tree, target, symlinks=True)), self.capture)


def make(case: str, tree: Path, capture: pytest.CaptureFixture[str]) -> Image:
    """Return one of tests/hosts with nfstuned and its unit installed, and nothing that starts it."""
    image = Image(load(case).build(tree), capture)
    shutil.rmtree(tree / "etc/systemd", ignore_errors=True)
    image.put(UNIT, (REPOSITORY / "systemd/nfstuned.service").read_bytes())
    image.put("etc/machine-id", MACHINE_ID)
    return image


def with_netapp(image: Image, version: bytes = b"2.8.3", place: str = "usr/sbin/mount.nfs") -> Image:
    """Return the image with two volumes of Azure NetApp Files in its fstab, and a policy that says so."""
    image.put("etc/nfstuned/nfstuned.toml", CONFIG)
    image.put("etc/fstab", ANF)
    put(image.tree / place, MOUNT_NFS % version, 0o755)
    return image
