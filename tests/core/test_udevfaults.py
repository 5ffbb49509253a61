"""What is promised of udev was held against udevadm test of systemd 252."""

from __future__ import annotations

import pytest
from hypothesis import given

from nfstuned.core.rules.nfs1_read_ahead import broken
from nfstuned.core.udev.faults import find_broken
from nfstuned.model.facts import Facts
from nfstuned.model.mounts import Snapshot
from nfstuned.model.policy import Policy
from nfstuned.model.udev import UdevFile
from tests.core.test_udevwriters import AWK, NFS_UTILS, VENDOR
from tests.parse.damage import any_text, damaged

GOOD = VENDOR.replace("$4", "$$4")
ONE_LINE = GOOD.replace(" \\\n", "")


def found(text: str) -> list[tuple[int, str]]:
    """Return line and defect of each broken rule, as NFS105 sees the file."""
    facts = Facts(frozenset(), Snapshot(), Policy(()), udev=(UdevFile("/r", text),))
    return [(int(fault.subject.removeprefix("/r:")), fault.observed) for fault in broken(facts)]


def message(text: str) -> str:
    facts = Facts(frozenset(), Snapshot(), Policy(()), udev=(UdevFile("/r", text),))
    return next(iter(broken(facts))).message


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        ONE_LINE,
        NFS_UTILS,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace('"add" \\\n', '"add" \\\n# all of them\n'),
        ONE_LINE.replace("\n", ",\n") + ONE_LINE,
        "#" + VENDOR.replace("\n,", "\n#,"),
        'PROGRAM="/opt/kb %k"\nSUBSYSTEM=="bdi", RESULT!="", ATTR{read_ahead_kb}="%c"\n',
        'SUBSYSTEM=="bdi", IMPORT{program}="/opt/kind %k"\nENV{KIND}=="nfs", ATTR{read_ahead_kb}="15360"\n',
        ONE_LINE.replace("$kernel", "'$kernel'"),
        ONE_LINE.replace("-v bdi", "-v FS='\t' -v OFS= -v ORS='' -v bdi"),
        'SUBSYSTEM=="bdi", KERNEL=="0:*", ATTR{read_ahead_kb}="1024"\n',
        'SUBSYSTEM=="bdi", KERNEL=="0:*", ATTR{read_ahead_kb}=="128", ATTR{read_ahead_kb}="1024"\n',
        'SUBSYSTEM=="bdi", ATTR{read_ahead_kb}=="15360", ATTR{read_ahead_kb}="1024"\n',
        ONE_LINE.replace("ATTR", 'ATTR{read_ahead_kb}=="128", ATTR'),
        'SUBSYSTEM=="bdi", KERNEL=="lustre-*", ATTR{read_ahead_kb}="1024"\n',
        'SUBSYSTEM=="block", KERNEL=="sd[a-z]", ATTR{bdi/read_ahead_kb}="4096"\n',
        'SUBSYSTEM=="bdi", ACTION=="add", RUN+="/usr/local/bin/bdi_add_script %k"\n',
    ],
)
def test_what_works_is_not_broken(text: str) -> None:
    assert found(text) == []


def test_a_broken_rule_about_something_else_is_not_our_business() -> None:
    assert found('SUBSYSTEM=="block" \\ , ATTR{queue/scheduler}="none"\n' + ONE_LINE) == []


@pytest.mark.parametrize("end", [" \\ \n", "\t\\\t\n"])
def test_a_space_after_each_backslash_is_one_defect_at_the_first_line(end: str) -> None:
    text = GOOD.replace(" \\\n", end)
    assert found("\n" + text) == [(2, "space after the backslash")]
    assert "line 4 writes 15360 KiB to every bdi, disks too" in message(text)


def test_lines_without_their_backslashes_are_one_defect() -> None:
    for text in (GOOD.replace(" \\\n", "\n"), GOOD.replace(" \\\n, ", ",\n"), GOOD.replace(" \\\n, ", "\n")):
        assert found(text) == [(1, "missing backslash")]
        assert "line 4 writes 15360 KiB to every bdi, disks too" in message(text)


def test_a_program_without_its_backslash_is_a_part_though_its_answer_is_taken() -> None:
    assert found(NFS_UTILS.replace(", ", "\n, ")) == [(1, "missing backslash")]
    assert found(NFS_UTILS.replace(", ", "\n")) == [(1, "missing backslash")]


def test_where_the_condition_stays_with_the_value_only_the_event_is_lost() -> None:
    text = GOOD.replace('"bdi" \\\n', '"bdi" \\ \n')
    assert found(text) == [(1, "space after the backslash")]
    assert "at the events of other devices" in message(text)


def test_backslashes_within_a_line_are_named() -> None:
    assert found(GOOD.replace("\\\n", "\\ ")) == [(1, "flattened continuation")]


def test_a_backslash_at_the_end_of_the_file_is_named() -> None:
    assert found(GOOD.rstrip("\n") + " \\\n") == [(1, "backslash at the end of the file")]


def test_a_dollar_sign_of_awk_is_named_with_the_rules_first_line() -> None:
    assert found("# azure\n\n" + VENDOR) == [(3, "$4 for $$4")]


def test_a_rule_that_a_shell_has_eaten_into_is_named() -> None:
    assert found(ONE_LINE.replace("$$4", "").replace("$kernel", "")) == [(1, "variables eaten by a shell")]
    assert found(ONE_LINE.replace("$$4", "")) == [(1, "variables eaten by a shell")]
    for empty in ("''", '\\"\\"'):
        assert found(ONE_LINE.replace("$kernel", empty)) == [(1, "variables eaten by a shell")]


@pytest.mark.parametrize(
    "rule",
    [
        'SUBSYSTEM=="bdi", ACTION=="add", ATTR{read_ahead_kb}="15360"',
        'ATTR{read_ahead_kb}="15360"',
        'SUBSYSTEM=="bdi", RUN+="/bin/sh -c \'echo 15360 > /sys/class/bdi/%k/read_ahead_kb\'"',
    ],
)
def test_a_rule_for_every_bdi_is_named(rule: str) -> None:
    assert found(ONE_LINE + rule + "\n") == [(2, "unconditional bdi write")]


@pytest.mark.parametrize("asks", ['=="128"', '=="128|256"', '!="15360"'])
def test_a_rule_for_every_bdi_of_the_kernels_own_value_is_named(asks: str) -> None:
    rule = f'SUBSYSTEM=="bdi", ATTR{{read_ahead_kb}}{asks}, ATTR{{./read_ahead_kb}}="15360"\n'
    assert found(rule) == [(1, "unconditional bdi write")]
    assert "to every device's bdi that has the value it asks for: nothing in it asks for NFS" in message(rule)
    guard = f'ATTR{{[bdi/%k]read_ahead_kb}}!="1", GOTO="end"\n{rule}LABEL="end"\n'
    assert found(guard) == []


def test_what_a_device_has_after_another_rule_is_not_known() -> None:
    rule = 'SUBSYSTEM=="bdi", ATTR{read_ahead_kb}=="128", ATTR{read_ahead_kb}="15360"\n'
    assert found('SUBSYSTEM=="bdi", KERNEL=="8:*", ATTR{read_ahead_kb}="512"\n' + rule) == []
    assert found('SUBSYSTEM=="bdi", KERNEL=="7:*", ATTR{read_ahead_kb}="512"\n' + rule) == [
        (2, "unconditional bdi write")
    ]


@pytest.mark.parametrize(
    "rule",
    [
        'ACTION=="add", ATTR{read_ahead_kb}="15360"',
        'ACTION=="add", RUN+="/bin/sh -c \'echo 15360 > /sys/class/bdi/%k/read_ahead_kb\'"',
    ],
)
@pytest.mark.parametrize(
    ("jump", "defects"),
    [
        ('SUBSYSTEM!="bdi"', [(2, "unconditional bdi write")]),
        ('KERNEL!="0:*"', []),
        ('TEST=="/run/nowhere"', []),
        ('PROGRAM!="/bin/grep -q %k /proc/fs/nfsfs/volumes"', []),
    ],
)
def test_a_jump_is_a_condition_of_what_it_passes_over(
    jump: str, defects: list[tuple[int, str]], rule: str
) -> None:
    assert found(f'{jump}, GOTO="end"\n{rule}\nLABEL="end"\n') == defects


def test_a_typing_error_is_named_in_the_words_of_udev() -> None:
    text = 'SUBSYSTEM=="bdi", ATR{read_ahead_kb}="1"\n'
    assert found(text) == [(1, "rule ignored by udev")]
    assert "Invalid key 'ATR'" in message(text)


@given(damaged(VENDOR + NFS_UTILS) | any_text)
def test_any_text_is_judged(text: str) -> None:
    for rule in find_broken(text, {1: "15360", 4: "15360"}):
        assert rule.line >= 1
    assert AWK
