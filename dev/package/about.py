"""Which release is packed, and by whom."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from dev.package.run import PROJECT, BuildError, run

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""Debian's names of the architectures that packages exist for, with those of wheels and of rpm."""
MAINTAINER = "nfstuned maintainers <maintainers@nfstuned.invalid>"
"""The project has no address for mail; `.invalid` says so (RFC 2606)."""


@dataclass(frozen=True, slots=True)
class Release:
    """What the names and the times of packages come from."""

    version: str
    revision: int
    """Counts the packages of one version: another one for newer libraries."""
    time: int
    """That of the commit, in seconds since 1970: every file has it, whenever it is built."""
    architecture: str = "amd64"
    """A key of MACHINES."""

    @property
    def full(self) -> str:
        """The version of the package."""
        return f"{self.version}-{self.revision}"

    @property
    def machine(self) -> str:
        """The architecture as wheels and rpm name it."""
        return MACHINES[self.architecture]

    @property
    def deb(self) -> str:
        """The name of the package for Debian and Ubuntu."""
        return f"nfstuned_{self.full}_{self.architecture}.deb"

    @property
    def rpm(self) -> str:
        """The name of the package for RHEL and SLES."""
        return f"nfstuned-{self.full}.{self.machine}.rpm"


def release(revision: int) -> Release:
    """Return the release that this tree is. Raises BuildError where nothing says when it was made."""
    time = os.environ.get("SOURCE_DATE_EPOCH") or _time_of_commit()
    return Release(version(), revision, int(time))


def version() -> str:
    """Return the version that the tree says it is. Raises BuildError where it says none."""
    found = re.search(r'__version__ = "([^"]+)"', (PROJECT / "nfstuned/__init__.py").read_text())
    if found is None:
        raise BuildError("nfstuned/__init__.py: no __version__")
    return found[1]


def _time_of_commit() -> str:
    try:
        return run("git", "log", "-1", "--format=%ct").strip()
    except BuildError:
        raise BuildError("this is no checkout of git: set SOURCE_DATE_EPOCH to the release's time") from None
