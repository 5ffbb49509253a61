"""`nfstuned check --root` over real Debian installations."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nfstuned.core.nconnect.persist import with_sections
from nfstuned.host.root import Root
from nfstuned.model.mounts import PERSISTED
from nfstuned.parse.etc.settings import read_nfs_utils
from tests.cli.baked import MACHINE_ID
from tests.cli.conftest import CONFIG
from tests.lab import roots
from tests.tree import everything

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

PROJECT = Path(__file__).parents[2]
SHARE = (
    "sa1.file.core.windows.net:/sa1/share /mnt/share nfs "
    "vers=4,minorversion=1,sec=sys,nconnect=4,actimeo=30,_netdev,nofail 0 0\n"
)


@pytest.fixture(scope="module", params=roots.SUITES)
def installation(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return roots.unpack(request.param, tmp_path_factory.mktemp("image") / request.param)


@pytest.fixture
def image(installation: Path, tmp_path: Path) -> Path:
    """An image that mounts a share. Its files are the installation's own: replace them, never write."""
    folder = tmp_path / "image"
    shutil.copytree(installation, folder, symlinks=True, copy_function=os.link)
    put(folder, "etc/fstab", SHARE)
    return folder


def put(image: Path, name: str, text: str) -> None:
    path = image / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)


def install_daemon(image: Path) -> None:
    put(image, "usr/lib/systemd/system/nfstuned.service", (PROJECT / "systemd/nfstuned.service").read_text())


def systemctl(image: Path, *words: str) -> None:
    subprocess.run(["systemctl", f"--root={image}", *words], check=True, capture_output=True)


def check(image: Path) -> dict[str, Any]:
    command = (sys.executable, "-m", "nfstuned", "check", "-v", "--root", str(image), "--format", "json")
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=PROJECT)
    assert done.returncode in (0, 1), done.stderr
    assert done.stderr == ""
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def findings(image: Path, *families: str) -> list[str]:
    found = check(image)["findings"]
    return [f"{one['rule']} {one['subject']}" for one in found if one["rule"].startswith(families)]


def release(image: Path) -> str:
    (folder,) = (image / "usr/lib/modules").iterdir()
    return folder.name


def test_a_fresh_installation_can_mount_and_its_kernel_is_named(image: Path) -> None:
    assert findings(image, "NFS3", "NFS502", "NFS7") == [f"NFS703 kernel {release(image)}"]
    document = check(image)
    assert [mount["mount_point"] for mount in document["mounts"]] == ["/mnt/share"]
    assert "128 KiB" in next(one["observed"] for one in document["findings"] if one["rule"] == "NFS703")


def test_a_daemon_is_enabled_by_a_link_or_at_the_first_boot(image: Path) -> None:
    install_daemon(image)
    (image / "etc/machine-id").unlink(missing_ok=True)
    assert findings(image, "NFS701") == []
    put(image, "etc/machine-id", MACHINE_ID)
    assert findings(image, "NFS701") == ["NFS701 nfstuned.service"]
    systemctl(image, "enable", "nfstuned.service")
    assert findings(image, "NFS701") == []
    systemctl(image, "disable", "nfstuned.service")
    systemctl(image, "mask", "nfstuned.service")
    assert findings(image, "NFS701") == ["NFS701 nfstuned.service"]


def test_presets_have_the_effect_that_systemd_gives_them(image: Path) -> None:
    install_daemon(image)
    (image / "etc/machine-id").unlink(missing_ok=True)
    for text in ("enable *", "disable *", "disable nfs*\nenable nfstuned.service"):
        put(image, "etc/systemd/system-preset/00-site.preset", text)
        enabled = findings(image, "NFS701") == []
        systemctl(image, "preset", "nfstuned.service")
        put(image, "etc/machine-id", MACHINE_ID)
        assert (findings(image, "NFS701") == []) == enabled
        (image / "etc/machine-id").unlink()
        systemctl(image, "disable", "nfstuned.service")


def bake(image: Path, *words: str) -> list[tuple[str, str]]:
    """Return the kinds and outcomes of the actions of `nfstuned bake`."""
    command = (sys.executable, "-m", "nfstuned", "bake", "--root", str(image), "--format", "json", *words)
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=PROJECT)
    assert done.stderr == ""
    return [(one["kind"], one["outcome"]) for one in json.loads(done.stdout)["actions"]]


def test_systemctl_and_check_see_the_changes_of_bake_and_its_undo_leaves_no_trace(image: Path) -> None:
    install_daemon(image)
    put(image, "etc/machine-id", MACHINE_ID)
    put(image, "etc/nfstuned/nfstuned.toml", CONFIG)
    put(image, "etc/fstab", "10.1.2.4:/vol1 /mnt/vol1 nfs vers=4.1,hard,_netdev,nofail 0 0\n")
    before = everything(image)
    assert {"NFS701 nfstuned.service", "NFS211 /etc/fstab:1"} <= set(findings(image, "NFS2", "NFS7"))
    # The installation has its builder's name, and all clones would have its machine id.
    left = ("identity", "skipped")
    assert bake(image) == [("service", "done"), ("nconnect", "done"), ("parameter", "done"), left]
    systemctl(image, "is-enabled", "nfstuned.service")
    assert findings(image, "NFS2", "NFS7") == [f"NFS703 kernel {release(image)}"]
    assert bake(image) == [left]
    # The rule, the mask of nfs-utils' rule, and the service's start, which ends.
    rules = [("udev-rule", "done")] * 2
    assert bake(image, "--daemonless") == [*rules, left, ("file", "done")]
    assert findings(image, "NFS1", "NFS701") == []
    bake(image, "--undo")
    assert everything(image) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may chroot")
def test_mount_nfs_and_modprobe_read_the_files_of_bake(image: Path) -> None:
    install_daemon(image)
    put(image, "etc/nfstuned/nfstuned.toml", CONFIG)
    put(image, "etc/fstab", "10.1.2.4:/vol1 /mnt/vol1 nfs vers=4.1,hard,_netdev,nofail 0 0\n")
    assert "nconnect" not in asked(image, "10.1.2.4")
    bake(image)
    assert "nconnect=8" in asked(image, "10.1.2.4")
    command = ["chroot", str(image), "/sbin/modprobe", "--showconfig"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "options nfs max_session_slots=180" in shown.splitlines()


def asked(image: Path, server: str) -> str:
    """Return the options with which mount.nfs itself would mount: `-f` mounts nothing."""
    mount = ("/usr/sbin/mount.nfs", f"{server}:/x", "/mnt", "-f", "-v", "-o", "vers=4.1")
    done = subprocess.run(["chroot", str(image), *mount], check=True, capture_output=True, text=True)
    (line,) = [line for line in (done.stdout + done.stderr).splitlines() if "text-based options" in line]
    return line.partition("'")[2]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may chroot")
def test_mount_nfs_follows_nfstuneds_drop_in_and_an_old_one_for_one_server(image: Path) -> None:
    utils = read_nfs_utils(Root(str(image)))
    assert utils is not None
    assert utils.drop_ins
    assert utils.version is not None
    servers = ("10.1.2.4", "10.1.2.5")
    put(image, PERSISTED[1:], with_sections({servers[0]: 8}))
    assert ["nconnect=8" in asked(image, server) for server in servers] == [True, False]
    put(image, PERSISTED[1:], with_sections(dict.fromkeys(servers, 8)))
    found = ["nconnect=8" in asked(image, server) for server in servers]
    assert found == [utils.keeps_sections_apart, True]
