"""Which command line a kernel of an image is booted with, by the files of its boot loader.

Boot Loader Specification, type 1; GRUB's own grub.cfg and grubenv (its environment block); and the values of
/etc/default/grub, of which grub-mkconfig makes the former.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
_LINUX = re.compile(r"\s*(?:linux|linux16|linuxefi)\s+(?P<file>\S+)(?P<words>.*)")
_DEFAULTS = re.compile(r"\s*(?P<name>GRUB_CMDLINE_LINUX(?:_DEFAULT)?)=(?P<value>.*)")


def parse_boot_entry(text: str, release: str, environment: Mapping[str, str]) -> str | None:
    """Return the options of an entry of the Boot Loader Specification; None where it is another kernel's.

    GRUB replaces variables such as $kernelopts by those of its environment; systemd-boot has none.
    """
    keys: dict[str, str] = {}
    for line in text.splitlines():
        key, value = [*line.split(None, 1), "", ""][:2]
        if key == "options":
            keys[key] = f"{keys.get(key, '')} {value}"
        else:
            keys[key] = value.strip()
    if not release or release not in {keys.get("version"), _release(keys.get("linux", ""))}:
        return None
    return _VARIABLE.sub(lambda match: environment.get(match[1], ""), keys.get("options", "")).strip()


def parse_grub_config(text: str, release: str) -> str | None:
    """Return the words of the first menu entry of a kernel in grub.cfg; None where it has none."""
    for line in text.splitlines():
        match = _LINUX.fullmatch(line)
        if match and release and _release(match["file"]) == release:
            return match["words"].strip()
    return None


def parse_grub_environment(text: str) -> Mapping[str, str]:
    """Return the variables of grubenv, a block that is filled up with `#`."""
    lines = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, separator, value in lines if separator}


def parse_grub_defaults(text: str, known: Mapping[str, str]) -> Mapping[str, str]:
    """Return the command lines after a file like /etc/default/grub; `known` are those of the files before.

    Of a shell's work quotes are taken away, and these variables are replaced.
    """
    values = dict(known)
    for line in text.splitlines():
        match = _DEFAULTS.fullmatch(line)
        if match:
            try:
                words = shlex.split(match["value"], comments=True)
            except ValueError:
                continue
            value = words[0] if words else ""
            values[match["name"]] = _VARIABLE.sub(lambda name: values.get(name[1], ""), value)
    return values


def _release(kernel_file: str) -> str:
    """Return the release in the name of a kernel's file: "vmlinuz-6.1.0-40-amd64"."""
    return kernel_file.rpartition("/")[2].partition("-")[2]
