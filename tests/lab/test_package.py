"""The lab's .deb is of the tree as it is, and built once for all who ask at the same time."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dev.package.tree import DOCUMENTS
from nfstuned.model.change import FILES
from tests.lab import package

ROOT = Path(__file__).parents[2]


def test_a_change_of_each_packed_file_makes_another_package() -> None:
    known = {str(path.relative_to(ROOT)) for path in package.sources()}
    project = (ROOT / "pyproject.toml").read_text()
    included = re.findall(r'^"([a-z][^"]*\.[a-z0-9]+)" = "nfstuned/', project, re.MULTILINE)
    assert len(included) > 10
    assert {*FILES, *DOCUMENTS, *included} <= known
    assert {"docs/rules/NFS101.md", "nfstuned/cli/app.py", "dev/package/files/compile"} <= known
    assert {"CHANGELOG.md", "LICENSE", "pyproject.toml", "dev/package/vendor.lock"} <= known


def test_tests_and_compiled_files_leave_the_package_as_it_is() -> None:
    assert not [path for path in package.sources() if path.suffix == ".pyc" or path.match("tests/*")]
    assert package.key() == package.key()


@pytest.mark.lab
def test_two_that_ask_at_once_get_one_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "_FOLDER", tmp_path)
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: package.deb(), range(2))
    assert one == other
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [package.key()]
    built = one.stat().st_mtime_ns
    assert package.deb().stat().st_mtime_ns == built
    field = ["dpkg-deb", "--field", str(one), "Package"]
    assert subprocess.run(field, check=True, capture_output=True, text=True).stdout == "nfstuned\n"
