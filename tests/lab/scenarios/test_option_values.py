"""`nfstuned check` refuses the same options and settings of nfsmount.conf as mount(8) and the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.kit.check import ids
from tests.lab.kit.mounts import Mounts, table_device
from tests.lab.kit.server import AZURE
from tests.lab.kit.shell import attempt, run

pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("quiet_udev")]

CONF = Path("/etc/nfsmount.conf")
BASE = "vers=4.1"
OPTIONS = (
    *("nconnect=1", "nconnect=16", "nconnect=0", "nconnect=17", "nconnect=four", "nconnect"),
    *("rsize=1048576", "rsize=1M", "rsize", "timeo=600", "timeo=0", "retrans=0", "retrans=-1", "acregmin=x"),
    *("lookupcache=pos", "lookupcache=some", "local_lock=all", "local_lock=true", "sec=sys", "sec=ntlm"),
    *("proto=tcp", "proto=quic", "port=2049", "port=70000"),
    *("minorversion=9", "vers=4,minorversion=1", "vers=4,minorversion=9"),
    *("hard", "nohard", "hard=1", "nosoft", "softreval", "resvport", "nonoresvport", "noac", "nconect=4"),
)
SETTINGS = (
    *("hard=True", "hard=False", "Soft=True", "Soft=False", "Softerr=True", "resvport=True"),
    *("noresvport=False", "ac=False", "cto=False", "Lock=True", "Intr=False"),
    *("rsize=8k", "rsize=True", "nconnect=4", "nconnect=17", "nconnect=True", "timeo=600", "timeo=long"),
    *("lookupcache=none", "lookupcache=some", "sec=sys", "sec=sis", "Background=False", "dev=False"),
)


@pytest.fixture
def nfsmount_conf() -> Iterator[Path]:
    """The file, afterwards as the package left it."""
    before = CONF.read_text() if CONF.exists() else None
    yield CONF
    if before is None:
        CONF.unlink()
    else:
        CONF.write_text(before)


def test_options_of_fstab(mount: Mounts, tmp_path: Path) -> None:
    points = [mount.new_point() for _ in OPTIONS]
    proposal = tmp_path / "fstab"
    lines = (
        f"{AZURE}:/srv/a {at} nfs {_options(one)} 0 0\n" for at, one in zip(points, OPTIONS, strict=True)
    )
    proposal.write_text("".join(lines))
    found = ids("--offline", "--select", "NFS309", "--fstab", str(proposal))
    wrong = {one for number, one in enumerate(OPTIONS, 1) if f"NFS309 {proposal}:{number}" in found}
    made = {one for one, at in zip(OPTIONS, points, strict=True) if _mounts(at, _options(one))}
    assert wrong == {*OPTIONS} - made


@pytest.mark.system
def test_settings_of_nfsmount_conf(mount: Mounts, nfsmount_conf: Path) -> None:
    point = mount.new_point()
    section = f'[ MountPoint "{point}" ]\n'
    refused = set()
    for setting in SETTINGS:
        nfsmount_conf.write_text(f"{section}{setting}\n")
        if not _mounts(point, BASE):
            refused.add(setting)
    sections = (f'[ MountPoint "/{number}" ]\n{setting}\n' for number, setting in enumerate(SETTINGS))
    nfsmount_conf.write_text("".join(sections))
    found = ids("--offline", "--select", "NFS214")
    wrong = {
        one for number, one in enumerate(SETTINGS) if f"NFS214 {nfsmount_conf}:{2 * number + 2}" in found
    }
    assert wrong == refused


def test_a_list_of_types_mounts_nfs(mount: Mounts) -> None:
    for types in ("nfs4,nfs", "nfs,ext4", "ext4,nfs"):
        point = mount.new_point()
        done = attempt("mount", "-t", types, "-o", BASE, f"{AZURE}:/srv/a", str(point))
        if types.startswith("nfs"):
            assert done.returncode == 0, done.stderr
        # Before Linux 5.12 mount(8) ends at a first type that it knows and that wants a device.
        if done.returncode == 0:
            assert table_device(point) is not None
        else:
            assert "special device" in done.stderr


def _options(one: str) -> str:
    return one if one.startswith("vers=") else f"{BASE},{one}"


def _mounts(point: Path, options: str) -> bool:
    """Whether a mount is made; it is taken away again."""
    done = attempt("mount", "-t", "nfs", "-o", options, f"{AZURE}:/srv/a", str(point))
    if done.returncode == 0:
        run("umount", str(point))
    return done.returncode == 0
