"""What an image's files say of its first boot: what it mounts, with which kernels, and what it starts."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType

from nfstuned.errors import ConfigError, ParseError
from nfstuned.host.config import find_files
from nfstuned.host.look.cloud import observe_cloud
from nfstuned.host.look.host import AZFILES
from nfstuned.host.look.requests import observe_intent
from nfstuned.host.root import Root
from nfstuned.model.mounts import Snapshot
from nfstuned.model.system import CommandLine, ImageKernel, System
from nfstuned.parse.etc.boot import (
    parse_boot_entry,
    parse_grub_config,
    parse_grub_defaults,
    parse_grub_environment,
)
from nfstuned.parse.etc.units import preset_enables
from nfstuned.parse.proc.machine import (
    module_name,
    parse_kernel_config,
    parse_modules,
    parse_os_release,
    parse_release,
)
from nfstuned.parse.versions import newest_last

SERVICE = "nfstuned.service"
MODULES = ("usr/lib/modules", "lib/modules")
"""The second is the first where /lib is a link."""
WANTED = {"nfs": "CONFIG_NFS_FS", "nfsv3": "CONFIG_NFS_V3", "nfsv4": "CONFIG_NFS_V4", "cifs": "CONFIG_CIFS"}
"""The modules that mounts need, and what builds each (fs/nfs/Makefile, fs/smb/client/Makefile)."""
_HOMES = ("kernel/fs/nfs", "kernel/fs/smb/client", "kernel/fs/cifs")
"""cifs was in the last of them before Linux 6.4."""
_PRESETS = (
    "etc/systemd/system-preset",
    "usr/local/lib/systemd/system-preset",
    "usr/lib/systemd/system-preset",
)
_ENTRIES = ("boot/loader/entries", "efi/loader/entries", "boot/efi/loader/entries")
_GRUB = ("boot/grub2", "boot/grub")
_KERNEL_INSTALL = "etc/kernel/cmdline"
_GRUB_DEFAULTS, _GRUB_DEFAULTS_D = "etc/default/grub", "etc/default/grub.d"


def observe_image(root: Root) -> Snapshot:
    """Return what an image's files ask for, and its newest kernel; no kernel runs that could have mounts."""
    collected = observe_intent(root, ())
    observe_cloud(root, collected)
    releases = list(_installed(root))
    return Snapshot(
        requests=tuple(collected.requests),
        misnamed=tuple(collected.misnamed),
        settings=tuple(collected.settings),
        azfiles=root.exists(AZFILES),
        maps=tuple(collected.maps),
        kernel=parse_release(releases[-1]) if releases else None,
        distribution=parse_os_release(
            root.read_or_empty("etc/os-release") or root.read_or_empty("usr/lib/os-release")
        ),
        problems=tuple(collected.problems),
        root=root.prefix,
    )


def at_first_boot(root: Root, system: System) -> System:
    """Return what is known of an image, with what only its first boot will show."""
    daemon = system.daemon
    enabled = daemon.enabled or (daemon.installed and enabled_by_preset(root, SERVICE))
    problems: tuple[str, ...] = ()
    try:
        if find_files(root):
            from nfstuned.host.config_load import load  # noqa: PLC0415 - pydantic is slow to load

            load(root)
    except ConfigError as error:
        problems = error.problems
    kernels = observe_kernels(root)
    return replace(
        system,
        daemon=replace(daemon, enabled=enabled),
        config_problems=problems,
        kernels=kernels,
        cmdline=observe_command_line(root, kernels[-1].release if kernels else ""),
    )


def observe_kernels(root: Root) -> tuple[ImageKernel, ...]:
    """Return the kernels that are installed in an image, the newest last."""
    kernels = []
    for release, folder in _installed(root).items():
        # Debian has the file in /boot, Fedora and SUSE beside the modules.
        places = (f"boot/config-{release}", f"{folder}/config", f"{folder}/build/.config")
        text = next((text for name in places if (text := root.read_or_empty(name))), "")
        config = parse_kernel_config(text)
        built_in = parse_modules(root.read_or_empty(f"{folder}/modules.builtin"))
        files = (module_name(file) for home in _HOMES for file in root.names(f"{folder}/{home}"))
        present = {*built_in, *files, *(name for name, key in WANTED.items() if config.get(key) == "y")}
        if not present.issuperset(WANTED):
            present |= _elsewhere(root, folder)
        kernels.append(ImageKernel(release, frozenset(present & WANTED.keys()), MappingProxyType(config)))
    return tuple(kernels)


def observe_command_line(root: Root, release: str) -> CommandLine:
    """Return what a kernel of an image is booted with; an empty line where no file tells.

    What the boot loader reads counts before that of which the next update would make it.
    """
    environment = parse_grub_environment("".join(root.read_or_empty(f"{folder}/grubenv") for folder in _GRUB))
    for folder in _ENTRIES:
        for name in root.names(folder):
            file = f"{folder}/{name}"
            if name.endswith(".conf"):
                options = parse_boot_entry(root.read_or_empty(file), release, environment)
                if options is not None:
                    return CommandLine(options, f"/{file}")
    for file in (f"{folder}/grub.cfg" for folder in _GRUB):
        words = parse_grub_config(root.read_or_empty(file), release)
        if words is not None:
            return CommandLine(words, f"/{file}")
    if text := root.read_or_empty(_KERNEL_INSTALL).strip():
        return CommandLine(text, f"/{_KERNEL_INSTALL}")
    values = parse_grub_defaults(root.read_or_empty(_GRUB_DEFAULTS), {})
    for name in root.names(_GRUB_DEFAULTS_D):
        if name.endswith(".cfg"):
            values = parse_grub_defaults(root.read_or_empty(f"{_GRUB_DEFAULTS_D}/{name}"), values)
    # As grub.d/10_linux has them: of a parameter in both, that of _DEFAULT is the last.
    lines = (values.get(name, "") for name in ("GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"))
    return CommandLine(" ".join(filter(None, lines)), f"/{_GRUB_DEFAULTS}")


def enabled_by_preset(root: Root, unit: str) -> bool:
    """Return whether systemd will enable a unit at the image's first boot, as machine-id(5) tells when.

    An image without a machine id boots for the first time; systemd then does what the presets say, which
    for a unit that none of them names is to enable it. A masked unit stays as it is.
    """
    if root.exists("etc/machine-id") and root.read_or_empty("etc/machine-id").strip() != "uninitialized":
        return False
    if root.exists(f"etc/systemd/system/{unit}") and not root.read_or_empty(f"etc/systemd/system/{unit}"):
        return False
    files: dict[str, str] = {}
    for folder in _PRESETS:
        for name in root.names(folder):
            if name.endswith(".preset"):
                files.setdefault(name, f"{folder}/{name}")
    return preset_enables((root.read_or_empty(files[name]) for name in sorted(files)), unit)


def _installed(root: Root) -> dict[str, str]:
    """Return the folder of each kernel's modules by its release, the newest last.

    The folder of a kernel that was removed can stay, with what depmod wrote; modules.builtin was packaged.
    """
    folders: dict[str, str] = {}
    for parent in MODULES:
        for release in root.names(parent):
            with suppress(ParseError):
                parse_release(release)
                if root.exists(f"{parent}/{release}/modules.builtin"):
                    folders.setdefault(release, f"{parent}/{release}")
    return {release: folders[release] for release in newest_last(list(folders))}


def _elsewhere(root: Root, folder: str) -> set[str]:
    """Return the wanted modules that depmod lists in other folders, and that are there."""
    paths = parse_modules(root.read_or_empty(f"{folder}/modules.dep"))
    places = {
        name: path[1:] if path.startswith("/") else f"{folder}/{path}"
        for name in WANTED
        if (path := paths.get(name)) is not None
    }
    return {name for name, place in places.items() if root.exists(place)}
