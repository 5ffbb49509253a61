"""Boot a kernel for a set of scenarios and keep what it gave."""

from __future__ import annotations

import os
import tempfile
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.lab import guest, outcomes, payload, recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tests.lab.outcomes import Outcome
    from tests.lab.selection import Length

LIMITS = guest.Limits(total_s=3600, quiet_s=660, retries=2)


@dataclass(frozen=True)
class Run:
    """One boot of scenarios: how it ended, and the tests' outcomes (none without a whole JUnit file)."""

    boot: guest.Result
    outcomes: tuple[Outcome, ...]
    folder: Path


def folder() -> Path:
    """Return a new folder for results, below the cache or where NFSTUNED_LAB_RESULTS says."""
    if chosen := os.environ.get("NFSTUNED_LAB_RESULTS"):
        new = Path(chosen)
        new.mkdir(parents=True, exist_ok=True)
        return new
    parent = recipe.cache() / "results"
    parent.mkdir(parents=True, exist_ok=True)
    # Two that start in the same second must not write over each other.
    return Path(tempfile.mkdtemp(prefix=time.strftime("%Y%m%d-%H%M%S-"), dir=parent))


def run(
    what: guest.System | str,
    pytest: tuple[str, ...],
    target: Path,
    say: Callable[[str], None],
    limits: guest.Limits = LIMITS,
) -> Run:
    """Boot a system, or a release, run pytest with these arguments in it, and return what came back."""
    with tempfile.TemporaryDirectory() as temporary:
        packed = payload.assemble(Path(temporary), payload.Order(pytest=pytest))
        boot = guest.boot(what, packed, target, say, limits)
    try:
        found = outcomes.read(boot.files / "junit.xml") if boot.files else ()
    except (OSError, ET.ParseError):
        found = ()
    return Run(boot, found, target)


def arguments(lengths: Collection[Length], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return pytest's arguments for the scenarios of one boot."""
    marks = " or ".join(sorted(length.value for length in lengths))
    return ("-m", marks, *(f"tests/lab/scenarios/{name}.py" for name in names))
