"""Kernel parameters: the files of modprobe.d(5) and of sysctl.d(5)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from nfstuned.model.system import CommandLine, KernelSetting, RefusedModule
from nfstuned.parse.tree import FileTree

_NOTHING = ("true", "false")
"""Programs that load no module."""
_PARAMETER = r"""(?:[^\s"]|"[^"]*"?)+"""
_COMMANDS = (
    *("alias", "blacklist", "config", "include", "install", "options", "remove", "softdep", "weakdep"),
)
_OF_NFS = r"\b(?:sunrpc|lockd|nfs(?:v[34])?)\b.*="


def parse_modprobe(text: str, file: str) -> tuple[KernelSetting, ...]:
    """Return the settings of `options` lines in their order; a parameter without a value has "".

    modprobe adds the parameters of all lines up, and of a parameter the kernel takes the last value. A
    module's name is the same with hyphens and with underscores. A line about NFS that begins with no command
    of modprobe's is a setting without a name (libkmod-config.c: "ignoring bad line").
    """
    settings: list[KernelSetting] = []
    for number, line in _joined_lines(text):
        words = line.split(maxsplit=2)
        joined = re.fullmatch(r"\s*options\s+\w+\.\S+=\S*\s*", line)
        if words and (joined or words[0] not in _COMMANDS) and re.search(_OF_NFS, line):
            settings.append(KernelSetting("", line.strip(), file, number))
        if len(words) != 3 or words[0] != "options":  # noqa: PLR2004 - the word, a module, its parameters
            continue
        module = words[1].replace("-", "_")
        for token in re.findall(_PARAMETER, words[2]):
            name, _, value = token.partition("=")
            settings.append(KernelSetting(f"{module}.{name.replace('-', '_')}", value, file, number))
    return tuple(settings)


def parse_refused_modules(text: str, file: str) -> tuple[RefusedModule, ...]:
    """Return the `install` lines of modprobe.d that let a module never be loaded, as hardening guides do."""
    refused = []
    for number, line in _joined_lines(text):
        words = line.split()
        if len(words) == 3 and words[0] == "install" and words[2].rpartition("/")[2] in _NOTHING:  # noqa: PLR2004 - the word, a module, its program
            refused.append(RefusedModule(words[1].replace("-", "_"), file, number))
    return tuple(refused)


def _joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its number, comments left out; a backslash joins a line with the next."""
    start, held = 1, ""
    for number, line in enumerate(text.split("\n"), 1):
        start = start if held else number
        if line.endswith("\\"):
            held += line[:-1]
            continue
        if not (held + line).lstrip().startswith("#"):
            yield start, held + line
        held = ""
    yield start, held


_COMMENTS = ("#", ";")


def parse_sysctl(text: str, file: str) -> tuple[KernelSetting, ...]:
    """Return the assignments in their order, with dots in their names; a name alone assigns nothing.

    A hyphen before a name only says that a failure does not matter. Where the first separator of a name is a
    slash, dots and slashes have changed places: "net/ipv4/conf/eth0.1/forwarding".
    """
    settings: list[KernelSetting] = []
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip()
        if not content or content.startswith(_COMMENTS):
            continue
        name, separator, value = content.partition("=")
        if separator:
            name = name.strip().removeprefix("-")
            if "/" in name and "." not in name.partition("/")[0]:
                name = name.translate(str.maketrans("/.", "./"))
            settings.append(KernelSetting(name, value.strip(), file, number))
    return tuple(settings)


_VARIABLE = r"\$\{?([A-Za-z_]\w*)\}?"
_LINUX = r"\s*(?:linux|linux16|linuxefi)\s+(?P<file>\S+)(?P<words>.*)"
_GRUB_LINE = r"\s*(?P<name>GRUB_CMDLINE_LINUX(?:_DEFAULT)?)=(?P<value>.*)"


def parse_boot_entry(text: str, release: str, environment: Mapping[str, str]) -> str | None:
    """Return the options of an entry of the Boot Loader Specification; None for an entry of another kernel.

    GRUB replaces variables such as $kernelopts by those of its environment; systemd-boot has none.
    """
    keys: dict[str, str] = {}
    for line in text.splitlines():
        key, value = [*line.split(None, 1), "", ""][:2]
        keys[key] = f"{keys.get(key, '')} {value}" if key == "options" else value.strip()
    if not release or release not in {keys.get("version"), _release(keys.get("linux", ""))}:
        return None
    return re.sub(_VARIABLE, lambda match: environment.get(match[1], ""), keys.get("options", "")).strip()


def parse_grub_config(text: str, release: str) -> str | None:
    """Return the words of the first menu entry of a kernel in grub.cfg; None where it has none."""
    for line in text.splitlines():
        match = re.fullmatch(_LINUX, line)
        if match and release and _release(match["file"]) == release:
            return match["words"].strip()
    return None


def parse_grub_environment(text: str) -> Mapping[str, str]:
    """Return the variables of grubenv, a block that is filled up with `#`."""
    lines = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, separator, value in lines if separator}


def parse_grub_defaults(text: str, known: Mapping[str, str]) -> Mapping[str, str]:
    """Return the command lines after a file like /etc/default/grub; `known` has the lines of earlier files.

    Quotes are taken away and these variables replaced, as a shell does; nothing else of a shell is done.
    """
    values = dict(known)
    for line in text.splitlines():
        match = re.fullmatch(_GRUB_LINE, line)
        if match:
            try:
                words = shlex.split(match["value"], comments=True)
            except ValueError:
                continue
            value = words[0] if words else ""
            values[match["name"]] = re.sub(_VARIABLE, lambda name: values.get(name[1], ""), value)
    return values


def _release(kernel_file: str) -> str:
    """Return the release in the name of a kernel's file: "vmlinuz-6.1.0-40-amd64"."""
    return kernel_file.rpartition("/")[2].partition("-")[2]


_ENTRIES = ("boot/loader/entries", "efi/loader/entries", "boot/efi/loader/entries")
_GRUB = ("boot/grub2", "boot/grub")
_KERNEL_INSTALL = "etc/kernel/cmdline"
_GRUB_DEFAULTS, _GRUB_DEFAULTS_D = "etc/default/grub", "etc/default/grub.d"


def read_command_line(root: FileTree, release: str) -> CommandLine:
    """Return the command line of a kernel of an image; an empty line where no file has it.

    The boot loader's own file counts before the files from which the next update would make it.
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
    # In the order of grub.d/10_linux: for a parameter in both, the value in _DEFAULT counts.
    lines = (values.get(name, "") for name in ("GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"))
    return CommandLine(" ".join(filter(None, lines)), f"/{_GRUB_DEFAULTS}")
