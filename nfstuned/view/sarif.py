"""A check's report as SARIF 2.1.0 (OASIS), which code hosts and editors show beside the files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from nfstuned import __version__
from nfstuned.core.rules.catalogue import CATALOGUE
from nfstuned.model.facts import BROKEN, Report
from nfstuned.model.finding import Finding, Rule, Severity
from nfstuned.view.words import Document, printable

_LINE = re.compile(r"(?P<file>.+):(?P<line>[0-9]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SubjectPlace:
    """A line of a file; line 0 means the file as a whole."""

    file: str
    line: int


def place(report: Report, subject: str) -> SubjectPlace | None:
    """Return the line that a subject names; None for a live mount's point, an interface and the like."""
    if any(target.live and target.point == subject for target in report.facts.targets):
        return None
    match = _LINE.fullmatch(subject)
    file, line = (match["file"], int(match["line"])) if match else (subject, 0)
    # An interface can be called "eth0:1".
    return SubjectPlace(file, line) if file.startswith("/") or file == report.facts.proposal else None


SCHEMA = "https://json.schemastore.org/sarif-2.1.0-rtm.5.json"
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.ADVICE: "note",
    Severity.INFO: "note",
}
_BASE = "ROOT"
_EMPTY: Mapping[str, str] = {}


def sarif_document(report: Report, pages: Mapping[str, str] = _EMPTY) -> Document:
    """Return the report as one document; `pages` are the rules' pages in Markdown, by id."""
    rules = [rule for rule in CATALOGUE if rule in report.rules or rule is CATALOGUE[0]]
    index = {rule.id: position for position, rule in enumerate(rules)}
    # Only the user knows where a relative root is.
    base: Document = {"description": {"text": printable(report.root)}}
    if report.root.startswith("/"):
        base = {"uri": _uri(report.root.rstrip("/") + "/")}
    run = {
        "tool": {
            "driver": {
                "name": "nfstuned",
                "version": __version__,
                "rules": [_rule(rule, pages.get(rule.id, "")) for rule in rules],
            }
        },
        "originalUriBaseIds": {_BASE: base},
        "invocations": [
            {
                "executionSuccessful": report.exit_code != BROKEN,
                "exitCode": report.exit_code,
                "toolExecutionNotifications": [
                    {"level": "note", "message": {"text": printable(doubt)}} for doubt in report.doubts
                ],
            }
        ],
        "results": [_result(report, finding, index[finding.rule]) for finding in report.diagnosis.findings],
        "columnKind": "unicodeCodePoints",
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule, page: str) -> Document:
    link = {"helpUri": rule.source} if rule.source.startswith("https://") else {}
    text = {"help": {"text": page, "markdown": page}} if page else {}
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.name.replace("-", " ")},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"severity": rule.severity.value, "source": rule.source},
        **link,
        **text,
    }


def _result(report: Report, finding: Finding, index: int) -> Document:
    remedy = f" Remedy: {finding.remedy}" if finding.remedy else ""
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": printable(f"{finding.subject}: {finding.message}.{remedy}")},
        "locations": [_location(report, finding.subject)],
        "properties": {
            key: printable(getattr(finding, key)) for key in ("observed", "expected", "remedy", "source")
        },
    }


def _location(report: Report, subject: str) -> Document:
    at = place(report, subject)
    if at is None:
        return {"logicalLocations": [{"fullyQualifiedName": printable(subject), "kind": "resource"}]}
    # A proposal is where the user has it, and no file of the host.
    proposed = at.file == report.facts.proposal
    artifact = {"uri": _uri(at.file)} if proposed else {"uri": _uri(at.file.lstrip("/")), "uriBaseId": _BASE}
    region = {"region": {"startLine": at.line}} if at.line else {}
    return {"physicalLocation": {"artifactLocation": artifact, **region}}


def _uri(path: str) -> str:
    """Return a path as a URI, byte for byte."""
    return ("file://" if path.startswith("/") else "") + quote(path, safe="/", errors="surrogateescape")
