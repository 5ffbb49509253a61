"""What is in /lib/modules/RELEASE and beside it (modules.dep(5), depmod(8)): which modules a kernel has."""

from __future__ import annotations

import posixpath
import re

_SUFFIX = re.compile(r"\.ko(?:\.(?:xz|zst|gz))?$")
_CHOICE = re.compile(r"(CONFIG_\w+)=([ym])", re.ASCII)


def module_name(file: str) -> str:
    """Return the module that a file is, "" where it is none; `-` and `_` are the same to the kernel."""
    name, found = _SUFFIX.subn("", posixpath.basename(file))
    return name.replace("-", "_") if found else ""


def parse_modules(text: str) -> dict[str, str]:
    """Return name and path of each module in modules.dep or modules.builtin; other lines do not count.

    A path is relative to the kernel's folder, or a whole one from an old depmod.
    """
    paths = (line.partition(":")[0].strip() for line in text.splitlines())
    return {name: path for path in paths if (name := module_name(path))}


def parse_kernel_config(text: str) -> dict[str, str]:
    """Return the choices of a kernel's .config that are y or m (Documentation/kbuild/kconfig.rst)."""
    found = (_CHOICE.fullmatch(line.strip()) for line in text.splitlines())
    return {match[1]: match[2] for match in found if match}
