"""The files of a check before a deployment, as requests for mounts."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from nfstuned.core.rules.fixes import files_with, fixed_text
from nfstuned.errors import ParseError
from nfstuned.host.root import STDIN, read_proposal
from nfstuned.host.sources import read_files
from nfstuned.model.facts import Facts, Finding, Fix
from nfstuned.model.kernel import parse_options
from nfstuned.model.mounts import Request, Unexpanded
from nfstuned.parse.deploy.deployment import Deployment, JudgedFile
from nfstuned.parse.deploy.kinds import read_sources


class Fixed(NamedTuple):
    """A file with its changes."""

    file: str
    old: str
    new: str
    number: int
    """The number of changes."""


def fixed_files(findings: Iterable[Finding], facts: Facts) -> Iterator[Fixed]:
    """Yield the files of a check that have changes. Raises OSError where one cannot be read.

    A text that serves several mounts, as a variable does, is changed where each of them has the finding.
    """
    wanted = Counter(fix for finding in findings for fix in finding.fixes)
    requests: dict[str, list[Request]] = {}
    for request in (target.request for target in facts.targets if target.request):
        for line in {*request.lines}:
            requests.setdefault(f"{request.file}:{line}", []).append(request)
    fixes = (fix for fix, number in wanted.items() if number >= _served(fix, requests.get(fix.place, ())))
    for file, fixes_of_file in files_with(fixes).items():
        if file in facts.files and file != STDIN:
            old = read_proposal(file)
            new, number = fixed_text(old, file, fixes_of_file)
            if number:
                yield Fixed(file, old, new, number)


def _served(fix: Fix, requests: Iterable[Request]) -> int:
    """Return how many requests have the text of a change, an option or its name, at its place."""

    def has(request: Request, name: str, value: str | None) -> bool:
        values = [held for own, held in request.pairs if own == name]
        return request.place_of(name) == fix.place and bool(values) and (value is None or value in values)

    options = parse_options(fix.old).pairs
    return sum(all(has(request, *option) for option in options) for request in requests)


_NO_KIND = (
    "has no known kind; nfstuned reads fstab, units, maps of the automounter, cloud-init, Kubernetes, "
    "compose, Ansible, Terraform's plan as JSON, and shell scripts"
)


def read_deployment(paths: Sequence[str]) -> Deployment:
    """Return the requests of files, and of the files below folders.

    A file that could not be read is a problem, and a named file of no known kind.
    """
    problems: list[ParseError] = []
    paths = [re.sub(r"\A(?:\./+)+(?=.)", "", path) for path in paths]

    def texts() -> Iterator[JudgedFile]:
        for item in read_files(paths):
            if isinstance(item, ParseError):
                problems.append(item)
            else:
                yield item

    deployment = read_sources(texts())
    deployment.add(problems)
    failed = {problem.file for problem in deployment.intent.problems}
    for path in paths:
        if not os.path.isdir(path) and path not in failed and path not in deployment.kinds:
            deployment.add([ParseError(path, 0, _NO_KIND)])
    if not deployment.kinds and not deployment.intent.problems:
        deployment.unexpanded.append(
            Unexpanded(f"no file of a known kind is below {', '.join(paths)}", ".", 0)
        )
    return deployment
