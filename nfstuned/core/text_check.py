"""A check's report as lines for people: by subject, each finding with its remedy, and a verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from nfstuned.core.render import count, printable
from nfstuned.model.finding import Finding, Need
from nfstuned.model.report import Report
from nfstuned.model.severity import Severity

_SEVERITY, _RULE = 9, 8
_MARGIN = 2
_HANG = " " * (_MARGIN + _SEVERITY + _RULE)
_LEAST = 30
_LACKS = {
    Need.LIVE: "a running kernel",
    Need.NETWORK: "the network",
    Need.SAMPLE: "--sample SECONDS",
    Need.IMAGE: "--root DIR",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line; a finding's first line has its severity in a column of its own."""

    text: str
    severity: Severity | None = None
    heading: bool = False

    @property
    def lead(self) -> str:
        """What stands before the text, to be coloured: margin and severity."""
        return f"{'':{_MARGIN}}{self.severity.value:{_SEVERITY}}" if self.severity else ""


def report_lines(report: Report, width: int | None = None) -> Iterator[Line]:
    """Yield the whole report; text is wrapped at `width` columns, None for not at all."""
    sources = {target.subject: target.source for target in report.facts.targets}
    for subject, findings in groupby(report.diagnosis.findings, lambda finding: finding.subject):
        source = sources.get(subject)
        yield Line(printable(f"{subject}  {source}" if source else subject), heading=True)
        for finding in findings:
            yield from _finding(finding, width)
        yield Line("")
    for text in verdict(report):
        yield from (Line(piece) for piece in _wrapped(text, width))


def _finding(finding: Finding, width: int | None) -> Iterator[Line]:
    room = None if width is None else max(_LEAST, width - len(_HANG))
    first, *rest = _wrapped(printable(finding.message), room)
    yield Line(f"{finding.rule:{_RULE}}{first}", finding.severity)
    remedy = _wrapped(f"Remedy: {printable(finding.remedy)}", room) if finding.remedy else []
    yield from (Line(_HANG + text) for text in [*rest, *remedy])


def _wrapped(text: str, width: int | None) -> list[str]:
    """Return the text's lines; a word is never broken, for it may be a command's."""
    if width is None:
        return [text]
    from textwrap import wrap  # noqa: PLC0415 - only a terminal has a width

    return wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]


def verdict(report: Report) -> Iterator[str]:
    """Yield what came of a check in one or two lines."""
    findings = report.diagnosis.findings
    judged = len(report.rules) - len(report.skipped)
    scope = f"{count(len(report.facts.targets), 'mount')}, {count(judged, 'rule')}"
    found = ", ".join(
        _counted(number, severity) for severity in Severity if (number := report.number(severity))
    )
    doubts = f"; {count(len(report.doubts), 'thing')} not found out, see above" if report.doubts else ""
    said = f"{found} ({scope})" if found else f"Nothing to report: {scope}"
    yield f"{said}{doubts}{_skipped(report)}"
    if findings:
        worst = min(findings, key=lambda finding: finding.severity.rank)
        yield f"Learn more: nfstuned explain {worst.rule}"


def _counted(number: int, severity: Severity) -> str:
    """Return "2 warnings"; advice and info have no plural."""
    countable = severity in {Severity.ERROR, Severity.WARNING}
    return count(number, severity.value) if countable else f"{number} {severity.value}"


def _skipped(report: Report) -> str:
    """Return how many rules were skipped, and for the lack of what."""
    if not report.skipped:
        return ""
    lacking = [min(rule.needs - report.facts.has, key=list(Need).index) for rule in report.skipped]
    reasons = ", ".join(
        f"{lacking.count(need)} {_needs(lacking.count(need))} {words}"
        for need, words in _LACKS.items()
        if need in lacking
    )
    return f"; {count(len(report.skipped), 'rule')} skipped ({reasons})"


def _needs(number: int) -> str:
    return "needs" if number == 1 else "need"
