"""Debian's packages below the container image: a lock with their hashes, and the packages themselves."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path

from dev.package.about import MACHINES
from dev.package.lock import digest
from dev.package.run import PROJECT, BuildError, run
from tests.lab import apt

LOCK = PROJECT / "dev/package/image.lock"
CACHE = PROJECT / "build/base"
"""Fetched packages stay here."""
ARCHITECTURES = tuple(MACHINES)
PACKAGES = (  # each of them has an architecture: a package for all would be in the lock under `all`
    *("base-files", "libc6", "libc-bin", "libgcc-s1", "gcc-14-base", "libcap2", "libudev1"),
    *("libbz2-1.0", "libexpat1", "libffi8", "liblzma5", "libssl3t64", "libzstd1", "zlib1g"),
    *("python3-minimal", "python3.13-minimal", "libpython3.13-minimal", "libpython3.13-stdlib"),
)
_SUITE = "trixie"
_HELPER = "/usr/lib/apt/apt-helper"
_HEAD = (
    "# Debian's packages in the container image: architecture, name, version, SHA-256, path in the archive.\n"
    "# Written by `sh dev/image --lock`, which docs/images.md explains.\n"
)


@dataclass(frozen=True, slots=True)
class Package:
    """One package of Debian for one architecture of the image."""

    architecture: str
    name: str
    version: str
    sha256: str
    path: str
    """Below the address of the archive, as the archive's index has it."""


def parse(text: str) -> tuple[Package, ...]:
    """Return the packages of a lock. Raises BuildError for a line that is no package with its hash."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        words = line.split()
        if len(words) != len(Package.__slots__) or not re.fullmatch("[0-9a-f]{64}", words[3]):
            raise BuildError(
                f"{LOCK.name}, line {number}: {line!r} is not architecture, name, version, SHA-256 and path: "
                "write the lock with `sh dev/image --lock`"
            )
        found.append(Package(*words))
    return tuple(found)


def render(packages: Iterable[Package]) -> str:
    """Return the text of a lock; `parse` reads it back."""
    return _HEAD + "".join(f"{' '.join(astuple(package))}\n" for package in packages)


def address(mirror: str, path: str) -> str:
    """Return the address of a package. Debian's archive of security has its own paths, next to the mirror."""
    archive = _security(mirror) if path.startswith("pool/updates/") else mirror
    return f"{archive}/{path}"


def fetch(packages: Iterable[Package], folder: Path = CACHE) -> list[Path]:
    """Return the files of packages below `folder`; a file that is there already needs no network.

    Raises BuildError where the mirror has no such file, or the file has another hash.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {folder / package.path.rpartition("/")[2]: package for package in packages}
    missing = {path: package for path, package in wanted.items() if not path.exists()}
    if missing:
        mirror = apt.mirror()
        words = [
            word
            for path, package in missing.items()
            for word in (address(mirror, package.path), str(path), f"SHA256:{package.sha256}")
        ]
        try:
            run(_HELPER, "-oAPT::Sandbox::User=root", "download-file", *words)
        except BuildError as error:
            raise BuildError(
                f"{error}\n{mirror} may have dropped a package of {LOCK.name}: pin today's by "
                "`sh dev/image --lock`, or name a mirror of that day in NFSTUNED_LAB_MIRROR"
            ) from None
    for path, package in wanted.items():
        if digest(path) != package.sha256:
            raise BuildError(f"{path} has not the hash of {LOCK.name}, {package.sha256}: remove this file")
    return list(wanted)


def renew() -> None:
    """Write the lock with the newest packages of the suite and of its security updates. Raises BuildError."""
    mirror = apt.mirror()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("lists/partial", "cache/archives/partial"):
            (folder / part).mkdir(parents=True)
        source = f"deb [arch={','.join(ARCHITECTURES)} signed-by={apt.keyring()}]"
        archives = (
            (mirror, _SUITE),
            (mirror, f"{_SUITE}-updates"),
            (_security(mirror), f"{_SUITE}-security"),
        )
        lines = [f"{source} {archive} {suite} main\n" for archive, suite in archives]
        (folder / "sources.list").write_text("".join(lines))
        # Nothing of the machine's own: neither its sources, nor its state, nor its architecture.
        options = (
            f"-oDir::State::Lists={folder}/lists",
            "-oDir::State::status=/dev/null",
            f"-oDir::Cache={folder}/cache",
            f"-oDir::Etc::SourceList={folder}/sources.list",
            "-oDir::Etc::SourceParts=/dev/null",
            "-oDir::Etc::PreferencesParts=/dev/null",
            "-oAPT::Sandbox::User=root",
            f"-oAPT::Architecture={ARCHITECTURES[0]}",
            *(f"-oAPT::Architectures::={architecture}" for architecture in ARCHITECTURES),
        )
        run("apt-get", *options, "update", "-qq", "--error-on=any")
        names = [f"{name}:{architecture}" for architecture in ARCHITECTURES for name in PACKAGES]
        shown = run("apt-cache", *options, "show", "--no-all-versions", *names)
    LOCK.write_text(render(map(_package, shown.strip().split("\n\n"))))


def _security(mirror: str) -> str:
    return re.sub(r"/debian(?=/|$)", "/debian-security", mirror)


def _package(paragraph: str) -> Package:
    fields = dict(re.findall(r"^(\S+): (.*)$", paragraph, re.MULTILINE))
    return Package(*(fields[name] for name in ("Architecture", "Package", "Version", "SHA256", "Filename")))
