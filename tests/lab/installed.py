"""The image's disk with the tree's package installed, for a session of many boots.

A guest takes as long for the installation as for its boot: a first guest installs the package, and all others
begin with the disk of that guest.
"""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.lab import guest, image, payload, recipe
from tests.lab.results import LIMITS

if TYPE_CHECKING:
    from collections.abc import Callable


def make(disk: Path, target: Path, say: Callable[[str], None]) -> None:
    """Make the disk, of a gigabyte; `target` gets what is said. Raises AssertionError where it fails."""
    subprocess.run(["cp", "--sparse=always", image.disk(), disk], check=True)
    system = guest.System(image.release(recipe.SERIES[0].name), disk, keeps=True)
    with tempfile.TemporaryDirectory() as folder:
        packed = payload.assemble(Path(folder), payload.Order())
        result = guest.boot(system, packed, target, say, replace(LIMITS, processors=1))
    assert result.passed, f"{result.explain()}\nsee {target}"
