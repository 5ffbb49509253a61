"""What a boot carries into the guest: the project as users get it, the lab's kit, and the scenarios."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.lab import package

PROJECT = Path(__file__).parents[2]
SCENARIOS = PROJECT / "tests/lab/scenarios"
# What scenarios or a person in the guest's shell may read, and the parts of tests that run in the guest.
_BESIDE = ("systemd", "udev", "docs/man", "docs/completion", "docs/prometheus")
_TESTS = ("tests/lab/kit", "tests/lab/scenarios", "tests/lab/golden", "tests/bench")
_PYTEST = """[pytest]
pythonpath = . /usr/lib/nfstuned /usr/lib/nfstuned/vendor
addopts = --strict-markers --import-mode=importlib -p no:cacheprovider --color=no --no-header -v -rfEsx
    --durations=5
xfail_strict = true
filterwarnings = error
timeout = 600
verbosity_assertions = 2
markers =
    short: runs on every kernel (what has no other marker)
    long: takes minutes; has a boot of its own
    once: says nothing of the kernel; in CI on one kernel alone
    race: races mount(8); has a boot of its own, and nothing beside it
    measure: compares speeds; the same, and not in CI
    release: says how much, or runs a whole system; not in CI
"""


@dataclass(frozen=True)
class Order:
    """What the guest is to do once it has the package: run pytest with these arguments,
    run a module of the kit, give a shell, or nothing more.
    """

    pytest: tuple[str, ...] = ()
    module: str = ""
    interactive: bool = False

    @property
    def mode(self) -> str:
        """The word for it that start.sh knows."""
        words = {"shell": self.interactive, "module": self.module, "pytest": self.pytest}
        return next((word for word, wanted in words.items() if wanted), "install")


def assemble(folder: Path, order: Order) -> Path:
    """Fill `folder` with everything that a boot needs; return it. Raises BuildError without a package."""
    for name in (*_BESIDE, *_TESTS):
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "package").mkdir()
    shutil.copy(package.deb(), folder / "package")
    shutil.copy(PROJECT / "tests/lab/kit/start.sh", folder / "start")
    (folder / "pytest.ini").write_text(_PYTEST)
    (folder / "mode").write_text(f"{order.mode}\n")
    arguments = (order.module,) if order.module else order.pytest
    (folder / "arguments").write_text("".join(f"{argument}\n" for argument in arguments))
    return folder
