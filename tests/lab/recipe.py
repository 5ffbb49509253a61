"""The lab's ingredients: the kernels, the guest's packages, and the few files that make it run a payload.

Everything here shapes the image, so `key()` names the cache entry: a changed recipe is another image.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from tests.lab import package


@dataclass(frozen=True)
class Series:
    """One kernel of the lab: the newest cloud kernel with a release that starts with `prefix`."""

    name: str
    prefix: str
    suite: str
    at_least: tuple[int, ...] = ()


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# One kernel for each behaviour that differs: no sysfs of sunrpc, sunrpc's, /sys/fs/nfs, add_xprt.
SERIES = (
    Series("5.10", "5.10.", "bullseye"),
    Series("6.1", "6.1.", "bookworm"),
    Series("6.12", "6.12.", "trixie"),
    Series("last-6", "6.", "trixie-backports", at_least=(6, 17)),
    Series("newest", "", "trixie-backports", at_least=(7,)),
)
USERLAND = "trixie"

EMULATORS = {"bookworm": "bookworm-backports"}
"""Hosts whose own QEMU is slow, and the suite with a better one: 10.0 takes 0.78 of the CPU time of 7.2."""
EMULATOR = ("qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios")

SYSTEM = _words("systemd-sysv udev dbus kmod procps mount iproute2")
STORAGE = ("nfs-kernel-server", "nfs-common", "cifs-utils", "btrfs-progs", "bindfs", "fuse3")
TOOLS = _words("""
    busybox-static fio strace tcpdump iptables dnsmasq-base prometheus prometheus-node-exporter
    samba stunnel4 man-db
""")
# nfstuned's libraries are not among them: its package brings all but python3-systemd.
PYTHON = _words("""
    python3 python3-hypothesis python3-prometheus-client python3-pytest python3-pytest-timeout
    python3-systemd
""")
PACKAGES = SYSTEM + STORAGE + TOOLS + PYTHON

# Stock kernels have virtio and ext4 as modules; one that is built in lists no file to load.
BOOT_MODULES = ("virtio_pci", "virtio_blk", "ext4")
# Linux 7.3 has a timer end each time slice, of 0.7 ms (HRTICK). Emulated, a process gets little done in that,
# and a quarter of the guest's work is to switch between processes.
INIT = """#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc; $b mount -t sysfs sysfs /sys; $b mount -t devtmpfs dev /dev
while read -r module; do $b insmod "$module"; done < /load
$b mount -t ext4 -o noatime /dev/vda /mnt || { echo "lab: no root filesystem"; $b poweroff -f; }
$b mount -t debugfs debugfs /sys/kernel/debug; features=/sys/kernel/debug/sched/features
[ ! -e $features ] || echo NO_HRTICK > $features
$b umount /sys/kernel/debug /proc /sys; $b mount --move /dev /mnt/dev
exec $b switch_root /mnt /sbin/init
"""
# It has a terminal of its own, apart from the console, so that kernel messages never mix with the payload's
# output. The end of the payload is the end of the guest; a payload without a last word has crashed.
SERVICE = """[Unit]
Description=Lab payload
After=multi-user.target
[Service]
Type=exec
StandardInput=tty-force
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS1
WorkingDirectory=/lab
ExecStartPre=+/bin/tar -xf /dev/vdb -C /lab
ExecStart=/bin/sh /lab/start
ExecStopPost=+/bin/sh -c 'exec systemctl poweroff --force --force >/dev/null 2>&1'
[Install]
WantedBy=multi-user.target
"""
# Jobs that run by themselves would take the slow processor from the tests; a scenario starts its servers.
MASKED = _words("""
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer
    e2scrub_reap.service fstrim.timer getty.target ldconfig.service man-db.timer
    systemd-hwdb-update.service systemd-logind.service systemd-update-utmp.service
""")
DISABLED = _words("""
    nfs-server.service nfs-blkmap.service nmbd.service prometheus.service
    prometheus-node-exporter.service samba-ad-dc.service smbd.service stunnel4.service
""")
FURNISHING = 3  # counts the changes of how image.py furnishes the guest
IMAGE_SIZE = "5G"


def key() -> str:
    packages = (SERIES, USERLAND, EMULATORS, EMULATOR, PACKAGES, BOOT_MODULES)
    files = (INIT, SERVICE, MASKED, DISABLED, FURNISHING, IMAGE_SIZE, package.shape())
    return hashlib.sha256(repr(packages + files).encode()).hexdigest()[:12]


def cache() -> Path:
    """Return the folder of images: outside the checkout, because an image outlives it."""
    return Path(os.environ.get("NFSTUNED_LAB_CACHE") or Path.home() / ".cache/nfstuned-lab")
