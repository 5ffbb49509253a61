"""The findings that people accept: by comments in their files, by [check], and by a baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from nfstuned.model.check import CheckSettings, Known
from nfstuned.model.facts import Finding, Ignore
from nfstuned.parse.fields import mask_secrets

MOST_UNUSED = 20
"""Comments without an effect that are named, of a file."""


class Accepted(NamedTuple):
    """The findings that are left, the number of those that are accepted, and comments that accept nothing."""

    findings: tuple[Finding, ...]
    ignored: int
    unused: tuple[str, ...]


def is_named(id_: str, name: str, words: Iterable[str]) -> bool:
    """Whether a word means a rule: by its name, by its id, or by the start of ids ("NFS1")."""
    return any(id_.startswith(word.upper()) or name == word.lower() for word in words)


def without_ignored(
    findings: Sequence[Finding], ignores: Sequence[Ignore], judged: Collection[tuple[str, str]]
) -> Accepted:
    """Return findings without those that a comment about their line accepts.

    A comment is named where it accepts nothing and all of its rules were `judged`, by id and name.
    """
    by_place: dict[str, list[Ignore]] = {}
    for ignore in ignores:
        by_place.setdefault(f"{ignore.file}:{ignore.meant}", []).append(ignore)
    left, used = list[Finding](), set[tuple[Ignore, str]]()
    for finding in findings:
        means = {
            (ignore, word)
            for ignore in by_place.get(finding.subject, ())
            for word in ignore.words
            if is_named(finding.rule, finding.name, [word])
        }
        used |= means
        if not means:
            left.append(finding)
    return Accepted(tuple(left), len(findings) - len(left), tuple(_unused(ignores, used, judged)))


def _unused(
    ignores: Iterable[Ignore], used: Collection[tuple[Ignore, str]], judged: Collection[tuple[str, str]]
) -> Iterator[str]:
    """Yield a sentence for each comment that accepts nothing, of a file at most MOST_UNUSED."""
    named = Counter[str]()
    for ignore in ignores:
        place = f"{ignore.file}:{ignore.line}"
        idle = [word for word in ignore.words if (ignore, word) not in used]
        said = [
            f"{place}: line {ignore.meant} has no finding {word} to ignore: remove the comment"
            for word in idle
            if any(is_named(*rule, [word]) for rule in judged)
        ]
        if not ignore.words:
            said = [
                (
                    f"{place}: the comment names no rule and ignores nothing: write nfstuned: ignore RULE "
                    "REASON"
                )
            ]
        named[ignore.file] += len(said)
        if named[ignore.file] <= MOST_UNUSED:
            yield from said


def configured(
    findings: Iterable[Finding], settings: Callable[[str], Sequence[CheckSettings]]
) -> Iterator[Finding]:
    """Yield the findings that no [check] ignores, with the severities that it gives.

    `settings` returns the tables for a file, the strongest last.
    """
    for finding in findings:
        tables = settings(file_of(finding.subject))
        if any(is_named(finding.rule, finding.name, table.ignore) for table in tables):
            continue
        given = [
            severity
            for table in tables
            for word, severity in table.severity.items()
            if is_named(finding.rule, finding.name, [word])
        ]
        yield replace(finding, severity=given[-1]) if given else finding


def file_of(subject: str) -> str:
    """Return the file of `file:line`; any other subject is returned as it is."""
    file, _, line = subject.rpartition(":")
    return file if line.isdecimal() else subject


def known(finding: Finding, sources: Mapping[str, str]) -> Known:
    """Return a finding without its line and without secrets; `sources` are the mounts' by the places."""
    texts = (file_of(finding.subject), finding.observed, sources.get(finding.subject, ""))
    return Known(finding.rule, *map(mask_secrets, texts))


def without_known(
    findings: Iterable[Finding],
    sources: Mapping[str, str],
    baseline: Mapping[Known, int],
    judged: Callable[[Known], bool],
) -> tuple[tuple[Finding, ...], int]:
    """Return the findings that a baseline does not have, and the number of its findings that are gone.

    A baseline has each finding as often as it was found. One that was not `judged` this time is not gone.
    """
    left = Counter(baseline)
    new = []
    for finding in findings:
        each = known(finding, sources)
        if left[each] > 0:
            left[each] -= 1
        else:
            new.append(finding)
    return tuple(new), sum(count for each, count in left.items() if count > 0 and judged(each))
