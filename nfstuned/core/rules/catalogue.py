"""The catalogue of rules: their selection by id and name, and the diagnosis of facts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from posixpath import commonprefix

from nfstuned.core.rules import (
    nfs1_read_ahead,
    nfs1_udev,
    nfs2_connections,
    nfs2_nconnect,
    nfs3_entries,
    nfs3_options,
    nfs3_refused,
    nfs4_endpoint,
    nfs4_identity,
    nfs4_tls,
    nfs4_tunnels,
    nfs5_host,
    nfs7_image,
    smb6,
)
from nfstuned.core.rules.accepted import MOST_UNUSED, is_named, without_ignored
from nfstuned.core.rules.rule import name_others, superblock_key
from nfstuned.model.facts import Diagnosis, Facts, Fault, Finding, Ignore, Need, Rule, Severity, Target
from nfstuned.model.mounts import Request

_FAMILIES = (
    nfs1_read_ahead,
    nfs1_udev,
    nfs2_connections,
    nfs2_nconnect,
    nfs3_entries,
    nfs3_options,
    nfs3_refused,
    nfs4_endpoint,
    nfs4_identity,
    nfs4_tls,
    nfs4_tunnels,
    nfs5_host,
    nfs7_image,
    smb6,
)
RULES: tuple[Rule, ...] = tuple(
    sorted(
        (value for family in _FAMILIES for value in vars(family).values() if isinstance(value, Rule)),
        key=lambda rule: rule.id,
    )
)
"""Every rule, in the order of the ids."""
CRASHED = Rule("NFS000", "rule-crashed", Severity.ERROR, lambda _: iter(()), "")


def run_rules(facts: Facts, rules: Iterable[Rule]) -> Diagnosis:
    """Return the findings of the rules by subject and severity, and the ids of skipped rules.

    A rule is skipped where the facts lack its needs, and counts as skipped where some of its faults depend on
    a need that they lack. Rules about images are not counted elsewhere.
    """
    findings: dict[Finding, None] = {}  # a proposed line and its live mount may cause the same finding
    lacking: dict[str, frozenset[Need]] = {}
    doubts, crashed = [*facts.unknown], False
    mounts, manifests = _live_mounts(facts), _manifests(facts)
    for rule in rules:
        lacks = rule.needs - facts.has
        if lacks:
            if Need.IMAGE not in lacks:
                lacking[rule.id] = lacks
            continue
        faults: list[Fault] = []
        try:
            for result in rule.results(facts):
                if isinstance(result, Need):
                    lacking[rule.id] = lacking.get(rule.id, frozenset()) | {result}
                elif isinstance(result, str):
                    doubts.append(result)
                else:
                    faults.append(result)
        except Exception as error:  # noqa: BLE001 - one of three places: a broken rule must never look clean
            crashed = True
            message = f"{rule.id} {rule.name} crashed: {type(error).__name__}: {error}"
            findings[_finding(CRASHED, Fault(rule.id, message))] = None
        findings |= {
            _finding(rule, _in_own_words(fault, manifests.get(fault.subject))): None
            for fault in _join(faults, mounts)
        }
    judged = {(rule.id, rule.name) for rule in rules if rule.id not in lacking}
    accepted = without_ignored(list(findings), facts.ignores, judged)
    doubts += [*accepted.unused, *_unknown_words(facts.ignores)]
    reported = {(finding.subject, finding.message) for finding in findings}
    problems = [
        f"{problem}"
        for problem in facts.snapshot.problems
        if (f"{problem.file}:{problem.line}", problem.message) not in reported
    ]
    return Diagnosis(
        findings=tuple(sorted(accepted.findings, key=_place)),
        skipped=tuple(lacking),
        lacking=lacking,
        crashed=crashed,
        doubts=tuple(dict.fromkeys((*doubts, *problems))),
        ignored=accepted.ignored,
    )


def _unknown_words(ignores: Iterable[Ignore]) -> Iterator[str]:
    unknown = [(ignore, word) for ignore in ignores if (word := first_unknown(ignore.words))]
    for ignore, word in unknown[:MOST_UNUSED]:
        yield f"{ignore.file}:{ignore.line}: {correction(word)}"


def select_rules(rules: Sequence[Rule], chosen: Sequence[str], ignored: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules that `chosen` means (all where it is empty) and `ignored` does not.

    A word means a rule by its name, by its id, or by the start of ids: "NFS1" is a family.
    """
    return tuple(
        rule
        for rule in rules
        if (not chosen or is_named(rule.id, rule.name, chosen)) and not is_named(rule.id, rule.name, ignored)
    )


def _manifests(facts: Facts) -> dict[str, Request]:
    """Return the requests with lines for options, or with a field for them, by each of their places."""
    return {
        f"{request.file}:{line}": request
        for request in (target.request for target in facts.targets)
        if request is not None and (request.field or request.option_lines)
        for line in (request.source_line, request.line, *request.lines)
    }


def _in_own_words(fault: Fault, request: Request | None) -> Fault:
    """Return a fault with its remedy in the words of the request's file: its field, and the option's line."""
    if request is None:
        return fault
    remedy = re.sub(rf"{re.escape(request.place)}(?!\d)", lambda _: fault.subject, fault.remedy)
    return fault._replace(remedy=remedy.replace("the options in", f"{request.field or 'the options'} in"))


def _live_mounts(facts: Facts) -> dict[str, Target]:
    """Return the live mounts by their subjects, without the mount points of several superblocks."""
    mounts: dict[str, Target] = {}
    ambiguous = set()
    for target in facts.targets:
        if target.live is not None:
            known = mounts.setdefault(target.subject, target)
            if superblock_key(known) != superblock_key(target):
                ambiguous.add(target.subject)
    return {subject: target for subject, target in mounts.items() if subject not in ambiguous}


def _join(faults: Iterable[Fault], mounts: Mapping[str, Target]) -> Iterator[Fault]:
    """Yield one fault for each superblock and mistake, and one for each server where the text is the same.

    It is a mount's that a file asks for, if there is one: no file asks for its binds. The host's own mounts
    precede those of other mount namespaces, which have mount points that mean nothing here.
    """

    def precedence(fault: Fault) -> tuple[bool, bool]:
        target = mounts.get(fault.subject)
        return (False, False) if target is None else (target.foreign, target.request is None)

    def by_superblock(fault: Fault, target: Target) -> object:
        number[fault.subject] += 1  # a mount may have several faults of a rule
        return superblock_key(target), number[fault.subject], fault.observed, fault.expected

    def by_server(fault: Fault, target: Target) -> object:
        return target.endpoint.host, fault._replace(subject="")

    number = Counter[str]()

    groups = [[fault] for fault in sorted(faults, key=precedence)]
    for key in (by_superblock, by_server):
        alike: dict[object, list[Fault]] = {}
        for group in groups:
            target = mounts.get(group[0].subject)
            alike.setdefault(object() if target is None else key(group[0], target), []).extend(group)
        groups = list(alike.values())
    for chief, *more in groups:
        others = dict.fromkeys(fault.subject for fault in more if fault.subject != chief.subject)
        yield chief._replace(message=chief.message + name_others([mounts[subject] for subject in others]))


def _place(finding: Finding) -> tuple[str | int, ...]:
    """Return a finding's place in a report: a file's findings are in the order of its lines."""
    file, _, line = finding.subject.rpartition(":")
    # No number is too long to be compared as a text: a mount point may end with one.
    place = (file, len(line), line) if line.isdecimal() else (finding.subject, 0, "")
    return (*place, finding.severity.rank, finding.rule, finding.message)


def _finding(rule: Rule, fault: Fault) -> Finding:
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=fault.severity or rule.severity,
        subject=fault.subject,
        message=fault.message,
        observed=fault.observed,
        expected=fault.expected,
        remedy=fault.remedy,
        source=fault.source or rule.source,
        fixes=fault.fixes,
    )


CATALOGUE: tuple[Rule, ...] = (CRASHED, *RULES)
"""Every id that a finding can have."""
_NEAR = 0.5


def find_rules(word: str) -> tuple[Rule, ...]:
    """Return the rules of that id or name, in any case; NFS and SMB have rules of the same name."""
    wanted = word.strip().lower()
    return tuple(rule for rule in CATALOGUE if wanted in {rule.id.lower(), rule.name})


def nearest(word: str, most: int = 3) -> tuple[str, ...]:
    """Return the ids with an id or name like `word`, the nearest first."""
    ids = {spelling: rule.id for rule in CATALOGUE for spelling in (rule.id.lower(), rule.name)}
    wanted = word.strip().lower()
    spellings = get_close_matches(wanted, ids, len(ids), _NEAR)
    # NFS10x is nearer to NFS101 than to NFS510: people err towards the end of an id.
    spellings.sort(key=lambda spelling: len(commonprefix((wanted, spelling))), reverse=True)
    return tuple(dict.fromkeys(ids[spelling] for spelling in spellings))[:most]


def split_words(lists: Iterable[str]) -> tuple[str, ...]:
    """Return the words of comma-separated lists."""
    return tuple(word.strip() for text in lists for word in text.split(",") if word.strip())


def first_unknown(chosen: Sequence[str]) -> str:
    """Return the first word that means no rule, "" where each means a rule."""
    return next((word for word in chosen if not select_rules(CATALOGUE, (word,), ())), "")


def correction(word: str) -> str:
    """Return the message about a word that means no rule."""
    names = {rule.id: rule.name for rule in CATALOGUE}
    near = ", ".join(f"{id_} ({names[id_]})" for id_ in nearest(word))
    return f"there is no rule {word!r}; {f'did you mean {near}?' if near else 'nfstuned rules lists them'}"
