"""Runs: the boots of a tier, the files that a boot carries into its guest, and the outcomes of its tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.lab import guest, image, package, recipe

PROJECT = Path(__file__).parents[2]
SCENARIOS = PROJECT / "tests/lab/scenarios"
# Scenarios and people in the guest's shell read the first; the second are the parts of tests that run there.
_DATA = ("systemd", "udev", "docs/man", "docs/completion", "docs/prometheus")
_TESTS = ("tests/lab/kit", "tests/lab/scenarios", "tests/lab/golden")
UPGRADES = ("scenarios/test_upgrade.py", "kit.upgrade")
"""Their boots have the package of 0.1.0 as well, in `first`."""
MARKERS = {
    "kernel": "only a kernel can show it: runs on every kernel",
    "system": "about systemd, udev, packages or other programs: runs on the newest kernel",
    "release": "measures, floods or takes long: runs before a release, alone on the machine",
}
_PYTEST = """[pytest]
pythonpath = . /usr/lib/nfstuned /usr/lib/nfstuned/vendor
addopts = --strict-markers --import-mode=importlib -p no:cacheprovider --color=no --no-header -v -rfEsx
    --durations=25 --durations-min=1
xfail_strict = true
filterwarnings = error
timeout = 600
verbosity_assertions = 2
markers =
"""
NEWEST = "in CI the newest kernel alone runs it, before a release each kernel"
"""A second marker: of long scenarios, and of facts about kernels, which no change of the program moves."""
LIMITS = guest.Limits(total_s=5400, first_s=240, quiet_s=660, retries=2, processors=1)
_KERNELS = tuple(series.name for series in recipe.SERIES)


@dataclass(frozen=True, slots=True)
class Order:
    """The guest's work once it has the package.

    It runs pytest with these arguments, or a module of the kit, or a shell; or it installs the package alone.
    """

    pytest: tuple[str, ...] = ()
    module: tuple[str, ...] = ()
    """Its name and its arguments."""
    interactive: bool = False

    @property
    def mode(self) -> str:
        """The word of start.sh for it."""
        words = {"shell": self.interactive, "module": self.module, "pytest": self.pytest}
        return next((word for word, wanted in words.items() if wanted), "install")


def assemble(folder: Path, order: Order) -> Path:
    """Fill `folder` with everything that a boot needs; return it. Raises BuildError without a package."""
    for name in (*_DATA, *_TESTS):
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "package").mkdir()
    shutil.copy(package.deb(), folder / "package")
    if any(word in argument for argument in (*order.pytest, *order.module) for word in UPGRADES):
        (folder / "first").mkdir()
        shutil.copy(package.first(), folder / "first")
    shutil.copy(PROJECT / "tests/lab/kit/start.sh", folder / "start")
    markers = "".join(f"    {name}: {meaning}\n" for name, meaning in (*MARKERS.items(), ("newest", NEWEST)))
    (folder / "pytest.ini").write_text(_PYTEST + markers)
    (folder / "mode").write_text(f"{order.mode}\n")
    arguments = order.module or order.pytest
    (folder / "arguments").write_text("".join(f"{argument}\n" for argument in arguments))
    return folder


@dataclass(frozen=True, slots=True)
class Boot:
    kernel: str
    marker: str
    brief: bool = False
    """Whether it leaves out the tests marked `newest`."""

    def __str__(self) -> str:
        return f"{self.kernel}-{self.marker}"

    @property
    def alone(self) -> bool:
        """Whether no other guest may run at the same time: `release` measures, on two processors."""
        return self.marker == "release"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One test of the guest: the reasons of its failure or skip, both empty when it passed."""

    test: str
    trouble: str = ""
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One boot of scenarios: its end, and the tests' outcomes (none without a whole JUnit file)."""

    boot: guest.Result
    outcomes: tuple[Outcome, ...]
    folder: Path

    @property
    def failure(self) -> str:
        """All that went wrong in the boot; "" if all tests passed."""
        troubles = [f"{one.test}\n{one.trouble}" for one in self.outcomes if one.trouble]
        if self.boot.passed and self.outcomes and not troubles:
            return ""
        if not troubles or self.boot.status not in {0, 1}:  # pytest's own: all passed, some failed
            troubles.append(self.boot.explain())
        return "\n".join([f"on {self.boot.release}, see {self.folder}:", *troubles])


def boots(tier: str) -> tuple[Boot, ...]:
    """Return a tier's boots; those that must be alone come first, then the longest.

    `ci`: each kernel, and the system with the newest one; `all`: also a release's measures on the newest, and
    each kernel with every scenario.
    """
    if tier == "none":
        return ()
    newest = _KERNELS[-1]
    measures = [Boot(newest, "release")] if tier == "all" else []
    kernels = (Boot(kernel, "kernel", brief=tier == "ci" and kernel != newest) for kernel in _KERNELS)
    return (*measures, Boot(newest, "system"), *kernels)


def folder() -> Path:
    """Return a new folder for results, below the cache or at NFSTUNED_LAB_RESULTS."""
    if chosen := os.environ.get("NFSTUNED_LAB_RESULTS"):
        new = Path(chosen)
        new.mkdir(parents=True, exist_ok=True)
        return new
    parent = recipe.cache() / "results"
    parent.mkdir(parents=True, exist_ok=True)
    # Two that start in the same second must not write over each other.
    return Path(tempfile.mkdtemp(prefix=time.strftime("%Y%m%d-%H%M%S-"), dir=parent))


def install(disk: Path, target: Path, say: Callable[[str], None]) -> None:
    """Make `disk`, a copy of the image's with the tree's package installed.

    A guest takes as long for the installation as for its boot: all boots of a session share this one.
    Raises AssertionError where the installation fails; `target` gets the guest's output.
    """
    subprocess.run(["cp", "--sparse=always", image.disk(), disk], check=True)
    system = guest.System(image.release(_KERNELS[0]), disk, keeps=True)
    with tempfile.TemporaryDirectory() as temporary:
        packed = assemble(Path(temporary), Order())
        result = guest.boot(system, packed, target, say, LIMITS)
    assert result.passed, f"{result.explain()}\nsee {target}"


def run_boot(boot: Boot, disk: Path, target: Path, say: Callable[[str], None]) -> Run:
    """Boot the scenarios of a marker on a disk that `install` made."""
    system = guest.System(image.release(boot.kernel), disk)
    limits = replace(LIMITS, processors=2, total_s=7200) if boot.alone else LIMITS
    brief = ("--brief",) if boot.brief else ()
    return run(system, (*_files(boot.marker), "--marker", boot.marker, *brief), target, say, limits)


def _files(marker: str) -> tuple[str, ...]:
    """Return the scenario files that have a marker: a guest takes half a second to import one."""
    found = sorted(SCENARIOS.glob("test_*.py"))
    return tuple(str(file.relative_to(PROJECT)) for file in found if f"mark.{marker}" in file.read_text())


def run(
    system: guest.System | str,
    pytest: tuple[str, ...],
    target: Path,
    say: Callable[[str], None],
    limits: guest.Limits = LIMITS,
) -> Run:
    """Boot a system, or a release, run pytest with these arguments in it, and return the outcomes."""
    with tempfile.TemporaryDirectory() as temporary:
        packed = assemble(Path(temporary), Order(pytest=pytest))
        boot = guest.boot(system, packed, target, say, limits)
    try:
        outcomes = read_outcomes(boot.files / "junit.xml") if boot.files else ()
    except (OSError, ET.ParseError):
        outcomes = ()
    return Run(boot, outcomes, target)


def run_module(
    module: tuple[str, ...], release: str, target: Path, say: Callable[[str], None], limits: guest.Limits
) -> guest.Result:
    """Boot a release and run a module of the kit with its arguments in it. Raises BuildError."""
    with tempfile.TemporaryDirectory() as temporary:
        packed = assemble(Path(temporary), Order(module=module))
        return guest.boot(release, packed, target, say, limits)


def read_outcomes(junit: Path) -> tuple[Outcome, ...]:
    """Return the outcomes in the guest's order; raise OSError or ET.ParseError when the file is not whole."""
    root = ET.parse(junit).getroot()  # noqa: S314 the file comes from our own guest
    return tuple(_outcome(case) for case in root.iter("testcase"))


def _outcome(case: ET.Element) -> Outcome:
    """A file that cannot be imported has no class: pytest gives its dotted path as the test's name."""
    path = case.get("classname") or ""
    troubles = [child.text or child.tag for child in case if child.tag in {"failure", "error"}]
    skips = [child.get("message", "") or "skipped" for child in case if child.tag == "skipped"]
    name = f"{path.rpartition('.')[2]}::{case.get('name', '')}".removeprefix("::")
    return Outcome(name, "\n".join(troubles), "; ".join(skips))
