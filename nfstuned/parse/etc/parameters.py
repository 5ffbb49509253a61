"""Kernel parameters: the files of modprobe.d(5) and of sysctl.d(5)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nfstuned.model.system import KernelSetting, RefusedModule

_NOTHING = ("true", "false")
"""Programs that load no module."""
_PARAMETER = r"""(?:[^\s"]|"[^"]*"?)+"""


def parse_modprobe(text: str, file: str) -> tuple[KernelSetting, ...]:
    """Return what `options` lines set, in their order; a parameter without a value has "".

    modprobe adds the parameters of all lines up, and of a parameter the kernel takes the last value. A
    module's name is the same with hyphens and with underscores.
    """
    settings: list[KernelSetting] = []
    for number, line in _joined_lines(text):
        words = line.split(maxsplit=2)
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
