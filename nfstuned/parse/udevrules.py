"""A udev rules file, read as systemd-udevd reads it (systemd: src/udev/udev-rules.c; udev(7)).

After systemd 258; where 252 differs, the function that differs says so. Compared with udevadm test of 252.
"""

from __future__ import annotations

from nfstuned.model.udev import UdevDefect, UdevRule, UdevRules, UdevToken
from nfstuned.parse.udevkeys import check_token, is_builtin
from nfstuned.parse.udevlines import Line, join_lines
from nfstuned.parse.udevtokens import split_tokens

_ORDER = (
    *("ACTION==", "DEVPATH==", "KERNEL==", "SYMLINK==", "NAME==", "ENV==", "CONST==", "TAG==", "SUBSYSTEM=="),
    *(
        "DRIVER==",
        "ATTR==",
        "SYSCTL==",
        "KERNELS==",
        "SUBSYSTEMS==",
        "DRIVERS==",
        "ATTRS==",
        "TAGS==",
        "TEST==",
    ),
    *("PROGRAM==", "IMPORT{file}==", "IMPORT{program}==", "IMPORT{builtin}==", "IMPORT{db}=="),
    *("IMPORT{cmdline}==", "IMPORT{parent}==", "RESULT==", "OPTIONS=", "OWNER=", "GROUP=", "MODE=", "TAG="),
    *("SECLABEL=", "ENV=", "NAME=", "SYMLINK=", "ATTR=", "SYSCTL=", "RUN{builtin}=", "RUN="),
)
_RANK = {name: rank for rank, name in enumerate(_ORDER)}
"""The order of UdevRuleTokenType, in which a rule's tokens are evaluated."""
_JUMPS = {"GOTO", "LABEL"}
_ACTS = {"PROGRAM", "IMPORT"}
"""Matches that do something: a rule of only others has no effect."""


def parse_udev_rules(text: str) -> UdevRules:
    """Return what udev makes of one rules file, as udev_rules_parse_file() does."""
    rules: list[UdevRule] = []
    defects: list[UdevDefect] = []
    for line in join_lines(text):
        if isinstance(line, UdevDefect):
            defects.append(line)
            continue
        rule, said = _rule(line)
        defects.extend(UdevDefect(line.first, line.last, each, dropped=rule is None) for each in said)
        if rule is not None:
            rules.append(rule)
    resolved, unresolved = _resolve(rules)
    return UdevRules(resolved, (*defects, *unresolved))


def _rule(line: Line) -> tuple[UdevRule | None, list[str]]:
    """Return one rule, or None where udev drops it, with what udev says; see rule_add_line()."""
    said: list[str] = []
    tokens: list[UdevToken] = []
    try:
        for written in split_tokens(line.text):
            token, more = check_token(written)
            said.extend(more)
            if token is not None:
                tokens.append(token)
    except ValueError as error:
        return None, [*said, str(error)]
    gotos = [token.value for token in tokens if token.key == "GOTO"]
    labels = [token.value for token in tokens if token.key == "LABEL"]
    said.extend(f'Contains multiple GOTO keys, ignoring GOTO="{each}".' for each in gotos[1:])
    said.extend(f'Contains multiple LABEL keys, ignoring LABEL="{each}".' for each in labels[:-1])
    if not any(_acts(token) for token in tokens):
        return None, [*said, "The line has no effect, ignoring."]
    ordered = tuple(sorted((token for token in tokens if token.key not in _JUMPS), key=_rank))
    label, goto = labels[-1] if labels else None, gotos[0] if gotos else None
    return UdevRule(line.first, line.last, ordered, label, goto), said


def _acts(token: UdevToken) -> bool:
    return not token.is_match or token.key in _ACTS


def _rank(token: UdevToken) -> int:
    """Return a token's place in sort_tokens(), which keeps the order of equals."""
    name = token.key
    if name == "IMPORT":
        builtin = token.attribute == "program" and is_builtin(token.value)
        name = "IMPORT{builtin}" if builtin else f"IMPORT{{{token.attribute}}}"
    elif name == "RUN" and token.attribute == "builtin":
        name = "RUN{builtin}"
    return _RANK[name + ("==" if token.is_match else "=")]


def _resolve(rules: list[UdevRule]) -> tuple[tuple[UdevRule, ...], list[UdevDefect]]:
    """Drop each GOTO without its label further down, and a rule that was no more; see rule_resolve_goto()."""
    kept: list[UdevRule] = []
    defects: list[UdevDefect] = []
    below: set[str] = set()
    for rule in reversed(rules):
        goto = rule.goto if rule.goto in below else None
        lost = rule.goto is not None and goto is None
        useless = lost and rule.label is None and not any(_acts(token) for token in rule.tokens)
        if lost:
            text = f'GOTO="{rule.goto}" has no matching label, ignoring.'
            defects.append(UdevDefect(rule.line, rule.last, text, dropped=useless))
        if not useless:
            kept.append(UdevRule(rule.line, rule.last, rule.tokens, rule.label, goto))
        if rule.label is not None:
            below.add(rule.label)
    return tuple(reversed(kept)), defects[::-1]
