"""Minimal Debian installations, as builders of images make them: built once, kept in the lab's cache."""

from __future__ import annotations

import fcntl
import hashlib
from pathlib import Path

from tests.lab import apt, recipe

SUITES = ("bookworm", "trixie")
PACKAGES = ("systemd-sysv", "udev", "nfs-common", "linux-image-cloud-amd64")
BOOTED = ("systemd-sysv", "udev", "kmod", "iproute2", "nfs-common", "nfs-kernel-server", "python3-systemd")
"""Of those that are booted, with a kernel of the lab's: the needs of nfstuned's own package, and a server."""
MANAGED = ("systemd-sysv", "udev", "nfs-common", "python3-systemd", "python3-apt", "apt-utils", "gnupg")
"""Of those that Ansible manages: a repository is made in them, without a network."""
LEFT_OUT = (
    "/usr/share/doc/*",
    "/usr/share/man/*",
    "/usr/share/locale/*",
    "/lib/modules/*/kernel/drivers/*",
    "/usr/lib/modules/*/kernel/drivers/*",
    "/etc/kernel/postinst.d/initramfs-tools",
)
"""These take most of the time, the initrd above all."""


def archive(suite: str, packages: tuple[str, ...] = PACKAGES) -> Path:
    """Return the archive of an installation, made unless it exists: half a minute. Raises AptError.

    Of several that ask at once for an archive that is not there, the first makes it and the others wait.
    """
    key = hashlib.sha256(repr((packages, LEFT_OUT)).encode()).hexdigest()[:12]
    target = recipe.cache() / "roots" / f"{suite}-{key}.tar"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            unfinished = target.with_suffix(".unfinished")
            try:
                _make(suite, packages, unfinished)
                unfinished.rename(target)
            finally:
                unfinished.unlink(missing_ok=True)
    return target


def unpack(suite: str, into: Path) -> Path:
    """Unpack an installation below a folder, without its devices, as files of the caller."""
    into.mkdir()
    apt.run("tar", "-xf", str(archive(suite)), "--exclude=./dev", "--no-same-owner", "-C", str(into))
    return into


def _make(suite: str, packages: tuple[str, ...], target: Path) -> None:
    left_out = (f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT)
    apt.bootstrap(suite, packages, target, "--format=tar", *left_out)
