"""The project's own wheel, of which every package is made, and its source."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from dev.package.about import Release
from dev.package.run import run


def wheel(what: Release, into: Path) -> Path:
    """Build the project's wheel without a network, and return it. Raises BuildError."""
    return _built("wheel", what, into)


def source(what: Release, into: Path) -> Path:
    """Build the archive of the source, which pip builds and installs; return it. Raises BuildError."""
    return _built("sdist", what, into)


def _built(kind: str, what: Release, into: Path) -> Path:
    with tempfile.TemporaryDirectory() as folder:
        command = (sys.executable, "-m", "build", f"--{kind}", "--no-isolation", f"--outdir={folder}", ".")
        run(*command, env={"SOURCE_DATE_EPOCH": str(what.time)})
        (made,) = Path(folder).iterdir()
        target = into / made.name
        target.write_bytes(made.read_bytes())
    return target
