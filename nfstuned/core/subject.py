"""A finding's subject, taken apart: a file, perhaps with a line, or a mount point or an interface."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nfstuned.model.report import Report

_LINE = re.compile(r"(?P<file>.+):(?P<line>[0-9]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file; line 0 means the file as a whole."""

    file: str
    line: int


def place(report: Report, subject: str) -> Place | None:
    """Return the line that a subject names; None for a live mount's point, an interface and the like."""
    if any(target.live and target.point == subject for target in report.facts.targets):
        return None
    found = _LINE.fullmatch(subject)
    file, line = (found["file"], int(found["line"])) if found else (subject, 0)
    # An interface can be called "eth0:1".
    return Place(file, line) if file.startswith("/") or file == report.facts.proposal else None
