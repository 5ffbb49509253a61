"""The whole of `nfstuned check` without a network, of a file, a host or an image: rules, changes, formats."""

from __future__ import annotations

import functools
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

from nfstuned.app.facts import Scope, examine
from nfstuned.app.files import fixed_files
from nfstuned.core.rules.catalogue import CRASHED, RULES, run_rules
from nfstuned.host.config import builtin_policy
from nfstuned.host.network.outside import FixedOutside
from nfstuned.host.root import Root
from nfstuned.model.facts import Facts, Need, Report
from nfstuned.model.policy import Policy
from nfstuned.model.system import Network
from nfstuned.view.check import check_document, report_lines, verdict_lines
from nfstuned.view.ci import github_lines, junit, sarif_document
from nfstuned.view.words import to_json

MOST_FINDINGS = 20_000
_MOST_FILES = 60
_FILE = re.compile(r"(?m)^-- ((?:[\w@:+-][\w.@:+-]*/)*[\w@:+-][\w.@:+-]*) --\n")
"""A line before a file's text. No part of its path begins with a dot."""


class BrokenPromiseError(AssertionError):
    """A parser returned more, or something else, than it promises."""


def of_file(name: str) -> Callable[[bytes], Iterator[object]]:
    """Return a check of a file of this name, judged alone."""

    def read(data: bytes) -> Iterator[object]:
        file = _folder() / name
        file.write_bytes(data)
        scope = Scope(offline=True, files=(str(file),))
        yield from _rows(examine(Root("/"), _profiles(), scope, FixedOutside(Network())))

    return read


def of_tree(root: Callable[[str], Root], *, image: bool) -> Callable[[bytes], Iterator[object]]:
    """Return a check of a host or an image with the files in a text."""

    def read(data: bytes) -> Iterator[object]:
        scope = Scope(image=image, offline=True)
        yield from _rows(examine(root(put_tree(data)), _profiles(), scope, FixedOutside(Network())))

    return read


def put_tree(data: bytes) -> str:
    """Write the files in a text below a folder, and return it."""
    folder = _folder() / "tree"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "etc").mkdir(parents=True)
    _, *parts = _FILE.split(data.decode("utf-8", "surrogateescape"))
    for path, text in dict(zip(parts[: 2 * _MOST_FILES : 2], parts[1::2], strict=False)).items():
        file = folder / path[:200]
        if not any(above.is_file() for above in (file, *file.parents)) and not file.is_dir():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode("utf-8", "surrogateescape"))
            file.chmod(0o755)
    return str(folder)


@functools.cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp())


@functools.cache
def _profiles() -> Policy:
    return builtin_policy()


def _rows(facts: Facts) -> Iterator[object]:
    rules = [rule for rule in RULES if facts.image or Need.IMAGE not in rule.needs]
    diagnosis = run_rules(facts, rules)
    for finding in diagnosis.findings:
        if finding.rule == CRASHED.id:
            raise BrokenPromiseError(finding.message)
    if len(diagnosis.findings) > MOST_FINDINGS:
        raise BrokenPromiseError(f"{len(diagnosis.findings)} findings")
    yield from (*diagnosis.findings, *diagnosis.doubts)
    changed = fixed_files(diagnosis.findings, facts)
    yield from (each.new.count("\n") == each.old.count("\n") for each in changed)
    found = {finding.rule for finding in diagnosis.findings}
    # The texts of all rules would take most of the time.
    yield from _formats(Report("/", facts, tuple(rule for rule in RULES if rule.id in found), diagnosis))


def _formats(report: Report) -> Iterator[object]:
    for document in (check_document(report), sarif_document(report)):
        yield json.loads(to_json(document)) is not None
    yield all("\n" not in line and "\r" not in line for line in github_lines(report))
    yield ET.fromstring(junit(report)) is not None  # noqa: S314 - its own output
    lines = [*(line.text for line in report_lines(report, 80)), *verdict_lines(report)]
    yield all("\x1b" not in line for line in lines)
