"""Rules, their pages, the index of the pages and the host trees hold together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest

from nfstuned.core.rules.catalogue import CATALOGUE, RULES
from nfstuned.host.installed import page
from nfstuned.model.facts import Need, Rule
from tests.check import hosts

PAGES = Path(__file__).parents[2] / "docs/rules"
SECTIONS = ["What it does", "Why it matters", "See it by hand", "Fix it", "Sources"]
FAMILIES = {
    "NFS0": "nfstuned itself",
    "NFS1": "Read-ahead",
    "NFS2": "nconnect and transports",
    "NFS3": "Mount options",
    "NFS4": "Endpoint",
    "NFS5": "Host and VM",
    "NFS7": "Images, with `--root`",
    "SMB6": "SMB",
}
ALL = pytest.mark.parametrize("rule", CATALOGUE, ids=lambda rule: rule.id)


def index(rules: Iterable[Rule]) -> str:
    """Return docs/rules/README.md."""
    parts = ["# The rules of `nfstuned check`\n\n`nfstuned explain RULE` prints a page.\n"]
    for family, members in groupby(rules, lambda rule: rule.family):
        parts.append(f"\n## {FAMILIES[family]}\n\n| Rule | Severity | Needs | Name |\n|---|---|---|---|\n")
        parts += [
            f"| [{one.id}]({one.id}.md) | {one.severity.value} | {_needs(one)} | {one.name} |\n"
            for one in members
        ]
    return "".join(parts)


def _needs(rule: Rule) -> str:
    return ", ".join(need.value for need in Need if need in rule.needs) or "files"


def test_ids_are_well_formed_unique_and_in_order() -> None:
    ids = [rule.id for rule in CATALOGUE]
    assert all(re.fullmatch(r"(NFS[0-57]|SMB6)[0-9]{2}", one) for one in ids)
    assert ids == sorted(set(ids))


def test_names_are_unique_within_a_protocol_and_made_of_words() -> None:
    names = [(rule.id[:3], rule.name) for rule in CATALOGUE]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for _, name in names)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_has_a_source(rule: Rule) -> None:
    assert rule.source


@ALL
def test_a_rule_has_a_page_with_its_name_and_severity(rule: Rule) -> None:
    lines = page(rule.id).splitlines()
    assert lines, f"docs/rules/{rule.id}.md is missing"
    assert lines[0] == f"# {rule.id}: {rule.name}"
    first = next(line for line in lines[1:] if line)
    assert first.startswith(f"*{rule.severity.value}* - ")
    assert [line[3:] for line in lines if line.startswith("## ")] == SECTIONS
    assert max(len(line) for line in lines if "](" not in line) <= 110


def test_every_page_has_a_rule() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == {rule.id for rule in CATALOGUE} | {"README"}


def test_the_index_lists_every_rule(golden: Callable[[Path, str], None]) -> None:
    golden(PAGES / "README.md", index(CATALOGUE))


@cache
def found(name: str) -> frozenset[str]:
    """Return the rules that a host fails."""
    return frozenset(finding.split()[0] for finding in hosts.load(name).findings)


@cache
def judged(name: str) -> frozenset[Need]:
    """Return the sources of facts that a check of a host has."""
    return hosts.load(name).scope.has


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_host_fails_each_rule_and_another_one_passes_it(rule: Rule) -> None:
    assert [name for name in hosts.names() if rule.id in found(name)], "no host fails it"
    assert [name for name in hosts.names() if rule.id not in found(name) and rule.needs <= judged(name)], (
        "no host passes it"
    )


def test_one_host_has_the_text_of_each_rule() -> None:
    rules = [finding.split()[0] for name in hosts.names() for finding in hosts.load(name).messages]
    assert sorted(rules) == sorted(rule.id for rule in RULES)
