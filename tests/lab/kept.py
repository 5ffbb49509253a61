"""Boots that have passed with the very same files: where a run of hours was ended, one goes on after them.

A boot's results stay in the cache; the folder of one that passed has a file that says of what.
"""

from __future__ import annotations

import functools
import hashlib
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

from tests.lab import guest, outcomes, payload, recipe, results, selection

if TYPE_CHECKING:
    from tests.lab.selection import Boot

_MARK = "passed"


def fingerprint(boot: Boot, project: Path = payload.PROJECT) -> str | None:
    """Return what a boot is of: image, scenarios, and each file that its guest sees; None without git.

    Of the scenarios only its own count: so a mend of one leaves what others have shown.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=project, check=False, capture_output=True)
    if done.returncode:
        return None
    told = hashlib.sha256(repr((recipe.key(), boot.name, boot.scenarios, boot.full, *boot.without)).encode())
    for name in sorted(done.stdout.decode().split("\0")[:-1]):
        if _is_seen(name, boot):
            file = project / name
            content = file.read_bytes() if file.is_file() else b"-"
            told.update(f"\n{name} {hashlib.sha256(content).hexdigest()}".encode())
    return told.hexdigest()


def _is_seen(name: str, boot: Boot) -> bool:
    touched = _touched(name)
    if payload.PROJECT / Path(name).parent == payload.SCENARIOS and touched == {Path(name).stem}:
        return Path(name).stem in boot.scenarios
    return bool(touched)


@functools.cache
def _touched(name: str) -> frozenset[str]:
    return frozenset(selection.touched([name]))


def keep(run: results.Run, of: str) -> None:
    """Note of what a boot was that passed."""
    if run.boot.passed:
        (run.folder / _MARK).write_text(of)


def recall(release: str, of: str) -> results.Run | None:
    """Return the latest boot that passed for the same; None where there is none whose results are whole."""
    for mark in sorted((recipe.cache() / "results").glob(f"*/*/{_MARK}"), reverse=True):
        if mark.read_text() != of:
            continue
        files = mark.parent / "files"
        try:
            found = outcomes.read(files / "junit.xml")
        except (OSError, ET.ParseError):
            continue
        boot = guest.Result(release, guest.Verdict.ENDED, 0, 0.0, "", "", files)
        return results.Run(boot, found, mark.parent)
    return None
