"""The kernel's release (uname(2)) and the distribution (os-release(5))."""

from __future__ import annotations

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
