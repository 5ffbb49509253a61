"""The package for RHEL, its relatives and SLES, packed by rpmbuild."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path

from dev.package.about import MAINTAINER, Release
from dev.package.lock import PYTHONS
from dev.package.run import PROJECT, run
from dev.package.tree import DOC, HOME, File, Tree, folders, write
from dev.package.wheels import Library

_SPEC = PROJECT / "dev/package/rpm/nfstuned.spec"
_LICENSES, _SHARE = "usr/share/licenses/nfstuned", "usr/share/nfstuned"


def build(common: Tree, libraries: tuple[Library, ...], release: Release, into: Path) -> Path:
    """Write the package into a folder and return its path; the same bytes each time. Raises BuildError."""
    tree = files(common, libraries)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "root").mkdir()
        write(tree, work / "root", release.time)
        (work / "files").write_text(file_list(tree))
        macros = {
            "_topdir": str(work),
            "_rpmdir": str(work / "rpms"),
            "own_root": str(work / "root"),
            "own_files": str(work / "files"),
            "own_version": release.version,
            "own_revision": str(release.revision),
            "own_license": terms(libraries),
            "own_packager": MAINTAINER,
            "own_day": datetime.fromtimestamp(release.time, timezone.utc).strftime("%a %b %d %Y"),
            "own_pythons": interpreters(),
        }
        defined = [word for name, value in macros.items() for word in ("--define", f"{name} {value}")]
        time = {"SOURCE_DATE_EPOCH": str(release.time)}
        run("rpmbuild", "-bb", "--quiet", f"--target={release.machine}-linux", *defined, _SPEC, env=time)
        (made,) = (work / "rpms").rglob("*.rpm")
        return Path(shutil.copy(made, into / release.rpm))


def files(common: Tree, libraries: Iterable[Library]) -> dict[str, File]:
    """Return what is in the package."""
    texts = {
        f"{_LICENSES}/{library.name}/{name}": File(text.encode())
        for library in libraries
        for name, text in library.texts
    }
    texts[f"{_LICENSES}/LICENSE"] = File((PROJECT / "LICENSE").read_bytes())
    texts[f"{DOC}/CHANGELOG.md"] = File((PROJECT / "CHANGELOG.md").read_bytes())
    return {**common, **texts}


def file_list(tree: Tree) -> str:
    """Return the %files of the spec: every file, and those folders that no other package has."""
    own = (HOME, DOC, _LICENSES, _SHARE)
    ours = [name for name in folders(tree) if any(name == top or name.startswith(f"{top}/") for top in own)]
    lines = ["%defattr(-,root,root,-)", *(f'%dir "/{name}"' for name in ours)]
    for path, file in sorted(tree.items()):
        kind = next((mark for top, mark in _MARKS.items() if path.startswith(top)), "")
        lines.append(f'{kind}%attr({file.mode:04o},root,root) "/{path}"')
    return "\n".join(lines) + "\n"


def terms(libraries: Iterable[Library]) -> str:
    """Return the licences of everything in the package as one SPDX expression."""
    parts = (part for library in libraries for part in library.license.split(" AND "))
    return " AND ".join(sorted({"Apache-2.0", *parts}))


def interpreters() -> str:
    """Return what the package requires: one of the interpreters for which it has compiled libraries."""
    return "(" + " or ".join(f"/usr/bin/python{version}" for version in reversed(PYTHONS)) + ")"


_MARKS = {f"{_LICENSES}/": "%license ", f"{DOC}/": "%doc ", "usr/share/man/": "%doc "}
