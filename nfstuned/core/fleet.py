"""One verdict of many hosts: their findings, each once, and the hosts that it lacks.

Memory grows with the hosts and with the different findings, and not with the documents.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from nfstuned.errors import ParseError
from nfstuned.model.facts import BROKEN, CLEAN, FINDINGS, Severity
from nfstuned.parse.verdict import HostFinding, Verdict

MOST_DIFFERENT = 10_000
"""Findings with a text of their own; those of later texts are counted together for each rule."""
_EARLY_S = 3600
"""A clock that is faster than that is wrong."""


class FleetHost(NamedTuple):
    """A host in the verdict."""

    name: str
    time_s: float
    version: str
    counts: tuple[int, ...]
    """The number of its findings of each severity, the worst first."""
    unknown: int
    broken: bool

    @property
    def worst(self) -> Severity | None:
        """The severity of its worst finding."""
        return next((level for level, number in zip(Severity, self.counts, strict=True) if number), None)


class FleetFinding(NamedTuple):
    """The same finding of one or more hosts."""

    finding: HostFinding
    """Where hosts have different texts, its texts are the patterns."""
    number: int
    hosts: tuple[str, ...]


class LeftOut(NamedTuple):
    """A document that does not count."""

    file: str
    host: str
    """"" where it is not known."""
    reason: str
    replaced: bool = False
    """A newer document of the host counts instead."""


@dataclass(frozen=True, slots=True)
class FleetReport:
    """The verdict of many hosts."""

    hosts: tuple[FleetHost, ...]
    """The worst first."""
    findings: tuple[FleetFinding, ...]
    """The worst first, and of equal ones the finding of most hosts first."""
    left_out: tuple[LeftOut, ...]
    fail_on: Severity

    @property
    def missing(self) -> int:
        """The number of documents without a verdict: their hosts may have any finding."""
        return sum(not each.replaced for each in self.left_out)

    @property
    def exit_code(self) -> int:
        """As of a check: 2 where a host was not judged, or not as a whole."""
        if self.missing or not self.hosts or any(host.broken for host in self.hosts):
            return BROKEN
        fails = any(each.finding.severity.rank <= self.fail_on.rank for each in self.findings)
        return FINDINGS if fails else CLEAN

    def with_worst(self, severity: Severity | None) -> list[str]:
        """Return the names of the hosts that have this severity at worst."""
        return [host.name for host in self.hosts if host.worst is severity]


class _Kept(NamedTuple):
    host: FleetHost
    file: str
    findings: Counter[int]
    """How often it has each finding."""


@dataclass(slots=True)
class Fleet:
    """Documents of hosts, as they come."""

    now_s: float
    oldest_s: float | None = None
    """Documents from before this time, in Unix seconds, are stale."""
    _hosts: dict[str, _Kept] = field(default_factory=dict)
    _places: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
    _findings: list[HostFinding] = field(default_factory=list)
    _left_out: list[LeftOut] = field(default_factory=list)

    def refuse(self, problem: ParseError, host: str = "") -> None:
        """Count a document that cannot be used."""
        place = f"{problem.file}:{problem.line}" if problem.line else problem.file
        self._left_out.append(LeftOut(place, host, problem.message))

    def add(self, verdict: Verdict, place: str) -> None:
        """Count a host's document; of two documents of a host the newer one counts."""
        host = verdict.host
        if verdict.time_s > self.now_s + _EARLY_S:
            self.refuse(ParseError(place, 0, "its time is in the future: set the clock of its host"), host)
        elif self.oldest_s is not None and verdict.time_s < self.oldest_s:
            self.refuse(ParseError(place, 0, "older than --older-than allows: run the check again"), host)
        elif host in self._hosts and self._hosts[host].host.time_s >= verdict.time_s:
            self._replace(place, host, self._hosts[host].file)
        else:
            if host in self._hosts:
                self._replace(self._hosts[host].file, host, place)
            self._hosts[host] = self._kept(verdict, place)

    def _replace(self, old: str, host: str, new: str) -> None:
        self._left_out.append(LeftOut(old, host, f"{new} counts instead: it is not older", replaced=True))

    def _kept(self, verdict: Verdict, place: str) -> _Kept:
        levels = Counter(finding.severity for finding in verdict.findings)
        counts = tuple(levels[severity] for severity in Severity)
        host = FleetHost(
            verdict.host, verdict.time_s, verdict.version, counts, verdict.unknown, verdict.broken
        )
        return _Kept(host, place, Counter(map(self._place, verdict.findings)))

    def _place(self, finding: HostFinding) -> int:
        """Return the place of a finding among all different ones."""
        key = (finding.rule, finding.severity.value, finding.pattern, finding.remedy_pattern)
        if key not in self._places and len(self._places) >= MOST_DIFFERENT:
            key = (*key[:2], "", "")
            words = f"{finding.name.replace('-', ' ')}, with other texts"
            finding = finding._replace(message=words, pattern=words, remedy="", remedy_pattern="")
        place = self._places.setdefault(key, len(self._findings))
        if place == len(self._findings):
            self._findings.append(finding)
        known = self._findings[place]
        if known.message != finding.message:
            known = known._replace(message=finding.pattern)
        if known.remedy != finding.remedy:
            known = known._replace(remedy=finding.remedy_pattern)
        self._findings[place] = known
        return place

    def report(self, fail_on: Severity) -> FleetReport:
        """Return the verdict of all documents so far."""
        hosts = sorted(
            (kept.host for kept in self._hosts.values()),
            key=lambda host: (*(-number for number in host.counts), host.name),
        )
        names: list[list[str]] = [[] for _ in self._findings]
        numbers: Counter[int] = Counter()
        for name in sorted(self._hosts):
            numbers.update(self._hosts[name].findings)
            for place in self._hosts[name].findings:
                names[place].append(name)
        findings = (
            FleetFinding(finding, numbers[place], tuple(names[place]))
            for place, finding in enumerate(self._findings)
            if names[place]
        )
        left_out = sorted(self._left_out)
        return FleetReport(tuple(hosts), tuple(sorted(findings, key=_rank)), tuple(left_out), fail_on)


def _rank(each: FleetFinding) -> tuple[int, int, str, str]:
    finding = each.finding
    return finding.severity.rank, -len(each.hosts), finding.rule, finding.pattern
