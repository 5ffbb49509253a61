"""A check's report for CI systems: SARIF 2.1.0 (OASIS), and JUnit's XML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from nfstuned import __version__
from nfstuned.core.rules.catalogue import CATALOGUE, CRASHED
from nfstuned.model.facts import BROKEN, Finding, Report, Rule, Severity
from nfstuned.view.words import Document, printable, utc

_LINE = re.compile(r"(?P<file>.+):(?P<line>[0-9]+)", re.DOTALL)


SCHEMA = "https://json.schemastore.org/sarif-2.1.0-rtm.5.json"
LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.ADVICE: "note",
    Severity.INFO: "note",
}
_ROOT = "ROOT"
_EMPTY: Mapping[str, str] = {}


def sarif_document(report: Report, pages: Mapping[str, str] = _EMPTY) -> Document:
    """Return the report as one document; `pages` are the rules' pages in Markdown, by id."""
    rules = [rule for rule in CATALOGUE if rule in report.rules or rule is CATALOGUE[0]]
    # Only the user knows where a relative root is.
    base: Document = {"description": {"text": printable(report.root)}}
    if report.root.startswith("/"):
        base = {"uri": _uri(report.root.rstrip("/") + "/")}
    run = SarifRun(report.exit_code, report.host, report.time_s, report.doubts)
    results = [_result(report, finding) for finding in report.diagnosis.findings]
    return sarif(run, [(rule, pages.get(rule.id, "")) for rule in rules], results, {_ROOT: base})


class SarifRun(NamedTuple):
    """The command that has results."""

    exit_code: int
    host: str
    began_s: float
    notes: Iterable[str]


def sarif(
    run: SarifRun, rules: Sequence[tuple[Rule, str]], results: Iterable[Document], bases: Document
) -> Document:
    """Return results as SARIF; each rule comes with its page."""
    index = {rule.id: position for position, (rule, _) in enumerate(rules)}
    shown = {
        "tool": {
            "driver": {
                "name": "nfstuned",
                "version": __version__,
                "rules": [_rule(rule, page) for rule, page in rules],
            }
        },
        "originalUriBaseIds": bases,
        "invocations": [
            {
                "executionSuccessful": run.exit_code != BROKEN,
                "exitCode": run.exit_code,
                "machine": printable(run.host),
                "startTimeUtc": utc(run.began_s),
                "toolExecutionNotifications": [
                    {"level": "note", "message": {"text": printable(text)}} for text in run.notes
                ],
            }
        ],
        # A newer version's rule has no place in the list.
        "results": [
            result | ({"ruleIndex": index[rule]} if (rule := str(result["ruleId"])) in index else {})
            for result in results
        ],
        "columnKind": "unicodeCodePoints",
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [shown]}


def _rule(rule: Rule, page: str) -> Document:
    link = {"helpUri": rule.source} if rule.source.startswith("https://") else {}
    text = {"help": {"text": page, "markdown": page}} if page else {}
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.name.replace("-", " ")},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"severity": rule.severity.value, "source": rule.source},
        **link,
        **text,
    }


def _result(report: Report, finding: Finding) -> Document:
    remedy = f" Remedy: {finding.remedy}" if finding.remedy else ""
    return {
        "ruleId": finding.rule,
        "level": LEVELS[finding.severity],
        "message": {"text": printable(f"{finding.subject}: {finding.message}.{remedy}")},
        "locations": [_location(report, finding.subject)],
        "properties": {
            key: printable(getattr(finding, key)) for key in ("observed", "expected", "remedy", "source")
        },
    }


def _location(report: Report, subject: str) -> Document:
    """Return the file and the line that a subject names; an interface can be called "eth0:1"."""
    match = _LINE.fullmatch(subject)
    file, line = (match["file"], int(match["line"])) if match else (subject, 0)
    # Of a plan the resource's address stands behind the file.
    plan = file.partition("#")[0]
    file = plan if plan in report.facts.files else file
    proposed = file == report.facts.proposal or file in report.facts.files
    mounted = any(target.live and target.point == subject for target in report.facts.targets)
    if mounted or not (file.startswith("/") or proposed):
        return {"logicalLocations": [{"fullyQualifiedName": printable(subject), "kind": "resource"}]}
    # A proposal is a file of the user, not of the host.
    artifact = {"uri": _uri(file)} if proposed else {"uri": _uri(file.lstrip("/")), "uriBaseId": _ROOT}
    region = {"region": {"startLine": line}} if line else {}
    return {"physicalLocation": {"artifactLocation": artifact, **region}}


def _uri(path: str) -> str:
    """Return a path as a URI, byte for byte."""
    return ("file://" if path.startswith("/") else "") + quote(path, safe="/", errors="surrogateescape")


_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "notice"}
_ESCAPES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def github_lines(report: Report) -> Iterator[str]:
    """Yield the findings as commands of a GitHub workflow, which shows them at the lines of the files.

    https://docs.github.com/actions/reference/workflow-commands-for-github-actions; a message may have colons
    and commas, a property may not. Doubts are warnings without a place.
    """
    for finding in report.diagnosis.findings:
        match = _LINE.fullmatch(finding.subject)
        file = printable(match["file"].partition("#")[0] if match else "").translate(_ESCAPES)
        place = f"file={file},line={match['line']}," if match else ""
        title = f"{finding.rule} {finding.name}".translate(_ESCAPES)
        remedy = f" Remedy: {finding.remedy}" if finding.remedy else ""
        where = "" if match else f"{finding.subject}: "
        text = printable(f"{where}{finding.message}.{remedy}").replace("%", "%25")
        yield f"::{_COMMANDS.get(finding.severity, 'notice')} {place}title={title}::{text}"
    for problem in report.unjudged:
        place = f"file={printable(problem.file).translate(_ESCAPES)},line={problem.line or 1},"
        yield f"::error {place}title=nfstuned::{printable(problem.message).replace('%', '%25')}"
    known = {str(problem) for problem in report.unjudged}
    for doubt in (doubt for doubt in report.doubts if doubt not in known):
        yield f"::warning title=nfstuned::{printable(doubt).replace('%', '%25')}"


_NAME = "nfstuned check"
_NO_TIME = "0"


def junit(report: Report) -> str:
    """Return the report as an XML document.

    A finding that fails the check is a failed test; a crashed rule and an unjudged part of fstab are errors.
    Each other rule is a test that passed or was skipped. Findings below `fail_on` are in system-out, doubts
    in system-err.
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
    began = utc(report.time_s).removesuffix("Z")
    suite.attrib.update(time=_NO_TIME, timestamp=began, hostname=printable(report.host))
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
        failure = SubElement(case, kind, message=text, type=finding.severity.value)
        details = {key: getattr(finding, key) for key in ("observed", "expected", "remedy", "source")}
        failure.text = "\n".join(
            (
                printable(f"{finding.subject}: {finding.message}"),
                *(f"{key}: {printable(value)}" for key, value in details.items() if value),
            )
        )
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
