"""One verdict of many hosts: as the JSON contract nfstuned.merge/1, as SARIF, as a page, and for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone

from nfstuned import __version__
from nfstuned.core.fleet import FleetFinding, FleetReport
from nfstuned.model.facts import Severity
from nfstuned.parse.fields import count, some
from nfstuned.view.words import TIME_FORM, Document, printable, utc, wrapped

MOST_EXAMPLES = 5
"""The hosts of a finding that a document for programs names."""
MOST_ROWS = 500
"""The hosts and documents that the page lists; with more of them a browser would take long."""
_HANG = " " * 11
_LEAST = 30


def merge_document(report: FleetReport) -> Document:
    """Return `nfstuned.merge/1` (docs/schema/nfstuned.merge.1.json)."""
    levels = [severity.value for severity in Severity]
    return {
        "schema": "nfstuned.merge/1",
        "version": __version__,
        "hosts": [
            {
                "host": host.name,
                "time": utc(host.time_s),
                "version": host.version,
                "worst": host.worst and host.worst.value,
                **dict(zip(levels, host.counts, strict=True)),
                "unknown": host.unknown,
                "complete": not host.broken,
            }
            for host in report.hosts
        ],
        "findings": [
            {
                "rule": each.finding.rule,
                "name": each.finding.name,
                "severity": each.finding.severity.value,
                "message": each.finding.message,
                "remedy": each.finding.remedy,
                "source": each.finding.source,
                "findings": each.number,
                "hosts": len(each.hosts),
                "first_hosts": list(each.hosts[:MOST_EXAMPLES]),
            }
            for each in report.findings
        ],
        "left_out": [
            {"file": each.file, "host": each.host or None, "reason": each.reason, "replaced": each.replaced}
            for each in report.left_out
        ],
        "summary": {
            "hosts": len(report.hosts),
            "clean": len(report.with_worst(None)),
            **{severity.value: len(report.with_worst(severity)) for severity in Severity},
            "incomplete": sum(host.broken for host in report.hosts),
            "missing": report.missing,
        },
        "exit_code": report.exit_code,
    }


def merge_sarif(report: FleetReport, host: str, time_s: float, pages: Mapping[str, str]) -> Document:
    """Return the findings as SARIF, each once; `host` merged the documents from `time_s` on."""
    from nfstuned.core.rules.catalogue import CATALOGUE  # noqa: PLC0415 - only here every rule is needed
    from nfstuned.view.ci import LEVELS, SarifRun, sarif  # noqa: PLC0415 - as above

    results: list[Document] = [
        {
            "ruleId": each.finding.rule,
            "level": LEVELS[each.finding.severity],
            "message": {"text": printable(f"{_on(each)}: {each.finding.message}.{_remedy(each, ' ')}")},
            "locations": [
                {"logicalLocations": [{"fullyQualifiedName": printable(name), "kind": "resource"}]}
                for name in each.hosts[:MOST_EXAMPLES]
            ],
            "properties": {"hosts": len(each.hosts), "findings": each.number},
        }
        for each in report.findings
    ]
    run = SarifRun(report.exit_code, host, time_s, list(_missing_lines(report)))
    return sarif(run, [(rule, pages.get(rule.id, "")) for rule in CATALOGUE], results, {})


def merge_page(report: FleetReport, made_s: float) -> Iterator[str]:
    """Yield a page line by line."""
    from nfstuned.view.pages import render  # noqa: PLC0415 - Jinja2 is slow to load

    return render(
        "fleet.jinja",
        title=f"NFS mounts of {count(len(report.hosts), 'host')}",
        made=f"{datetime.fromtimestamp(made_s, timezone.utc).strftime(TIME_FORM)} UTC",
        verdict=list(merge_verdict(report)),
        findings=report.findings,
        hosts=[(host, utc(host.time_s)) for host in report.hosts[:MOST_ROWS]],
        more_hosts=len(report.hosts) - MOST_ROWS,
        left_out=report.left_out[:MOST_ROWS],
        more_left_out=len(report.left_out) - MOST_ROWS,
        levels=[severity.value for severity in Severity],
    )


def merge_lines(report: FleetReport, width: int | None = None) -> Iterator[str]:
    """Yield the hosts by their worst findings, the findings, and the result; None is no width."""
    room = None if width is None else max(_LEAST, width - len(_HANG))
    for severity in Severity:
        if names := report.with_worst(severity):
            yield from _hung(f"{severity.value:9}", f"{_hosts(len(names))}: {some(names)}", room)
    if report.hosts and report.findings:
        yield ""
    for each in report.findings:
        finding = each.finding
        yield from _hung(f"{finding.severity.value:9}", f"{finding.rule}  {_on(each)}", room)
        texts = (f"{finding.message}", _remedy(each))
        yield from (line for text in texts if text for line in _hung("", text, room))
        yield ""
    yield from (piece for text in merge_verdict(report) for piece in wrapped(text, width))


def merge_verdict(report: FleetReport) -> Iterator[str]:
    """Yield the result in a few lines."""
    worst = ", ".join(
        f"{len(names)} with {severity.value} at worst"
        for severity in Severity
        if (names := report.with_worst(severity))
    )
    clean = len(report.with_worst(None))
    broken = [host.name for host in report.hosts if host.broken]
    yield f"{_hosts(len(report.hosts))}: {f'{worst}, ' if worst else ''}{clean} without a finding"
    if broken:
        yield f"{_hosts(len(broken))} not judged as a whole: {some(broken)}"
    if report.missing:
        yield f"{count(report.missing, 'document')} left out, so that hosts may be missing"
    doubts = sum(host.unknown for host in report.hosts)
    if doubts:
        yield f"{count(doubts, 'fact')} not known on {_hosts(sum(host.unknown > 0 for host in report.hosts))}"


def left_out_lines(report: FleetReport) -> Iterator[str]:
    """Yield a line for each document that does not count."""
    for each in report.left_out:
        yield f"{each.file}: {f'{each.host}: ' if each.host else ''}{each.reason}"


def _missing_lines(report: FleetReport) -> Iterator[str]:
    yield from left_out_lines(report)
    yield from (f"{host.name}: it was not judged as a whole" for host in report.hosts if host.broken)


def _hosts(number: int) -> str:
    return count(number, "host")


def _on(each: FleetFinding) -> str:
    more = f", {each.number} findings" if each.number > len(each.hosts) else ""
    return f"{_hosts(len(each.hosts))}{more}: {some(each.hosts)}"


def _remedy(each: FleetFinding, before: str = "") -> str:
    return f"{before}Remedy: {each.finding.remedy}" if each.finding.remedy else ""


def _hung(lead: str, text: str, room: int | None) -> Iterable[str]:
    first, *rest = wrapped(printable(text), room)
    return (f"  {lead:9}{first}", *(_HANG + line for line in rest))
