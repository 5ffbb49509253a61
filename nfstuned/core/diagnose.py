"""Facts to findings: every rule once, a rule that raises included."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nfstuned.model.facts import Facts
from nfstuned.model.finding import Diagnosis, Fault, Finding, Need, Rule
from nfstuned.model.severity import Severity

CRASHED = Rule("NFS000", "rule-crashed", Severity.ERROR, lambda _: (), "")


def diagnose(facts: Facts, rules: Iterable[Rule]) -> Diagnosis:
    """Return what the rules find, by subject and severity; what lacks its needs is skipped and named.

    Rules about images are no loss on a running host, so that they are not counted there.
    """
    findings: list[Finding] = []
    skipped: list[str] = []
    crashed = False
    for rule in rules:
        lacking = rule.needs - facts.has
        if lacking:
            if Need.IMAGE not in lacking:
                skipped.append(rule.id)
            continue
        try:
            findings.extend(_finding(rule, fault) for fault in rule.judge(facts))
        except Exception as error:  # noqa: BLE001 - one of three places: a broken rule must never look clean
            crashed = True
            message = f"{rule.id} {rule.name} crashed: {type(error).__name__}: {error}"
            findings.append(_finding(CRASHED, Fault(rule.id, message)))
    # A proposed line and the live mount that it is about may have the same to say.
    return Diagnosis(tuple(sorted(dict.fromkeys(findings), key=_order)), tuple(skipped), crashed)


def select(rules: Sequence[Rule], chosen: Sequence[str], ignored: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules that `chosen` means (all where it is empty) and `ignored` does not.

    A word means a rule by its name, by its id, or by the start of ids: "NFS1" is a family.
    """
    return tuple(rule for rule in rules if (not chosen or _any(rule, chosen)) and not _any(rule, ignored))


def _any(rule: Rule, words: Sequence[str]) -> bool:
    return any(rule.id.startswith(word.upper()) or rule.name == word.lower() for word in words)


def _finding(rule: Rule, fault: Fault) -> Finding:
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=rule.severity,
        subject=fault.subject,
        message=fault.message,
        observed=fault.observed,
        expected=fault.expected,
        remedy=fault.remedy,
        source=fault.source or rule.source,
    )


def _order(finding: Finding) -> tuple[str, int, str, str]:
    return finding.subject, finding.severity.rank, finding.rule, finding.message
