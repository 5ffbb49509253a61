"""The files of a check before a deployment, as requests for mounts."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from nfstuned.core.rules.fixes import files_with, fixed_text
from nfstuned.errors import ParseError
from nfstuned.host.root import STDIN, read_proposal
from nfstuned.host.sources import read_files
from nfstuned.model.facts import Finding
from nfstuned.model.mounts import Unexpanded
from nfstuned.parse.deploy.deployment import Deployment, JudgedFile
from nfstuned.parse.deploy.kinds import read_sources


class Fixed(NamedTuple):
    """A file with its changes."""

    file: str
    old: str
    new: str
    number: int
    """The number of changes."""


def fixed_files(findings: Iterable[Finding], files: Collection[str]) -> Iterator[Fixed]:
    """Yield the files of a check that have changes. Raises OSError where one cannot be read."""
    for file, fixes in files_with(fix for finding in findings for fix in finding.fixes).items():
        if file in files and file != STDIN:
            old = read_proposal(file)
            new, number = fixed_text(old, file, fixes)
            if number:
                yield Fixed(file, old, new, number)


_NO_KIND = (
    "is of no kind that nfstuned reads: fstab, units, maps of the automounter, cloud-init, Kubernetes, "
    "compose, Ansible, Terraform's plan as JSON, and shell scripts"
)


def read_deployment(paths: Sequence[str]) -> Deployment:
    """Return the requests of files, and of the files below folders.

    A file that could not be read is a problem, and a named file of no known kind.
    """
    problems: list[ParseError] = []

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
        deployment.unexpanded.append(Unexpanded(f"no file of a known kind below {', '.join(paths)}", ".", 0))
    return deployment
