"""Each linter is a test, so CI and a developer's test run check the same."""

from __future__ import annotations

import shutil
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
SHELL = [
    *sorted((PROJECT / "dev/package/deb").glob("p*")),
    *sorted((PROJECT / "dev/package/prove").iterdir()),
    *sorted((PROJECT / "dev/trials").iterdir()),
    PROJECT / "tests/lab/kit/node.sh",
    *(path for path in sorted((PROJECT / "docs/images").rglob("*.*")) if path.read_bytes()[:2] == b"#!"),
    *(PROJECT / "dev/package/files" / name for name in ("nfstuned", "python.sh", "compile")),
    *(
        PROJECT / "dev" / name
        for name in (
            "build",
            "cluster",
            "collection",
            "image",
            "recipes",
            "repository",
            "site",
            "package/deb/rtupdate",
        )
    ),
]


@pytest.mark.timeout(600)  # mypy without its cache
@pytest.mark.parametrize("name", LINTERS)
def test_linter_is_content(name: str) -> None:
    tool, *arguments = LINTERS[name]
    done = subprocess.run([BIN / tool, *arguments], check=False, capture_output=True, text=True, cwd=PROJECT)
    if done.returncode:
        pytest.fail(f"{name}:\n{done.stdout}{done.stderr}", pytrace=False)


@pytest.mark.parametrize("script", SHELL, ids=lambda path: str(path.relative_to(PROJECT)))
def test_a_shell_script_is_right(script: Path) -> None:
    subprocess.run(["sh", "-n", script], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", "-x", "-P", "SCRIPTDIR", "--exclude=SC1091", script], check=True)
