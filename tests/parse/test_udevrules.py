"""What systemd 252's udevadm test says of the same texts was read off and is expected here, but for the
differences that the parser names."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.model.udev import UdevDefect, UdevRules, UdevToken
from nfstuned.parse.udev_rules import parse_udev_rules
from tests.parse.conftest import DATA

DROPPED, KEPT = ((DATA / name).read_text() for name in ("udev-dropped", "udev-kept"))
"""Lines with udev's message behind the last bar; the rule counts for nothing, or stays in force."""
OWN = [file for file in Path("/usr/lib/udev/rules.d").glob("*.rules") if file.name < "81"]
"""Rules that came with udev or with its neighbours; dev/setup.sh installs it."""
NFS_UTILS = 'SUBSYSTEM=="bdi", ACTION=="add", PROGRAM="/usr/libexec/nfsrahead %k", ATTR{read_ahead_kb}="%c"\n'
AWK = (
    "/usr/bin/awk -v bdi=$kernel 'BEGIN{ret=1} {if ($4 == bdi) {ret=0}} END{exit ret}' /proc/fs/nfsfs/volumes"
)
VENDOR = f"""\
SUBSYSTEM=="bdi" \\
, ACTION=="add" \\
, PROGRAM="{AWK}" \\
, ATTR{{read_ahead_kb}}="15360"
"""
FOURTH = f'Invalid value "{AWK}" for PROGRAM (char 48: invalid substitution type), ignoring.'
INVALID = "Invalid key/value pair, ignoring."
WRITE = 'ATTR{read_ahead_kb}="1"'


def said(text: str) -> list[tuple[int, str, bool]]:
    return [(each.last, each.message, each.dropped) for each in parse_udev_rules(text).defects]


def written(rules: UdevRules) -> list[list[str]]:
    return [[f"{t.key}{t.operator}{t.value}" for t in rule.tokens] for rule in rules.rules]


def values(text: str) -> list[str]:
    (rule,) = parse_udev_rules(text).rules
    return [token.value for token in rule.tokens]


def test_nfs_utils_rule_is_read_without_a_word() -> None:
    parsed = parse_udev_rules(NFS_UTILS)
    assert parsed.defects == ()
    program = "PROGRAM==/usr/libexec/nfsrahead %k"
    assert written(parsed) == [["ACTION==add", "SUBSYSTEM==bdi", program, "ATTR=%c"]]


def test_the_vendors_rule_is_one_rule_on_four_lines_whose_dollar_four_udev_minds() -> None:
    parsed = parse_udev_rules(VENDOR)
    (rule,) = parsed.rules
    assert (rule.line, rule.last) == (1, 4)
    assert rule.tokens[-1] == UdevToken("ATTR", "read_ahead_kb", "=", "15360")
    assert parsed.defects == (UdevDefect(1, 4, FOURTH, dropped=False),)


def test_udevs_own_rules_have_no_defect() -> None:
    parsed = {file.name: parse_udev_rules(file.read_text()) for file in OWN}
    assert sum(len(one.rules) for one in parsed.values()) > 100
    assert {name: one.defects for name, one in parsed.items() if one.defects} == {}


def test_lines_end_as_systemd_ends_them() -> None:
    text = 'ATTR{a}="5", \\\r\n  ATTR{a}="6"\r\nATTR{a}="7"\rATTR{a}="8"\0ATTR{a}="9"\n\r\n\rATTR{a}="10"\n'
    text += "BAD\nBAD\r\n\r\nBAD\n\rBAD\0\nBAD\r\rBAD\r\0BAD\n\\\n\\"
    parsed = parse_udev_rules(text)
    assert [rule.last for rule in parsed.rules] == [2, 3, 4, 5, 7]
    assert [each.last for each in parsed.defects if each.message == INVALID] == [8, 9, 11, 12, 14, 16, 17]
    last = "Unexpected EOF after line continuation, line ignored."
    assert parsed.defects[-1] == UdevDefect(18, 19, last, dropped=True)


@pytest.mark.parametrize(("length", "rules"), [(16383, 2), (16384, 0)])
def test_one_line_over_the_limit_costs_the_file(length: int, rules: int) -> None:
    parsed = parse_udev_rules(f"{WRITE}\n{'# é'.ljust(length - 1)}\n{WRITE}\n")
    assert (len(parsed.rules), len(parsed.defects)) == (rules, rules == 0)


@pytest.mark.parametrize(
    ("length", "end", "lasts", "message"),
    [
        (16383, f"\nBAD\n# more\n{WRITE}\n", [2, 5, 6], INVALID),
        (16384, f"\\\n# more\nBAD \\\n{WRITE}\n", [6], "Line is too long, ignored."),
    ],
)
def test_joined_lines_over_a_limit_cost_a_rule(length: int, end: str, lasts: list[int], message: str) -> None:
    text = f"{WRITE.ljust(9000)}\\\n{f', {WRITE}'.ljust(length - 9000)}{end}{WRITE}"
    parsed = parse_udev_rules(text)
    assert ([rule.last for rule in parsed.rules], parsed.defects[0].message) == (lasts, message)


def test_quotes_and_escapes_are_taken_off_as_udev_does() -> None:
    assert values(r'ATTR{a}="say \"no\" \n \\ ", ATTR{a}=e"5\x30\t\"\s\060é€\U0001f600\xff"') == [
        r'say "no" \n \\ ',
        '50\t" 0é€\U0001f600\udcff',
    ]


@pytest.mark.parametrize(
    "token",
    [
        *('ATTR{a}=e"\\q"', 'ATTR{a}=e"\\x00"', 'ATTR{a}=e"\\777"', 'ATTR{a}=e"\\ud800"', 'ATTR{a}="a\\\\"'),
        *('ATTR{a}=e"\\"', 'ATTR{a}="open', "ATTR{a}=plain", 'ATTR{a}=ee"1"', 'ATTR{a}=x"1"'),
        *('ATTR{a}="a\\"', "=", "ATTR", "ATTR{a", 'ATTR{a}~="1"', 'ATTR{a} "1"', "ATTR{a}="),
    ],
)
def test_a_token_that_cannot_be_read_costs_the_rule(token: str) -> None:
    assert said(token) == said(f"{WRITE}, {token}") == [(1, INVALID, True)]


def test_a_prefix_i_ignores_case() -> None:
    (rule,) = parse_udev_rules(f'KERNEL==i"A", KERNEL!=ei"\\x41", KERNEL==ie"B", {WRITE}').rules
    found = [(token.ignore_case, token.escaped, token.value) for token in rule.tokens]
    assert found == [(True, False, "A"), (True, True, "A"), (True, True, "B"), (False, False, "1")]


@pytest.mark.parametrize("case", DROPPED.splitlines())
def test_what_udev_refuses_costs_the_rule(case: str) -> None:
    text, _, message = case.rpartition("|")
    assert said(text) == [(1, message, True)]


@pytest.mark.parametrize("case", KEPT.splitlines())
def test_what_udev_only_minds_stays_in_force(case: str) -> None:
    text, _, message = case.rpartition("|")
    assert said(text) == [(1, message, False)]
    assert len(parse_udev_rules(text).rules) == 1


@pytest.mark.parametrize(
    "text",
    [
        'PROGRAM="/bin/true"',
        'PROGRAM+="/bin/true"',
        'PROGRAM:="/bin/true"',
        'IMPORT{db}="x"',
        'RUN{program}+="x"',
        'RUN{builtin}+="kmod load $env{MODALIAS}"',
        'CONST{arch}=="x", RUN="1"',
        'TEST{}=="x", TEST{0644}=="y", RUN="1"',
        'SYMLINK-="x", SYMLINK:="y", NAME=="x"',
        'OWNER="0", GROUP="disk", MODE:="0660", SECLABEL{x}+="y", OPTIONS+="watch"',
        'OPTIONS="log_level=reset", OPTIONS="link_priority= -7", OPTIONS="static_node=a"',
        'ENV{.x}+="$env{a$4}%E{b}", ENV{SUBSYSTEM}=="x"',
        'ATTRS{a}=="$4", ATTR{a}!="%", RUN="1"',
    ],
)
def test_what_udev_takes_in_silence_is_no_defect(text: str) -> None:
    assert said(text) == []


def test_tokens_stand_in_the_order_in_which_udev_evaluates_them() -> None:
    text = 'ATTR{x}="1", RUN="2", RUN{builtin}="kmod", RESULT=="3", IMPORT{program}="path_id", '
    text += 'IMPORT{program}="4", PROGRAM="5", PROGRAM="6", KERNEL=="7", ENV{a}="8"'
    assert values(text) == ["7", "5", "6", "4", "path_id", "3", "8", "1", "kmod", "2"]


def test_a_goto_leads_to_a_label_further_down_or_nowhere() -> None:
    text = 'LABEL="a"\nGOTO="a"\nGOTO="b", ATTR{x}="1"\nGOTO="c", GOTO="d"\n'
    text += 'GOTO="z", LABEL="c", ATTR{x}="2"\nGOTO="z", LABEL="y"\nGOTO="z", KERNEL=="x"'
    parsed = parse_udev_rules(text)
    jumps = [(1, "a", None), (3, None, None), (4, None, "c"), (5, "c", None), (6, "y", None)]
    assert [(rule.line, rule.label, rule.goto) for rule in parsed.rules] == jumps
    assert [(each.line, each.message, each.dropped) for each in parsed.defects] == [
        (4, 'Contains multiple GOTO keys, ignoring GOTO="d".', False),
        (2, 'GOTO="a" has no matching label, ignoring.', True),
        (3, 'GOTO="b" has no matching label, ignoring.', False),
        (5, 'GOTO="z" has no matching label, ignoring.', False),
        (6, 'GOTO="z" has no matching label, ignoring.', False),
        (7, 'GOTO="z" has no matching label, ignoring.', True),
    ]
