"""One run of `nfstuned check`: what it looked at, with which rules, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from nfstuned.errors import ParseError
from nfstuned.model.facts import Facts
from nfstuned.model.finding import Diagnosis, Finding, Rule
from nfstuned.model.severity import Severity
from nfstuned.model.work import FSTAB

CLEAN, FOUND, BROKEN = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Report:
    """What every format of the output is made from."""

    root: str
    """The host's root as the user named it: "/" for the live host."""
    facts: Facts
    rules: tuple[Rule, ...]
    """Those that were chosen, skipped ones included."""
    diagnosis: Diagnosis
    fail_on: Severity = Severity.WARNING

    @property
    def exit_code(self) -> int:
        """0 without a finding as bad as `fail_on`, 1 with one, 2 after a crash or with an fstab half read."""
        if self.diagnosis.crashed or self.unjudged:
            return BROKEN
        return FOUND if any(self.fails(finding) for finding in self.diagnosis.findings) else CLEAN

    @property
    def unjudged(self) -> tuple[ParseError, ...]:
        """What of fstab, or of the file in its place, could not be read: what it asks for is not known."""
        file = self.facts.proposal or FSTAB
        found = (problem for problem in self.facts.snapshot.problems if problem.file == file)
        return tuple({str(problem): problem for problem in found}.values())

    def fails(self, finding: Finding) -> bool:
        """Whether a finding is as bad as `fail_on`, or worse."""
        return finding.severity.rank <= self.fail_on.rank

    def number(self, severity: Severity) -> int:
        """Return how many findings have this severity."""
        return sum(1 for finding in self.diagnosis.findings if finding.severity is severity)

    @property
    def skipped(self) -> tuple[Rule, ...]:
        """The rules that lacked something."""
        return tuple(rule for rule in self.rules if rule.id in self.diagnosis.skipped)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What could not be found out or understood, for people, each once."""
        problems = (str(problem) for problem in self.facts.snapshot.problems)
        return tuple(dict.fromkeys((*self.facts.unknown, *problems)))
