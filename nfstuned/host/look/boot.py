"""The command line that an image's kernel will be booted with, as its boot loader's files have it."""

from __future__ import annotations

from nfstuned.host.root import Root
from nfstuned.model.system import CommandLine
from nfstuned.parse.etc.boot import (
    parse_boot_entry,
    parse_grub_config,
    parse_grub_defaults,
    parse_grub_environment,
)

_ENTRIES = ("boot/loader/entries", "efi/loader/entries", "boot/efi/loader/entries")
_GRUB = ("boot/grub2", "boot/grub")
_KERNEL_INSTALL = "etc/kernel/cmdline"
_DEFAULTS, _DEFAULTS_D = "etc/default/grub", "etc/default/grub.d"


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
    values = parse_grub_defaults(root.read_or_empty(_DEFAULTS), {})
    for name in root.names(_DEFAULTS_D):
        if name.endswith(".cfg"):
            values = parse_grub_defaults(root.read_or_empty(f"{_DEFAULTS_D}/{name}"), values)
    # As grub.d/10_linux has them: of a parameter in both, that of _DEFAULT is the last.
    lines = (values.get(name, "") for name in ("GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"))
    return CommandLine(" ".join(filter(None, lines)), f"/{_DEFAULTS}")
