"""Root disks as builders of images make them: Debian with nfstuned and mounts, prepared by `nfstuned bake`.

A disk boots with a kernel of the lab. It has an NFS server of its own under names and addresses like those of
a cloud, mounts it by its fstab, and carries a payload in and its results out, as guest.boot() needs it.
"""

from __future__ import annotations

import enum
import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.lab import apt, image, package, recipe, roots
from tests.tree import differences, fingerprints, put

_PROJECT = Path(__file__).parents[2]
_LOOK = _PROJECT / "tests/lab/kit/look.sh"
_ROOM = 200 << 20
"""For a boot's own files, in bytes."""
IMAGE = "root.img"
DROP_IN = "etc/nfsmount.conf.d/50-nfstuned.conf"
AZURE, NETAPP, GENERIC = "sa1.file.core.windows.net", "10.1.2.4", "nas.lab.internal"
SHARE, VOLUME, DATA = "/mnt/share", "/mnt/vol1", "/mnt/data"
_ADDRESSES = ("10.10.10.10", NETAPP, "10.10.10.11")


class Way(enum.Enum):
    """The origin of a disk's fast mounts."""

    SERVICE = "service"
    DAEMONLESS = "daemonless"
    PERSIST = "persist"
    """Nothing prepared it: its first boot runs `nfstuned nconnect persist`."""


@dataclass(frozen=True, slots=True)
class Disk:
    """A root disk: a suite of Debian's for a kernel of the lab."""

    kernel: str
    suite: str
    way: Way

    def __str__(self) -> str:
        return f"{self.kernel}-{self.suite}-{self.way.value}"

    @property
    def release(self) -> str:
        return image.release(self.kernel)


@dataclass(frozen=True)
class Report:
    """The report of `nfstuned bake` when the disk was made: the actions of its JSON, run by run."""

    baked: tuple[Mapping[str, Any], ...] = ()
    again: tuple[Mapping[str, Any], ...] = ()
    inside: tuple[Mapping[str, Any], ...] = ()
    """Of the package's own command in the image itself, without --root, with --dry-run."""
    changed: tuple[str, ...] = ()
    """The names that a bake made, changed or took away."""
    left: tuple[str, ...] = ()
    """Those that were not as before, after its undo."""


_POLICY = (
    '[[policy]]\nmatch = { server = "10.1.2.0/24" }\nprofile = "azure-netapp-files"\n'
    "[profile.generic]\nread_ahead_kb = 1024\n"
)
_EXPORTS = "".join(
    f"{folder} *(rw,no_root_squash,no_subtree_check,fsid={number})\n"
    for number, folder in enumerate(("/sa1/share", "/vol1", "/data"), 1)
)
_HOSTS = f"127.0.0.1 localhost\n127.0.1.1 image\n10.10.10.10 {AZURE}\n10.10.10.11 {GENERIC}\n"
_ADDRESS_UNIT = f"""[Unit]
Description=Addresses of this machine's own server
Before=remote-fs-pre.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'for one in {" ".join(_ADDRESSES)}; do ip address add $$one/32 dev lo; done'
[Install]
WantedBy=multi-user.target
"""
_LOOK_UNIT = """[Unit]
Description=Read-aheads of mounts before anybody can log in
After=remote-fs.target
Before=systemd-user-sessions.service
[Service]
Type=oneshot
ExecStart=/bin/sh /lab/look /run/lab/before-logins
[Install]
WantedBy=multi-user.target
"""
_LONG = "DefaultTimeoutStartSec=600s\nDefaultDeviceTimeoutSec=600s\n"
_PATIENCE = {
    "etc/systemd/system.conf.d/lab.conf": f"[Manager]\n{_LONG}",
    "etc/systemd/system/nfstuned.service.d/lab.conf": "[Service]\nTimeoutStartSec=600s\n",
}
"""An emulated processor of a machine that has other work needs more than the 90 s that a start may take."""
_UNITS = {"lab-address": _ADDRESS_UNIT, "lab-look": _LOOK_UNIT, "lab": recipe.SERVICE}


def make(disk: Disk, folder: Path) -> Report:
    """Make `folder`/root.img; return bake's report. Raises AptError, BuildError."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = roots.archive(disk.suite, roots.BOOTED)
    deb = "" if disk.way is Way.DAEMONLESS else str(package.deb())
    words = [disk.kernel, disk.suite, disk.way.value, str(archive), deb, str(folder)]
    kept = (f"NFSTUNED_LAB_CACHE={recipe.cache()}", "PYTHONDONTWRITEBYTECODE=1")
    as_root = () if os.geteuid() == 0 else ("sudo",)
    _run(*as_root, "env", *kept, sys.executable, "-m", "tests.lab.rootdisk", *words)
    report = json.loads((folder / "report.json").read_text())
    return Report(**{name: tuple(values) for name, values in report.items()})


def fstab(disk: Disk) -> str:
    """Return the mounts of a disk: none of Azure Files asks for connections by itself."""
    share = f"{AZURE}:/sa1/share {SHARE} nfs vers=4.1,sec=sys,hard,_netdev 0 0\n"
    if disk.way is Way.PERSIST:
        return share
    # Debian 12's mount.nfs has room for one server in nfstuned's drop-in: another one asks by itself.
    more = ",nconnect=8" if disk.suite == "bookworm" else ""
    volume = f"{NETAPP}:/vol1 {VOLUME} nfs vers=3,nolock,hard,_netdev{more} 0 0\n"
    return f"{share}{volume}{GENERIC}:/data {DATA} nfs vers=4.2,hard,_netdev 0 0\n"


def _make(disk: Disk, archive: str, deb: str, folder: Path) -> None:
    """Make the disk and the report; runs as root."""
    root, written, owner = folder / "root", folder / "report.json", folder.stat()
    root.mkdir()
    try:
        _run("tar", "-xpf", archive, "--numeric-owner", "--exclude=./dev/*", "-C", str(root))
        _add_modules(disk.release, root)
        _furnish(disk, root)
        if deb:
            _install(Path(deb), root)
        report = Report() if disk.way is Way.PERSIST else _bake(disk.way, root)
        size = int(_run("du", "-s", "-B1", str(root)).split()[0]) + _ROOM
        _run("truncate", "-s", str(size), str(folder / IMAGE))
        _run("mke2fs", "-q", "-t", "ext4", "-d", str(root), "-F", str(folder / IMAGE))
    finally:
        shutil.rmtree(root)
    written.write_text(json.dumps(asdict(report)))
    for path in (folder / IMAGE, written):
        os.chown(path, owner.st_uid, owner.st_gid)


def _add_modules(release: str, root: Path) -> None:
    """Copy a kernel's modules out of the image's disk, where depmod has run for them."""
    folder = root / "usr/lib/modules"
    folder.mkdir(exist_ok=True)
    _run("debugfs", "-R", f"rdump /usr/lib/modules/{release} {folder}", str(image.disk()))
    if not (folder / release / "modules.dep").exists():
        raise RuntimeError(f"{image.disk()} has no modules of {release}")


def _furnish(disk: Disk, root: Path) -> None:
    """Add the server, the mounts, and the units of a boot of the lab."""
    put(root / "etc/hostname", "image\n", 0o644)
    put(root / "etc/hosts", _HOSTS, 0o644)
    put(root / "etc/exports", _EXPORTS, 0o644)
    # The clients of an earlier boot get this long to come back.
    put(root / "etc/nfs.conf.d/lab.conf", "[nfsd]\ngrace-time=10\nlease-time=10\n", 0o644)
    put(root / "etc/fstab", fstab(disk), 0o644)
    if disk.way is not Way.PERSIST:
        put(root / "etc/nfstuned/nfstuned.toml", _POLICY, 0o644)
    for name in ("sa1/share", "vol1", "data", SHARE[1:], VOLUME[1:], DATA[1:], "lab"):
        (root / name).mkdir(parents=True)
    shutil.copy(_LOOK, root / "lab/look")
    for name, text in _PATIENCE.items():
        put(root / name, text, 0o644)
    for name, text in _UNITS.items():
        put(root / f"etc/systemd/system/{name}.service", text, 0o644)
    _run("systemctl", f"--root={root}", "enable", *_UNITS)


def _install(deb: Path, root: Path) -> None:
    """Install the package with the image's own dpkg."""
    # A package's scripts write to it; a device needs a right that a container may not give.
    (root / "dev/null").touch()
    shutil.copy(deb, root / deb.name)
    _run("chroot", str(root), "dpkg", "--install", f"/{deb.name}")
    (root / deb.name).unlink()
    (root / "dev/null").unlink()


def _bake(way: Way, root: Path) -> Report:
    """Prepare the image, take that back, and prepare it again."""
    if way is Way.SERVICE:
        # As it is where packages enable nothing, by a preset of the distribution's.
        _run("systemctl", f"--root={root}", "disable", "nfstuned.service")
    before = fingerprints(root)
    words = ("bake", "--root", str(root), *(["--daemonless"] if way is Way.DAEMONLESS else []))
    baked = _nfstuned(sys.executable, "-m", "nfstuned", *words)
    changed = differences(before, fingerprints(root))
    again = _nfstuned(sys.executable, "-m", "nfstuned", *words)
    own = way is Way.SERVICE
    inside = _nfstuned("chroot", str(root), "nfstuned", "bake", "--dry-run") if own else ()
    _nfstuned(sys.executable, "-m", "nfstuned", "bake", "--root", str(root), "--undo")
    left = differences(before, fingerprints(root))
    _nfstuned(sys.executable, "-m", "nfstuned", *words)
    return Report(baked, again, inside, tuple(changed), tuple(left))


def _nfstuned(*command: str) -> tuple[Mapping[str, Any], ...]:
    return tuple(json.loads(_run(*command, "--format", "json"))["actions"])


def _run(*command: str) -> str:
    return apt.run(*command, cwd=_PROJECT)


if __name__ == "__main__":
    _kernel, _suite, _way, _archive, _deb, _folder = sys.argv[1:]
    _make(Disk(_kernel, _suite, Way(_way)), _archive, _deb, Path(_folder))
