"""A check's report as the JSON contract nfstuned.check/1 (docs/schema/nfstuned.check.1.json)."""

from __future__ import annotations

from collections.abc import Iterable

from nfstuned import __version__
from nfstuned.core.render import Document
from nfstuned.model.facts import Target
from nfstuned.model.finding import Finding, Need, Rule
from nfstuned.model.report import Report
from nfstuned.model.severity import Severity

FINDING_KEYS = ("rule", "name", "severity", "subject", "message", "observed", "expected", "remedy", "source")


def check_document(report: Report) -> Document:
    """Return the report as one document."""
    snapshot = report.facts.snapshot
    return {
        "schema": "nfstuned.check/1",
        "version": __version__,
        "root": report.root,
        "kernel": {
            "release": snapshot.kernel.text if snapshot.kernel else None,
            "distribution": snapshot.distribution.pretty_name if snapshot.distribution else None,
        },
        "mounts": [_mount(target) for target in report.facts.targets],
        "findings": [_finding(finding) for finding in report.diagnosis.findings],
        "summary": {
            **{severity.value: report.number(severity) for severity in Severity},
            "skipped": len(report.diagnosis.skipped),
        },
        "skipped": [{"rule": rule.id, "needs": needs(rule)} for rule in report.skipped],
        "unknown": list(report.facts.unknown),
        "problems": list(dict.fromkeys(str(problem) for problem in snapshot.problems)),
        "exit_code": report.exit_code,
    }


def findings_counts(report: Report) -> dict[tuple[str, str, str], int]:
    """Return how often each rule found something, by its id, name and severity; skipped rules are absent."""
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
    """Return in words for programs what a rule cannot judge without: "live", "network", and so on."""
    return [need.name.lower() for need in Need if need in rule.needs]


def _mount(target: Target) -> Document:
    return {
        "mount_point": target.point,
        "source": target.source,
        "fstype": target.fstype,
        "device": target.live.device if target.live else None,
        "provider": target.endpoint.provider,
        "profile": target.profile.name,
        "live": target.live is not None,
    }


def _finding(finding: Finding) -> Document:
    return {key: getattr(finding, key) for key in FINDING_KEYS}
