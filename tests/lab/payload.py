"""The files that a boot carries into the guest: nfstuned's package, the lab's kit, and the scenarios."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.lab import package

PROJECT = Path(__file__).parents[2]
SCENARIOS = PROJECT / "tests/lab/scenarios"
# Scenarios and people in the guest's shell read the first; the second are the parts of tests that run there.
_DATA = ("systemd", "udev", "docs/man", "docs/completion", "docs/prometheus")
_TESTS = ("tests/lab/kit", "tests/lab/scenarios", "tests/lab/golden", "tests/bench")
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


@dataclass(frozen=True, slots=True)
class Order:
    """The guest's work once it has the package.

    It runs pytest with these arguments, or a module of the kit, or a shell; or it installs the package alone.
    """

    pytest: tuple[str, ...] = ()
    module: str = ""
    interactive: bool = False

    @property
    def mode(self) -> str:
        """The word that start.sh knows for it."""
        words = {"shell": self.interactive, "module": self.module, "pytest": self.pytest}
        return next((word for word, wanted in words.items() if wanted), "install")


def assemble(folder: Path, order: Order) -> Path:
    """Fill `folder` with everything that a boot needs; return it. Raises BuildError without a package."""
    for name in (*_DATA, *_TESTS):
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "package").mkdir()
    shutil.copy(package.deb(), folder / "package")
    shutil.copy(PROJECT / "tests/lab/kit/start.sh", folder / "start")
    markers = "".join(f"    {name}: {meaning}\n" for name, meaning in MARKERS.items())
    (folder / "pytest.ini").write_text(_PYTEST + markers)
    (folder / "mode").write_text(f"{order.mode}\n")
    arguments = (order.module,) if order.module else order.pytest
    (folder / "arguments").write_text("".join(f"{argument}\n" for argument in arguments))
    return folder
