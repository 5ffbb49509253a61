"""What of a host or an image is not about a single mount: parameters, helpers, services."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from nfstuned.host.look.folders import conf_files
from nfstuned.host.look.identity import observe_identity
from nfstuned.host.look.image import at_first_boot
from nfstuned.host.look.nfsmount import observe_nfs_utils
from nfstuned.host.look.services import observe_unit
from nfstuned.host.look.tls import observe_tls
from nfstuned.host.root import Root
from nfstuned.model.system import CommandLine, System
from nfstuned.parse.etc.parameters import parse_modprobe, parse_refused_modules, parse_sysctl
from nfstuned.parse.proc.machine import parse_cpu_list, parse_slabinfo

T = TypeVar("T")
_PROGRAMS = (
    *("sbin", "usr/sbin", "usr/bin", "bin"),
    # mount(8) of NixOS looks there; an image of it has no /run yet.
    *("run/wrappers/bin", "run/current-system/sw/bin", "nix/var/nix/profiles/system/sw/bin"),
)
_HELPERS = ("mount.nfs", "mount.nfs4", "mount.aznfs", "mount.cifs")
_PARAMETERS = {
    "nfs": "sys/module/nfs/parameters",
    "sunrpc": "sys/module/sunrpc/parameters",
}
_SYSCTLS = "proc/sys/sunrpc"
_SYSCTL_CONF = "etc/sysctl.conf"
_INODES = "nfs_inode_cache"


def observe_system(root: Root, *, image: bool) -> System:
    """Return the parameters, helpers and services; of an image nothing that only a running kernel knows."""
    helpers = (name for name in _HELPERS if any(root.executable(f"{folder}/{name}") for folder in _PROGRAMS))
    last = root.read_or_empty(_SYSCTL_CONF)
    written = System(
        # What is set when modules are loaded, and then by sysctl. sysctl.conf comes last: nfs-utils runs
        # `sysctl --system` when sunrpc appears (its udev rule 60-nfs.rules, before that its modprobe.d file),
        # and procps reads that file after all others. systemd-sysctl does not.
        settings=(
            *_parsed(root, "modprobe.d", parse_modprobe),
            *_parsed(root, "sysctl.d", parse_sysctl),
            *parse_sysctl(last, "/" + _SYSCTL_CONF),
        ),
        refused_modules=tuple(_parsed(root, "modprobe.d", parse_refused_modules)),
        helpers=frozenset(helpers),
        daemon=observe_unit(root, "nfstuned.service", image=image),
        tls=observe_tls(root, image=image),
        nfs_utils=observe_nfs_utils(root),
    )
    known = at_first_boot(root, written) if image else _running(root, written)
    return replace(known, client=observe_identity(root, known.cmdline, image=image))


def _running(root: Root, written: System) -> System:
    """Return what is known of a host, with what its kernel has now."""
    return replace(
        written,
        parameters=_parameters(root),
        cmdline=CommandLine(root.read_or_empty("proc/cmdline").strip()),
        cpus=parse_cpu_list(root.read_or_empty("sys/devices/system/cpu/online")),
        nfs_inodes=parse_slabinfo(root.read_or_empty("proc/slabinfo")).get(_INODES),
        fips=root.read_or_empty("proc/sys/crypto/fips_enabled").strip() == "1",
    )


def _parameters(root: Root) -> dict[str, str]:
    """Return what is set now in the kernel, by the name of module and parameter."""
    values = {
        f"{module}.{name}": root.read_or_empty(f"{folder}/{name}").strip()
        for module, folder in _PARAMETERS.items()
        for name in root.names(folder)
    }
    # The same numbers once more where sunrpc has them as sysctls, and a few that it has only there.
    for name in root.names(_SYSCTLS):
        values[f"sunrpc.{name}"] = root.read_or_empty(f"{_SYSCTLS}/{name}").strip()
    return {name: value for name, value in values.items() if value}


def _parsed(root: Root, folder: str, parse: Callable[[str, str], Sequence[T]]) -> Iterator[T]:
    for file in conf_files(root, folder):
        yield from parse(root.read_or_empty(file), "/" + file)
