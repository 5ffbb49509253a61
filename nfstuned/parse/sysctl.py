"""The files of sysctl.d (sysctl.d(5), sysctl.conf(5))."""

from __future__ import annotations

from nfstuned.model.system import KernelSetting

_COMMENTS = ("#", ";")


def parse_sysctl(text: str, file: str) -> tuple[KernelSetting, ...]:
    """Return the assignments in their order, with dots in their names; a name alone assigns nothing.

    A hyphen before a name only says that a failure does not matter. Where the first separator of a name is a
    slash, dots and slashes have changed places: "net/ipv4/conf/eth0.1/forwarding".
    """
    found: list[KernelSetting] = []
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip()
        if not content or content.startswith(_COMMENTS):
            continue
        name, separator, value = content.partition("=")
        if separator:
            found.append(KernelSetting(_dotted(name.strip().removeprefix("-")), value.strip(), file, number))
    return tuple(found)


def _dotted(name: str) -> str:
    slash, dot = name.find("/"), name.find(".")
    if slash < 0 or 0 <= dot < slash:
        return name
    return name.translate(str.maketrans("/.", "./"))
