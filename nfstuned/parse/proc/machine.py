"""The kernel's release, its modules, processors and slabs, and the distribution (os-release(5))."""

from __future__ import annotations

import posixpath
import re

from nfstuned.errors import ParseError
from nfstuned.model.kernel import Distribution, KernelRelease
from nfstuned.parse.fields import quoted

RELEASE = "/proc/sys/kernel/osrelease"
_VERSION = r"([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:\.([0-9]{1,9}))?(?![0-9])"
_ASSIGNMENT = r"([A-Za-z0-9_]+)=(?:\"(.*)\"|'(.*)'|([^\"'].*)?)"
_ESCAPE = r"\\([\\\"'$`])"


def parse_release(text: str, file: str = RELEASE) -> KernelRelease:
    """Return the release with its version triple, missing parts 0; ParseError when there is no number."""
    release = text.strip()
    match = re.match(_VERSION, release)
    if match is None:
        raise ParseError(file, 1, f"not a kernel release: {quoted(release)}")
    major, minor, patch = (int(part or 0) for part in match.groups())
    return KernelRelease((major, minor, patch), release)


def parse_os_release(text: str) -> Distribution:
    """Return the distribution, with os-release(5)'s defaults; lines that are no assignment do not count."""
    values: dict[str, str] = {}
    for line in text.split("\n"):
        match = re.fullmatch(_ASSIGNMENT, line.strip())
        if match is not None:
            name, double, single, bare = match.groups()
            values[name] = single if single is not None else re.sub(_ESCAPE, r"\1", double or bare or "")
    return Distribution(
        id=values.get("ID", "linux"),
        version_id=values.get("VERSION_ID", ""),
        pretty_name=values.get("PRETTY_NAME", "Linux"),
        like=tuple(values.get("ID_LIKE", "").split()),
    )


_SUFFIX = r"\.ko(?:\.(?:xz|zst|gz))?$"
_CHOICE = r"(?a)(CONFIG_\w+)=([ym])"


def module_name(file: str) -> str:
    """Return the module that a file is, "" where it is none; `-` and `_` are the same to the kernel."""
    name, endings = re.subn(_SUFFIX, "", posixpath.basename(file))
    return name.replace("-", "_") if endings else ""


def parse_modules(text: str) -> dict[str, str]:
    """Return name and path of each module in modules.dep or modules.builtin; other lines do not count.

    A path is relative to the kernel's folder, or absolute where an old depmod wrote it.
    """
    paths = (line.partition(":")[0].strip() for line in text.splitlines())
    return {name: path for path in paths if (name := module_name(path))}


def parse_kernel_config(text: str) -> dict[str, str]:
    """Return the choices of a kernel's .config that are y or m (Documentation/kbuild/kconfig.rst)."""
    pattern = re.compile(_CHOICE)
    choices = (pattern.fullmatch(line.strip()) for line in text.splitlines())
    return {choice[1]: choice[2] for choice in choices if choice}


_RANGE = r"([0-9]{1,6})(?:-([0-9]{1,6}))?"


def parse_cpu_list(text: str) -> int | None:
    """Return how many processors "0-3,7" names; None where it is not such a list."""
    ranges = [re.fullmatch(_RANGE, part) for part in text.strip().split(",")]
    count = 0
    for match in ranges:
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        count += max(0, last - first + 1)
    return count


def parse_slabinfo(text: str) -> dict[str, int]:
    """Return the active objects of each cache; headers and lines of another form are left out."""
    return {name: int(active) for name, active in re.findall(r"(?m)^(\S+) +([0-9]{1,20}) ", text)}
