"""Rules NFS501 to NFS505: the kernel, its parameters, and the mount helpers."""

from __future__ import annotations

from collections.abc import Iterator

from nfstuned.core.mounts.kernels import el8_build
from nfstuned.core.nconnect.groups import is_azure_files
from nfstuned.core.rules.parameters import ParameterWish, lasting, parameter
from nfstuned.model.facts import Facts
from nfstuned.model.finding import Fault

_KERNEL = "kernel"
_READDIR_BROKEN, _READDIR_MENDED = (5, 11, 0), (5, 12, 5)
_EL84, _EL86 = 305, 372
"""The builds of RHEL 8.4's and 8.6's kernel 4.18.0."""
_DEEP = (5, 0, 0)
_MANY_INODES = 1_000_000
"""The files of the one directory that the vendor's page measures."""
_PACKAGES = {
    "mount.nfs": "nfs-common (Debian, Ubuntu), nfs-utils (RHEL) or nfs-client (SUSE)",
    "mount.aznfs": "aznfs from packages.microsoft.com",
}
_RUNNING = "/sys/module/nfs/parameters/nfs4_disable_idmapping"
_FALSE = frozenset({"n", "no", "0", "f", "false", "off"})


def readdir_hang(facts: Facts) -> Iterator[Fault]:
    """Yield a kernel whose NFS client hangs while it lists large directories."""
    kernel = facts.snapshot.kernel
    if kernel is None or not facts.nfs:
        return
    if _READDIR_BROKEN <= kernel.version < _READDIR_MENDED or el8_build(kernel) == _EL84:
        yield Fault(
            _KERNEL,
            f"{kernel.text} has an NFS client that hangs while it lists a large directory (Linux 5.11 to "
            "5.12.4, and RHEL 8.4, which took over the change)",
            observed=kernel.text,
            expected="5.12.5 or later, not RHEL 8.4's",
            remedy="install a later kernel and boot it",
        )


def missing_helper(facts: Facts) -> Iterator[Fault]:
    """Yield the mount helpers that lines of files need and that the host does not have."""
    needed: dict[str, str] = {}
    for target in facts.nfs:
        helper = "mount.aznfs" if target.request and target.request.fstype == "aznfs" else "mount.nfs"
        for fromkey in dict.fromkeys((helper, "mount.nfs")):
            needed.setdefault(fromkey, target.subject if target.live else target.origin)
    for helper, place in needed.items():
        if helper not in facts.system.helpers:
            yield Fault(
                helper,
                f"there is no {helper}, and {place} cannot be mounted without it",
                observed="missing",
                expected=f"/sbin/{helper}",
                remedy=f"install the package {_PACKAGES[helper]}",
            )


def id_mapping(facts: Facts) -> Iterator[Fault]:
    """Yield an NFS module that maps ids to names, where an Azure file share is used."""
    name = "nfs.nfs4_disable_idmapping"
    known = parameter(facts, name)
    if known is None or _maps_nothing(known[0]) or not any(map(is_azure_files, facts.nfs)):
        return
    value, place = known
    wish = ParameterWish(name, "Y", _maps_nothing, "nfs-idmapping.conf")
    live = f"for now: echo Y | sudo tee {_RUNNING}, then umount and mount again" if facts.live else ""
    yield Fault(
        name,
        f"{place} says {value}: the client sends names instead of numbers as owners, and Azure Files, which "
        'knows no names, answers chgrp and chown with "Invalid argument"',
        observed=value,
        expected="Y",
        remedy="; ".join(filter(None, (lasting(facts, wish), live))),
    )


def _maps_nothing(value: str) -> bool:
    return value.lower() not in _FALSE


def inode_hash(facts: Facts) -> Iterator[Fault]:
    """Yield a kernel with a million inodes of NFS in a table of the default size."""
    held = facts.system.nfs_inodes
    if held is None or held < _MANY_INODES or not any(map(is_azure_files, facts.nfs)):
        return
    if not any(word.startswith("ihash_entries=") for word in facts.system.cmdline.split()):
        yield Fault(
            "ihash_entries",
            f"the kernel holds {held} inodes of NFS, as with very large directories, in an inode table whose "
            "size only follows the memory; for such directories the vendor asks for a larger one",
            observed="the kernel's default",
            expected="ihash_entries=16777216",
            remedy="add ihash_entries=16777216 (128 MiB) to the kernel's command line in /etc/default/grub, "
            "write the boot configuration again, and reboot",
        )


def shallow_queue(facts: Facts) -> Iterator[Fault]:
    """Yield a kernel that is older than those with which Azure Files is fast at depth."""
    kernel = facts.snapshot.kernel
    if kernel is None or kernel.version >= _DEEP or not any(map(is_azure_files, facts.nfs)):
        return
    build = el8_build(kernel)
    if build is None or build < _EL86:
        yield Fault(
            _KERNEL,
            f"{kernel.text} is older than Linux 5.0 and RHEL 8.6: the vendor supports no I/O depth above "
            "one on Azure Files with it",
            observed=kernel.text,
            expected="5.0 or later, RHEL 8.6 or later",
            remedy="install a later kernel and boot it",
        )
