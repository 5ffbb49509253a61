"""Each linter is a test, so CI and a developer's test run check the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
LINTERS = {
    "ruff check": ("ruff", "check", "."),
    "ruff format": ("ruff", "format", "--check", "."),
    "mypy": ("mypy",),
    "import-linter": ("lint-imports",),
}


@pytest.mark.timeout(600)  # mypy without its cache
@pytest.mark.parametrize("name", LINTERS)
def test_linter_is_content(name: str) -> None:
    tool, *arguments = LINTERS[name]
    done = subprocess.run([BIN / tool, *arguments], check=False, capture_output=True, text=True, cwd=PROJECT)
    if done.returncode:
        pytest.fail(f"{name}:\n{done.stdout}{done.stderr}", pytrace=False)
