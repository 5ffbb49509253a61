"""The facts of a host or an image that are not about a single mount, and an image's snapshot."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from nfstuned.host.observe import AZFILES, VAST, observe_intent
from nfstuned.host.policy import read_configuration
from nfstuned.host.root import Root, UnusableError
from nfstuned.model.mounts import Snapshot
from nfstuned.model.policy import ConfigError
from nfstuned.model.system import IDENTITY_UNIT, MACHINE_ID, ClientIdentity, CommandLine, System, Unit
from nfstuned.parse.etc.parameters import (
    parse_modprobe,
    parse_refused_modules,
    parse_sysctl,
    read_command_line,
)
from nfstuned.parse.etc.settings import read_nfs_utils
from nfstuned.parse.etc.tunnel import read_tls
from nfstuned.parse.etc.units import conf_files, enabled_by_preset, read_unit
from nfstuned.parse.proc.machine import (
    parse_cpu_list,
    parse_os_release,
    parse_release,
    read_kernels,
    read_releases,
)
from nfstuned.parse.proc.processes import runs_service

T = TypeVar("T")
_PROGRAMS = (
    *("sbin", "usr/sbin", "usr/bin", "bin"),
    # mount(8) of NixOS looks there; an image of it has no /run yet.
    *("run/wrappers/bin", "run/current-system/sw/bin", "nix/var/nix/profiles/system/sw/bin"),
)
_HELPERS = (
    *("mount.nfs", "mount.nfs4", "mount.aznfs", "mount.efs", "mount.cifs", "mount.smb3"),
    *("cachefilesd", "tlshd", "rpc.statd"),
)
_PARAMETERS = {"nfs": "sys/module/nfs/parameters", "sunrpc": "sys/module/sunrpc/parameters"}
_SYSCTLS = "proc/sys/sunrpc"
_SYSCTL_CONF = "etc/sysctl.conf"
_SCRIPTS = (
    *("etc/systemd/system", "usr/lib/systemd/system", "usr/local/bin", "usr/local/sbin", "etc/cron.d"),
    *("etc/tmpfiles.d", "etc/cloud/cloud.cfg.d", "etc/NetworkManager/dispatcher.d"),
)
_MOST_SCRIPTS = 2000
_BINARY = b"\x7fELF"
_SYSCTL = r"(?<![\w-])sysctl(?![\w.-])"
_STARTS = r"systemctl|Exec[A-Za-z]{3,12}="
_SYSCTLS_OF_NFS = ("sunrpc.", "fs.nfs.")
_MODULES = r"(?:sunrpc|auth[_-]rpcgss|rpcsec[_-]gss[_-]krb5|rpcrdma|lockd|nfs(?:d|v[34])?)\b"
_LOADED = rf"(?:rd\.)?modules[_-]load=(?:[^,]*,)*{_MODULES}"
"""A word of the kernel's command line (systemd-modules-load.service(8))."""
_IN_TIME = {
    "modules-load.d": rf"(?m)^[ \t]*{_MODULES}",
    "modprobe.d": rf"(?m)^[ \t]*install[ \t]+{_MODULES}.*sysctl",
}
"""The lines that load a module of NFS before systemd-sysctl runs, or run sysctl with it, by their folder."""


def observe_system(root: Root, *, image: bool) -> System:
    """Return the parameters, helpers and services; of an image nothing that only a running kernel knows."""
    helpers = {name for name in _HELPERS for folder in _PROGRAMS if root.executable(f"{folder}/{name}")}
    last = root.read_or_empty(_SYSCTL_CONF)
    written = System(
        # The settings at the load of modules, then those of sysctl. sysctl.conf comes last: nfs-utils may run
        # `sysctl --system` when sunrpc appears (its udev rule 60-nfs.rules, before that its modprobe.d file),
        # and procps reads that file after all others. systemd-sysctl does not.
        settings=(
            *_parsed(root, "modprobe.d", parse_modprobe),
            *_parsed(root, "sysctl.d", parse_sysctl),
            *parse_sysctl(last, "/" + _SYSCTL_CONF),
        ),
        unread_settings=tuple(
            setting
            for folder, parse in (("etc/modprobe.d", parse_modprobe), ("etc/sysctl.d", parse_sysctl))
            for name in root.names(folder)
            if "." not in name and not root.exists(f"{folder}/{name}.conf")
            for setting in parse(_script(root, f"{folder}/{name}"), f"/{folder}/{name}")
        ),
        refused_modules=tuple(_parsed(root, "modprobe.d", parse_refused_modules)),
        helpers=frozenset(helpers),
        daemon=read_service(root, image=image),
        tls=read_tls(root, image=image),
        rpcbind_masked=all(
            read_unit(root, f"rpcbind.{kind}", image=True).masked for kind in ("service", "socket")
        ),
        nfs_utils=read_nfs_utils(root),
    )
    if image:
        known = at_first_boot(root, written)
    else:
        known = replace(
            written,
            parameters=_parameters(root),
            cmdline=CommandLine(root.read_or_empty("proc/cmdline").strip()),
            cpus=parse_cpu_list(root.read_or_empty("sys/devices/system/cpu/online")),
            fips=root.read_or_empty("proc/sys/crypto/fips_enabled").strip() == "1",
        )
    known = replace(known, sysctls_in_time=_sysctls_in_time(root, known))
    return replace(known, client=observe_identity(root, known.cmdline, image=image))


def read_service(root: Root, *, image: bool = False) -> Unit:
    """Return the state of nfstuned's service, which may run without systemd, as in a container."""
    unit = read_unit(root, SERVICE, image=image)
    return unit if image or unit.active or not runs_service(root) else unit._replace(active=True)


def _parameters(root: Root) -> dict[str, str]:
    """Return the kernel's current values, by the name of module and parameter."""
    values = {
        f"{module}.{name}": root.read_or_empty(f"{folder}/{name}").strip()
        for module, folder in _PARAMETERS.items()
        for name in root.names(folder)
    }
    # The same numbers once more where sunrpc has them as sysctls, and a few that it has only there.
    for name in root.names(_SYSCTLS):
        values[f"sunrpc.{name}"] = root.read_or_empty(f"{_SYSCTLS}/{name}").strip()
    return {name: value for name, value in values.items() if value}


def _sysctls_in_time(root: Root, system: System) -> bool | None:
    """Return whether a file other than udev's rules lets sysctls of NFS take effect.

    A file loads a module of NFS before systemd-sysctl runs, or runs sysctl later, or sunrpc is built in.
    None without settings of NFS, or where files are unread.
    """
    if not any(each.name.startswith(_SYSCTLS_OF_NFS) for each in system.settings):
        return None
    with root.faults.block() as faults:
        texts = [
            (pattern, root.read_or_empty(file).replace("\\\n", " "))
            for folder, pattern in _IN_TIME.items()
            for file in (*conf_files(root, folder), "etc/modules")
        ]
        built_in = (
            root.read_or_empty(f"{folder}/modules.builtin") for folder in read_releases(root).values()
        )
        in_time = (
            any(re.search(pattern, text) for pattern, text in texts)
            or any(re.match(_LOADED, word) for word in system.cmdline.words)
            or any("/sunrpc.ko" in text for text in built_in)
            or bool(_scripts(root, calls_sysctl, (name for name in _SCRIPTS if name.startswith("etc/"))))
        )
    return in_time or (None if faults else False)


def _parsed(root: Root, folder: str, parse: Callable[[str, str], Sequence[T]]) -> Iterator[T]:
    for file in conf_files(root, folder):
        yield from parse(root.read_or_empty(file), "/" + file)


_CLOUD = "etc/cloud"
_NAME, _NAME_OF_IMAGE = "proc/sys/kernel/hostname", "etc/hostname"
_IDENTIFIER, _NONE = "sys/fs/nfs/net/nfs_client/identifier", "(null)"
_MACHINE_ID = MACHINE_ID[1:]
_MACHINE_ID_OF_DBUS, _ID = "var/lib/dbus/machine-id", re.compile(r"(?!0{32})[0-9A-Fa-f]{32}\n?")
_NAMERS = ("etc/waagent.conf", "usr/bin/ignition", "usr/lib/dracut/modules.d/30ignition")
"""Programs other than cloud-init that name each instance of an image: Azure's agent, Ignition."""


def observe_identity(root: Root, cmdline: CommandLine, *, image: bool) -> ClientIdentity:
    """Return who the host is to servers of NFSv4; of an image, who each of its clones will be.

    `cmdline` is the kernel's.
    """
    name = root.read_or_empty(_NAME_OF_IMAGE if image else _NAME)
    renamed, machine_ids = False, list[str]()
    if image:
        renamed = any(map(root.exists, _NAMERS))
        if not renamed and root.exists(_CLOUD):
            from nfstuned.parse.etc.cloud import names_clones  # noqa: PLC0415 - the YAML loader is slow to load

            renamed = names_clones(root, cmdline)
        # D-Bus's file would count once the other is empty; no link to it is followed (systemd,
        # src/shared/machine-id-setup.c).
        if _ID.fullmatch(root.read_or_empty(_MACHINE_ID)):
            machine_ids.append(f"/{_MACHINE_ID}")
        if root.link(_MACHINE_ID_OF_DBUS) is None and _ID.fullmatch(root.read_or_empty(_MACHINE_ID_OF_DBUS)):
            machine_ids.append(f"/{_MACHINE_ID_OF_DBUS}")
    # hostname(5): comments are ignored.
    lines = (line.strip() for line in name.splitlines())
    known = next((line for line in lines if line and not line.startswith("#")), None)
    identifier = "" if image else root.read_or_empty(_IDENTIFIER).strip()
    return ClientIdentity(
        known,
        "" if identifier == _NONE else identifier,
        renamed=renamed,
        given=read_unit(root, IDENTITY_UNIT, image=image).enabled,
        machine_ids=tuple(machine_ids),
    )


SERVICE = "nfstuned.service"


def observe_image(root: Root) -> Snapshot:
    """Return the requests of an image's files, and its newest kernel; it has no live mounts."""
    collected, releases = observe_intent(root, ()), list(read_releases(root))
    if root.exists(_CLOUD):
        from nfstuned.parse.etc.cloud import read_cloud_mounts  # noqa: PLC0415 - the YAML loader is slow to load

        read_cloud_mounts(root, collected, read_command_line(root, releases[-1] if releases else ""))
    return Snapshot(
        requests=tuple(collected.requests),
        misnamed=tuple(collected.misnamed),
        unloaded=tuple(collected.unloaded),
        unstarted=tuple(collected.unstarted),
        unordered=tuple(collected.unordered),
        local=tuple(collected.local),
        early=tuple(collected.early),
        misplaced=tuple(collected.misplaced),
        storages=collected.storages,
        settings=tuple(collected.settings),
        azfiles=root.exists(AZFILES),
        vast=root.executable(VAST),
        maps=tuple(collected.maps),
        automounted=tuple(collected.automounted),
        kernel=parse_release(releases[-1]) if releases else None,
        distribution=parse_os_release(
            root.read_or_empty("etc/os-release") or root.read_or_empty("usr/lib/os-release")
        ),
        problems=tuple(collected.problems),
        root=root.prefix,
    )


def at_first_boot(root: Root, system: System) -> System:
    """Return the facts of an image, with those that only its first boot will show."""
    daemon = system.daemon
    enabled = daemon.enabled or (daemon.installed and enabled_by_preset(root, SERVICE))
    problems: tuple[str, ...] = ()
    try:
        read_configuration(root)
    except ConfigError as error:
        problems = error.problems
    kernels = read_kernels(root)
    return replace(
        system,
        daemon=daemon._replace(enabled=enabled),
        config_problems=problems,
        kernels=kernels,
        cmdline=read_command_line(root, kernels[-1].release if kernels else ""),
        scripts=_scripts(root, lambda text: "read_ahead_kb" in text, _SCRIPTS),
    )


def _scripts(root: Root, holds: Callable[[str], bool], folders: Iterable[str]) -> tuple[str, ...]:
    """Return the services, their drop-ins, and the scripts with such a text, but for nfstuned's own."""
    names = ((folder, name) for folder in folders for name in root.names(folder))
    places = [f"{folder}/{name}" for folder, name in names if not name.startswith("nfstuned")]
    drop_ins = [
        f"{place}/{name}" for place in places if place.endswith(".service.d") for name in root.names(place)
    ]
    files = [*places, *drop_ins][:_MOST_SCRIPTS]
    files += ["etc/rc.local", "etc/rc.d/rc.local", "etc/crontab"]
    return tuple(f"/{file}" for file in files if holds(_script(root, file)))


def calls_sysctl(text: str) -> bool:
    """Return whether a script or a service runs sysctl, or starts systemd-sysctl.service.

    Many services are only ordered after that service.
    """
    for line in text.split("\n"):
        before, service, _ = line.partition("systemd-sysctl")
        runs = re.search(_SYSCTL, line) or (service and re.search(_STARTS, before))
        if runs and not line.lstrip().startswith(("#", ";")):
            return True
    return False


def _script(root: Root, file: str) -> str:
    """Return a file's text; "" where it is absent, unreadable, no regular file, too large, or a binary."""
    try:
        data = root.read_bytes(file)
        return "" if data.startswith(_BINARY) else data.decode("utf-8", "surrogateescape")
    except UnusableError:
        root.faults.forget(file)
        return ""
    except OSError:
        return ""
