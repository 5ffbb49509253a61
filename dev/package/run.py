"""Tools of the system that building and checking need."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

PROJECT = Path(__file__).parents[2]


class BuildError(Exception):
    """Something is in the way of the packages; the text says what, and what to do."""


def run(*command: str | Path, env: Mapping[str, str] | None = None) -> str:
    """Run a command in the project's folder and return what it printed; raise BuildError when it fails.

    `env` comes on top of this process's environment.
    """
    argv = [str(word) for word in command]
    try:
        done = subprocess.run(
            argv,
            check=False,
            capture_output=True,
            text=True,
            cwd=PROJECT,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise BuildError(f"{argv[0]} is not installed") from None
    if done.returncode:
        said = (done.stdout + done.stderr)[-4000:]
        raise BuildError(f"{' '.join(argv)} ended with {done.returncode}:\n{said}")
    return done.stdout
