"""A check's report: as the JSON contract nfstuned.check/1, and as lines for people."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from nfstuned import __version__
from nfstuned.model.facts import BROKEN, Need, Report, Rule, Severity
from nfstuned.parse.fields import count
from nfstuned.view.words import Document, printable, utc, wrapped

FINDING_KEYS = ("rule", "name", "severity", "subject", "message", "observed", "expected", "remedy", "source")


def check_document(report: Report) -> Document:
    """Return the report as one document."""
    snapshot = report.facts.snapshot
    problems = list(dict.fromkeys(map(str, snapshot.problems)))
    return {
        "schema": "nfstuned.check/1",
        "version": __version__,
        "time": utc(report.time_s),
        "host": report.host,
        "root": report.root,
        "kernel": {
            "release": snapshot.kernel.text if snapshot.kernel else None,
            "distribution": snapshot.distribution.pretty_name if snapshot.distribution else None,
        },
        "mounts": [
            {
                "mount_point": target.point,
                "source": target.source,
                "fstype": target.fstype,
                "device": target.live.device if target.live else None,
                "provider": target.endpoint.provider,
                "profile": target.profile.name,
                "live": target.live is not None,
            }
            for target in report.facts.targets
        ],
        "findings": [
            {key: getattr(finding, key) for key in FINDING_KEYS} for finding in report.diagnosis.findings
        ],
        "summary": {
            **{severity.value: report.number(severity) for severity in Severity},
            "skipped": len(report.diagnosis.skipped),
            "ignored": report.diagnosis.ignored,
            "accepted": report.diagnosis.accepted,
        },
        "skipped": [
            {"rule": rule.id, "needs": _words(rule.needs | report.diagnosis.lacking[rule.id])}
            for rule in report.skipped
        ],
        "unknown": [doubt for doubt in report.doubts if doubt not in problems],
        "problems": problems,
        "exit_code": report.exit_code,
    }


def findings_counts(report: Report) -> dict[tuple[str, str, str], int]:
    """Return the number of findings of each rule, by its id, name and severity, without skipped rules."""
    counts = {
        (rule.id, rule.name, rule.severity.value): 0 for rule in report.rules if rule not in report.skipped
    }
    for finding in report.diagnosis.findings:
        key = (finding.rule, finding.name, finding.severity.value)
        counts[key] = counts.get(key, 0) + 1
    return counts


def rules_document(rules: Iterable[Rule]) -> Document:
    """Return the catalogue as `nfstuned.rules/1` (docs/schema/nfstuned.rules.1.json)."""
    rows = [
        {
            "id": rule.id,
            "name": rule.name,
            "severity": rule.severity.value,
            "needs": needs(rule),
            "source": rule.source,
        }
        for rule in rules
    ]
    return {"schema": "nfstuned.rules/1", "rules": rows}


def needs(rule: Rule) -> list[str]:
    """Return a rule's needs in words for programs: "live", "network", and so on."""
    return _words(rule.needs)


def _words(chosen: Collection[Need]) -> list[str]:
    return [need.name.lower() for need in Need if need in chosen]


_SEVERITY, _RULE = 9, 8
_MARGIN = 2
_HANG = " " * (_MARGIN + _SEVERITY + _RULE)
_LEAST = 30
_LACKS = {
    Need.HOST: "a host or an image",
    Need.LIVE: "a running kernel",
    Need.NETWORK: "the network",
    Need.SAMPLE: "--sample SECONDS",
    Need.IMAGE: "--root DIR",
    Need.KERNEL: "--kernel RELEASE",
    Need.NFS_UTILS: "--nfs-utils VERSION",
}


class ReportLine(NamedTuple):
    """A line; a finding's first line has its severity in a column of its own."""

    text: str
    severity: Severity | None = None
    heading: bool = False

    @property
    def lead(self) -> str:
        """The margin and the severity before the text, to be coloured."""
        return f"{'':{_MARGIN}}{self.severity.value:{_SEVERITY}}" if self.severity else ""


def report_lines(report: Report, width: int | None = None) -> Iterator[ReportLine]:
    """Yield the whole report; text is wrapped at `width` columns, None for not at all."""
    room = None if width is None else max(_LEAST, width - len(_HANG))
    sources = report.sources
    for subject, findings in groupby(report.diagnosis.findings, lambda finding: finding.subject):
        source = sources.get(subject)
        yield ReportLine(printable(f"{subject}  {source}" if source else subject), heading=True)
        for finding in findings:
            first, *rest = wrapped(printable(finding.message), room)
            yield ReportLine(f"{finding.rule:{_RULE}}{first}", finding.severity)
            remedy = wrapped(f"Remedy: {printable(finding.remedy)}", room) if finding.remedy else []
            yield from (ReportLine(_HANG + text) for text in [*rest, *remedy])
        yield ReportLine("")
    for text in verdict_lines(report):
        yield from (ReportLine(piece) for piece in wrapped(text, width))


def verdict_lines(report: Report) -> Iterator[str]:
    """Yield the result of a check in a few lines."""
    findings = report.diagnosis.findings
    judged = len(report.rules) - len(report.skipped)
    files = f"{count(len(report.facts.files), 'file')}, " if len(report.facts.files) > 1 else ""
    scope = f"{files}{count(len(report.facts.targets), 'mount')}, {count(judged, 'rule')}"
    counts = ", ".join(
        # Advice and info have no plural.
        count(number, severity.value) if severity.rank <= 1 else f"{number} {severity.value}"
        for severity in Severity
        if (number := report.number(severity))
    )
    doubts = f"; {count(len(report.doubts), 'fact')} not known, named on stderr" if report.doubts else ""
    broken = report.exit_code == BROKEN
    rest = "nothing to report of the rest" if report.facts.targets else "no mount was understood"
    nothing = f"Not everything was judged; {rest}" if broken else "Nothing to report"
    result = f"{counts} ({scope})" if counts else f"{nothing}: {scope}"
    by = {"ignored by comments": report.diagnosis.ignored, "accepted": report.diagnosis.accepted}
    ignored = "".join(f"; {number} {how}" for how, number in by.items() if number)
    yield f"{result}{ignored}{doubts}{_skipped(report)}"
    if findings and report.facts.image:
        yield f"The files of the image are below {printable(report.root)}"
    worst = min(findings, key=lambda finding: finding.severity.rank, default=None)
    # Where a fact is not known, that is the news.
    if worst is not None and not (report.doubts and worst.severity is Severity.INFO):
        yield f"Learn more: nfstuned explain {worst.rule}"


def _skipped(report: Report) -> str:
    """Return the number of skipped rules, and their needs."""
    if not report.skipped:
        return ""
    first = [min(needs, key=list(Need).index) for needs in report.diagnosis.lacking.values()]
    alone = Need.HOST not in report.facts.has
    # For a file alone there is no host at all.
    lacking = [Need.HOST if alone and need is Need.LIVE else need for need in first]
    reasons = ", ".join(
        f"{number} {'needs' if number == 1 else 'need'} {words}"
        for need, words in _LACKS.items()
        if (number := lacking.count(need))
    )
    return f"; {count(len(report.skipped), 'rule')} skipped ({reasons})"
