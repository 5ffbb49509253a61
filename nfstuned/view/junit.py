"""A check's report as JUnit's XML, as Jenkins, GitLab and others read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from nfstuned.core.rules.catalogue import CRASHED
from nfstuned.model.facts import Report
from nfstuned.model.finding import Finding
from nfstuned.view.words import printable

_NAME = "nfstuned check"
_NO_TIME = "0"


@dataclass(frozen=True, slots=True)
class Stamp:
    """When and where a check ran."""

    time: str
    """2026-11-20T13:00:00, UTC."""
    host: str


def junit(report: Report, stamp: Stamp) -> str:
    """Return the report as an XML document.

    A finding that fails the check is a failed test; a crashed rule is an error, and so is a part of fstab
    that was not judged. Each other rule is a test that passed or was skipped. Findings below `fail_on` are in
    system-out, doubts in system-err.
    """
    cases = list(_cases(report))
    kinds = [child.tag for case in cases for child in case]
    counts = {
        "tests": len(cases),
        "failures": kinds.count("failure"),
        "errors": kinds.count("error"),
        "skipped": kinds.count("skipped"),
    }
    top = Element("testsuites")
    suite = SubElement(top, "testsuite", name=_NAME, package="nfstuned", id="0")
    suite.attrib.update({key: str(number) for key, number in counts.items()})
    suite.attrib.update(time=_NO_TIME, timestamp=stamp.time, hostname=stamp.host)
    properties = SubElement(suite, "properties")
    SubElement(properties, "property", name="root", value=printable(report.root))
    suite.extend(cases)
    mild = [finding for finding in report.diagnosis.findings if not report.fails(finding)]
    SubElement(suite, "system-out").text = "\n".join(
        printable(f"{finding.subject}: {finding.severity.value}: {finding.message} ({finding.rule})")
        for finding in mild
    )
    SubElement(suite, "system-err").text = "\n".join(printable(doubt) for doubt in report.doubts)
    indent(top)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(top, "unicode") + "\n"


def _cases(report: Report) -> Iterator[Element]:
    findings = [finding for finding in report.diagnosis.findings if report.fails(finding)]
    for finding in findings:
        kind = "error" if finding.rule == CRASHED.id else "failure"
        case = _case(finding.rule, finding.name, finding.subject)
        text = printable(finding.message)
        told = SubElement(case, kind, message=text, type=finding.severity.value)
        told.text = "\n".join(_details(finding))
        yield case
    for problem in report.unjudged:
        case = _case("NFS", "fstab", str(problem))
        SubElement(case, "error", message=printable(str(problem)), type="fstab")
        yield case
    failed = {finding.rule for finding in findings}
    crashed = {finding.subject for finding in findings if finding.rule == CRASHED.id}
    for rule in report.rules:
        if rule.id not in failed | crashed:
            case = _case(rule.id, rule.name)
            if rule.id in report.diagnosis.skipped:
                SubElement(case, "skipped")
            yield case


def _case(rule: str, name: str, subject: str = "") -> Element:
    title = f"{rule} {name}: {printable(subject)}" if subject else f"{rule} {name}"
    return Element("testcase", name=title, classname=f"nfstuned.{rule[:4]}", time=_NO_TIME)


def _details(finding: Finding) -> Iterator[str]:
    yield printable(f"{finding.subject}: {finding.message}")
    for key in ("observed", "expected", "remedy", "source"):
        value = getattr(finding, key)
        if value:
            yield f"{key}: {printable(value)}"
