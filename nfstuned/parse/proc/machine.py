"""The kernel's release, its modules, processors and slabs, and the distribution (os-release(5))."""

from __future__ import annotations

import posixpath
import re

from nfstuned.errors import ParseError
from nfstuned.model.kernel import Distribution, KernelRelease
from nfstuned.parse.fields import quoted

RELEASE = "/proc/sys/kernel/osrelease"
_VERSION = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:\.([0-9]{1,9}))?(?![0-9])")
_ASSIGNMENT = re.compile(r"([A-Za-z0-9_]+)=(?:\"(.*)\"|'(.*)'|([^\"'].*)?)")
_ESCAPE = re.compile(r"\\([\\\"'$`])")


def parse_release(text: str, file: str = RELEASE) -> KernelRelease:
    """Return the release with its version triple, missing parts 0; ParseError when there is no number."""
    release = text.strip()
    match = _VERSION.match(release)
    if match is None:
        raise ParseError(file, 1, f"not a kernel release: {quoted(release)}")
    major, minor, patch = (int(part or 0) for part in match.groups())
    return KernelRelease((major, minor, patch), release)


def parse_os_release(text: str) -> Distribution:
    """Return the distribution, with os-release(5)'s defaults; lines that are no assignment do not count."""
    values: dict[str, str] = {}
    for line in text.split("\n"):
        match = _ASSIGNMENT.fullmatch(line.strip())
        if match is not None:
            name, double, single, bare = match.groups()
            values[name] = single if single is not None else _ESCAPE.sub(r"\1", double or bare or "")
    return Distribution(
        id=values.get("ID", "linux"),
        version_id=values.get("VERSION_ID", ""),
        pretty_name=values.get("PRETTY_NAME", "Linux"),
        like=tuple(values.get("ID_LIKE", "").split()),
    )


_SUFFIX = re.compile(r"\.ko(?:\.(?:xz|zst|gz))?$")
_CHOICE = re.compile(r"(CONFIG_\w+)=([ym])", re.ASCII)


def module_name(file: str) -> str:
    """Return the module that a file is, "" where it is none; `-` and `_` are the same to the kernel."""
    name, count = _SUFFIX.subn("", posixpath.basename(file))
    return name.replace("-", "_") if count else ""


def parse_modules(text: str) -> dict[str, str]:
    """Return name and path of each module in modules.dep or modules.builtin; other lines do not count.

    A path is relative to the kernel's folder, or a whole one from an old depmod.
    """
    paths = (line.partition(":")[0].strip() for line in text.splitlines())
    return {name: path for path in paths if (name := module_name(path))}


def parse_kernel_config(text: str) -> dict[str, str]:
    """Return the choices of a kernel's .config that are y or m (Documentation/kbuild/kconfig.rst)."""
    matches = (_CHOICE.fullmatch(line.strip()) for line in text.splitlines())
    return {match[1]: match[2] for match in matches if match}


_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")


def parse_cpu_list(text: str) -> int | None:
    """Return how many processors "0-3,7" names; None where it is not such a list."""
    ranges = [_RANGE.fullmatch(part) for part in text.strip().split(",")]
    count = 0
    for match in ranges:
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        count += max(0, last - first + 1)
    return count


_CACHE = re.compile(r"^(\S+) +([0-9]{1,20}) ", re.MULTILINE)


def parse_slabinfo(text: str) -> dict[str, int]:
    """Return the active objects of each cache; headers and lines of another form are left out."""
    return {name: int(active) for name, active in _CACHE.findall(text)}
