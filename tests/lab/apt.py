"""Debian's packages for the lab: kernels of several suites and a userland, from the machine's own mirror."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.lab import recipe

_KEYRINGS = ("debian-archive-keyring.gpg", "debian-archive-keyring.pgp")
_FORMAT = "$(RELEASE) $(COMPONENT) $(REPO_URI)"


class AptError(Exception):
    """A tool failed, or this machine's configuration lacks something that the lab needs."""


@dataclass(frozen=True)
class Kernel:
    """One kernel: its release, and the packages that hold its image and modules."""

    release: str
    packages: tuple[str, ...]


def version(text: str) -> tuple[int, ...]:
    """Return the numbers of a kernel release, in an order that sorts."""
    return tuple(int(number) for number in re.findall(r"\d+", text))


class Index:
    """The package lists of every suite of the recipe, kept apart from the machine's own."""

    def __init__(self, folder: Path) -> None:
        for part in ("lists/partial", "cache/archives/partial"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        self._mirror = mirror()
        suites = {series.suite for series in recipe.SERIES} | {recipe.USERLAND}
        if (codename := host()) in recipe.EMULATORS:
            suites.add(recipe.EMULATORS[codename])
        # A suite that is no longer changed keeps a Release file that has expired; its signature still counts.
        options = f"[signed-by={keyring()} check-valid-until=no]"
        lines = [f"deb {options} {self._mirror} {suite} main\n" for suite in sorted(suites)]
        (folder / "sources.list").write_text("".join(lines))
        self._options = (
            f"-oDir::State::Lists={folder}/lists",
            f"-oDir::Cache={folder}/cache",
            f"-oDir::Etc::SourceList={folder}/sources.list",
            "-oDir::Etc::SourceParts=/dev/null",
            "-oAPT::Sandbox::User=root",
        )
        run("apt-get", *self._options, "update", "-qq", "--error-on=any")
        pattern = "^linux-(image|binary|modules)-[0-9].*-cloud-amd64$"
        found = run("apt-cache", *self._options, "search", "--names-only", pattern)
        self._names = {line.split()[0] for line in found.splitlines()}

    def newest_kernel(self, series: recipe.Series) -> Kernel:
        """Return the newest kernel of a series; raise AptError when the mirror has none."""
        start = f"linux-image-{series.prefix}"
        releases = [name.removeprefix("linux-image-") for name in self._names if name.startswith(start)]
        usable = [kernel for kernel in map(self._kernel, releases) if kernel is not None]
        best = max(usable, key=lambda kernel: version(kernel.release), default=None)
        if best is None or version(best.release) < series.at_least:
            raise AptError(
                f"{self._mirror} has no kernel for {series.name} (suite {series.suite}; best: {best})"
            )
        return best

    def _kernel(self, release: str) -> Kernel | None:
        """Return the packages of one kernel, or None when the mirror has dropped one of them.

        From 6.19 on Debian splits the image: vmlinuz is in linux-binary and the modules in linux-modules.
        """
        split = (f"linux-binary-{release}", f"linux-modules-{release}")
        there = [name in self._names for name in split]
        if any(there):
            return Kernel(release, split) if all(there) else None
        return Kernel(release, (f"linux-image-{release}",))

    def unpack(self, packages: tuple[str, ...], into: Path) -> None:
        """Download packages and extract their files; their scripts do not run."""
        into.mkdir()
        run("apt-get", *self._options, "download", "-qq", *packages, cwd=into)
        for deb in into.glob("*.deb"):
            run("dpkg", "-x", str(deb), str(into))
            deb.unlink()


def bootstrap(suite: str, packages: tuple[str, ...], target: Path, *options: str) -> None:
    """Install a suite with some packages into a new folder or archive; `options` are mmdebstrap's."""
    as_root = () if os.geteuid() == 0 else ("sudo",)
    argv = (*as_root, "mmdebstrap", "--quiet", "--variant=minbase", *options)
    source = f"deb [signed-by={keyring()}] {mirror()} {suite} main"
    run(*argv, f"--include={','.join(packages)}", suite, str(target), source)


def keyring() -> Path:
    """Return the file with the keys that sign Debian's suites."""
    for folder in (Path("/usr/share/keyrings"), Path("/etc/apt/trusted.gpg.d")):
        for name in _KEYRINGS:
            if (folder / name).exists():
                return folder / name
    raise AptError("the keys of the Debian archive are missing: install debian-archive-keyring")


def mirror() -> str:
    """Return the Debian mirror that this machine uses, or the one that NFSTUNED_LAB_MIRROR names."""
    chosen = os.environ.get("NFSTUNED_LAB_MIRROR")
    if chosen:
        return chosen
    suites = {host(), "stable", recipe.USERLAND}
    for line in run("apt-get", "indextargets", "--format", _FORMAT, "Created-By: Packages").splitlines():
        suite, component, uri = line.split(" ", 2)
        if suite in suites and component == "main":
            return uri.rstrip("/")
    raise AptError("apt is configured with no Debian mirror: set NFSTUNED_LAB_MIRROR to its address")


def host() -> str:
    """Return the code name of this machine's distribution; "" where it has none."""
    system = dict(re.findall(r'^(\w+)="?([^"\n]*)', Path("/etc/os-release").read_text(), re.MULTILINE))
    return str(system.get("VERSION_CODENAME", ""))


def run(*argv: str, cwd: Path | None = None) -> str:
    """Run a tool and return its standard output; raise AptError with the end of its output when it fails."""
    if shutil.which(argv[0]) is None:
        raise AptError(f"{argv[0]} is not installed")
    done = subprocess.run(
        argv, check=False, capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        output = (done.stdout + done.stderr)[-4000:]
        raise AptError(f"{' '.join(argv[:4])} failed with {done.returncode}:\n{output}")
    return done.stdout
