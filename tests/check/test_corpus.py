"""Public files in which people ask for mounts, with verdicts that were written before any code read them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from nfstuned.api import diagnose
from nfstuned.app.facts import Scope
from nfstuned.parse.proc.machine import parse_release

CORPUS = Path(__file__).parents[1] / "data/corpus"
LEAST = 0.97


class Case(NamedTuple):
    """Files, and the findings that they should have: "NFS307 pv.yaml:21"."""

    name: str
    kernel: str
    verdict: frozenset[str]
    files: dict[str, str]


def _case(text: str) -> Case:
    head, *files = re.split(r"(?m)^--- (?=\S+\n)", text)
    keys = dict(re.findall(r"(?m)^(kernel|verdict): (.*)$", head))
    verdict = re.findall(r"[A-Z]+\d{3} \S+:\d+", keys["verdict"])
    named = dict(file.split("\n", 1) for file in files)
    return Case(head.split()[0], keys.get("kernel", ""), frozenset(verdict), named)


CASES = [
    _case(text)
    for file in sorted(CORPUS.glob("*.txt"))
    for text in re.split(r"(?m)^=== ", file.read_text())[1:]
]


def _found(case: Case, folder: Path) -> frozenset[str]:
    for name, text in case.files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    scope = Scope(offline=True, files=(".",), kernel=parse_release(case.kernel) if case.kernel else None)
    diagnosis = diagnose(scope=scope)
    assert diagnosis.doubts == () or "not read" in diagnosis.doubts[0], diagnosis.doubts
    # Of a plan the resource's address stands behind the file.
    return frozenset(f"{one.rule} {re.sub('#[^:]*', '', one.subject)}" for one in diagnosis.findings)


def test_findings_are_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Precision and recall over all findings; a case alone may be wrong."""
    wrong: list[str] = []
    right = missed = strange = 0
    for number, case in enumerate(CASES):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        found = _found(case, folder)
        right += len(found & case.verdict)
        missed += len(case.verdict - found)
        strange += len(found - case.verdict)
        wrong += [f"{case.name}: no {one}" for one in sorted(case.verdict - found)]
        wrong += [f"{case.name}: has {one}" for one in sorted(found - case.verdict)]
    print("\n".join(wrong))
    assert right / (right + strange) >= LEAST, wrong
    assert right / (right + missed) >= LEAST, wrong
