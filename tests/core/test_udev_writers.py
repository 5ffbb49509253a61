"""Writers of a read-ahead among udev rules; the effects were compared with udevadm test of systemd 252."""

from __future__ import annotations

import time
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.udev.device import matches
from nfstuned.core.udev.writers import (
    describe,
    file_writers,
    final_writers,
    find_culprit,
    find_writers,
    reaches_all,
)
from nfstuned.model.udev import RuleWriter, UdevFile, UdevToken
from tests.parse.damage import any_text, damaged, tokens_damaged
from tests.parse.test_udevrules import NFS_UTILS, VENDOR

PACKAGED = ("/usr/lib/udev/rules.d/99-nfs.rules", NFS_UTILS)
NFSRAHEAD = RuleWriter(PACKAGED[0], 1, "%c", "/usr/libexec/nfsrahead %k", certain=False)
SECOND = 'ATTR{read_ahead_kb}="2"'


def writers(text: str) -> tuple[RuleWriter, ...]:
    return find_writers((("r", text),))


def certainty(condition: str, first: str = "") -> bool | None:
    """Return whether a rule with a condition writes, after a first rule; None: it may."""
    found = writers(f"{first}\n{condition}, {SECOND}")
    return found[0].certain or None if found else False


def test_nfs_utils_writes_its_programs_value_where_it_finds_an_nfs_mount() -> None:
    assert find_writers((PACKAGED,)) == (NFSRAHEAD,)


@pytest.mark.parametrize("end", ["\\ \n", "\n"])
def test_a_broken_vendors_rule_writes_for_every_device(end: str) -> None:
    assert writers(VENDOR.replace(" \\\n", end)) == (RuleWriter("r", 4, "15360", None, certain=True),)


@pytest.mark.parametrize(
    "text",
    [
        "# " + NFS_UTILS,
        'SUBSYSTEM=="block", ACTION=="add", ATTR{bdi/read_ahead_kb}="1024"\n',
        'SUBSYSTEM=="bdi", ATTR{read_ahead_kb}=="128", RUN+="/bin/true"\n',
        'SUBSYSTEM=="bdi", ACTION=="change", ATTR{read_ahead_kb}="1"',
        'ATTR{bdi/read_ahead_kb}="1", ATTR{[bdi/0:44]read_ahead_kb}="1", ATTR{[bdi/%k]read_ahead_kb}="1"',
        'RUN+="/bin/cat /sys%p/read_ahead_kb", PROGRAM="/bin/sh -c \'cat /sys%p/read_ahead_kb > /kb\'"',
        'ENV{read_ahead_kb}="1", TAG+="read_ahead_kb", IMPORT{program}="read_ahead_kb"',
    ],
)
def test_rules_about_something_else_are_no_writers(text: str) -> None:
    assert writers(text) == ()


@pytest.mark.parametrize("prefix", ["./", "//", "[bdi/0:43]", "[bdi/0:43]/"])
def test_the_attribute_has_more_than_one_name(prefix: str) -> None:
    text = f'ATTR{{{prefix}read_ahead_kb}}="1"'
    assert writers(text) == (RuleWriter("r", 1, "1", None, certain=True),)


HOLDS = [
    'SUBSYSTEM=="bdi"',
    'SUBSYSTEM!="class"',
    'KERNEL=="0:*"',
    'KERNEL=="[[:digit:]]:[3-5][!a-c]"',
    'KERNEL=="[^a-z]:??|x"',
    'KERNEL=="x|0\\:4[\\3]*"',
    'KERNEL=="[]0]:*"',
    'KERNEL=="0[[:punct:]]43"',
    'KERNEL=="[!z-a]:43"',
    'KERNEL!="0:[[:none:]]3"',
    'KERNEL!="0:43["',
    'KERNEL!="0\\:43"',
    'KERNEL=="0:[4-]3"',
    'ACTION==i"ADD"',
    'DEVPATH=="/devices/virtual/bdi/*"',
    'KERNELS=="0:43", SUBSYSTEMS=="bdi", DRIVERS=="", TAGS!="x", ATTRS{subsystem}=="bdi"',
    'SYMLINK!="x", TAG!="x", NAME=="", DRIVER==""',
    'DRIVER=="|foo"',
    'DRIVER=="foo*|"',
    'DRIVER=="*"',
    'DRIVER!="?*"',
    'TAG=="?*"',
    'ENV{NOPE}==""',
    'ENV{SUBSYSTEM}=="b?i", ENV{DEVPATH}=="*/0:43", ENV{ACTION}=="add"',
    'ATTR{subsystem}=="bdi"',
    'TEST=="read_ahead_kb"',
    'RESULT==""',
    'IMPORT{parent}!="X*"',
]
FAILS = [
    'SUBSYSTEM=="block"',
    'SUBSYSTEM=="class"',
    'KERNEL=="[!0]:*"',
    'DRIVER=="?*"',
    'SYMLINK=="x"',
    'SYMLINK==""',
    'ENV{NOPE}=="1"',
    'ATTR{size}!="1"',
    'TEST!="read_ahead_kb"',
    'RESULT=="x"',
    'IMPORT{parent}=="X*"',
]
UNKNOWN = [
    'PROGRAM=="/bin/true"',
    'PROGRAM="/bin/echo 1", RESULT=="1"',
    'IMPORT{program}="/bin/true"',
    'IMPORT{db}="X"',
    'TEST=="/etc/nfs.conf"',
    'TEST{0200}=="read_ahead_kb"',
    'CONST{virt}=="kvm"',
    'ENV{SEQNUM}=="1"',
    'ATTR{read_ahead_kb}=="128"',
    'ATTR{[dmi/id]sys_vendor}=="Microsoft*"',
    'ATTR{$kernel}=="1"',
    'ATTR{../0:44/max_ratio}=="1"',
]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [(each, known) for known, group in ((True, HOLDS), (False, FAILS), (None, UNKNOWN)) for each in group],
)
def test_a_condition_holds_fails_or_depends_on_the_host(condition: str, *, expected: bool | None) -> None:
    assert certainty(condition) is expected


@pytest.mark.parametrize(
    ("first", "condition", "expected"),
    [
        ('ENV{A}="x"', 'ENV{A}=="x"', True),
        ('ENV{A}=""', 'ENV{A}=="x"', False),
        ('ENV{A}+="x"', 'ENV{A}=="x"', None),
        ('ENV{A}="$kernel"', 'ENV{A}=="x"', None),
        ('PROGRAM="/bin/true", ENV{A}="x"', 'ENV{A}=="x"', None),
        ('ACTION=="remove", ENV{A}="x"', 'ENV{A}=="x"', False),
        ('IMPORT{db}="A"', 'ENV{A}=="x"', None),
        ('IMPORT{cmdline}="A"', 'ENV{B}=="x"', False),
        ('IMPORT{program}="/bin/echo A=y"', 'ENV{A}=="x"', None),
        ('IMPORT{program}="/bin/echo A=y"', 'ENV{SUBSYSTEM}=="bdi", ENV{SEQNUM}!="0"', None),
        ('ENV{A}="x"\nIMPORT{program}="/bin/echo A=y"', 'ENV{A}=="x"', None),
        ('TAG+="a"', 'TAG=="a"', None),
        ('TAG+="a"', 'SYMLINK!="a"', True),
        ('ACTION=="remove", PROGRAM="/bin/true"', 'RESULT==""', True),
        ('PROGRAM="/bin/true"', 'RESULT=="x"', None),
        ('OPTIONS="watch", OWNER="root"', 'ACTION=="add"', True),
    ],
)
def test_results_of_a_rule_count_for_the_next(first: str, condition: str, *, expected: bool | None) -> None:
    assert certainty(condition, first) is expected


def lines(text: str) -> list[tuple[int, bool]]:
    return [(each.line, each.certain) for each in writers(text)]


def test_a_jump_passes_over_the_rules_up_to_its_label() -> None:
    text = f'ACTION=="add", GOTO="end"\n{SECOND}\nLABEL="mid", {SECOND}\nLABEL="end", {SECOND}'
    assert lines(text) == [(4, True)]
    assert lines(f'ACTION=="remove", GOTO="end"\n{SECOND}\nLABEL="end"') == [(2, True)]


def test_a_jump_that_may_be_taken_makes_the_rules_up_to_its_label_uncertain() -> None:
    text = f'PROGRAM="/bin/true", GOTO="end"\n{SECOND}\nACTION=="add", GOTO="far"\n{SECOND}\n'
    text += f'LABEL="end", {SECOND}\nLABEL="far", {SECOND}'
    assert lines(text) == [(2, False), (5, False), (6, True)]
    assert [each.passed for each in writers(text)] == [True, True, False]
    assert [each.passed for each in writers(f'TEST=="/x", GOTO="end"\nRUN+="{SHELL}"\nLABEL="end"')] == [True]


def test_the_values_program_is_the_last_one_of_whichever_rule() -> None:
    text = 'ATTR{read_ahead_kb}="%c", PROGRAM="/bin/one", PROGRAM="/bin/two"\n'
    text += 'ATTR{read_ahead_kb}="$result{1}"\nATTR{read_ahead_kb}="$attr{max_ratio}"'
    found = [(each.program, each.certain) for each in writers(text)]
    assert found == [("/bin/two", False), ("/bin/two", True), (None, True)]


def test_a_program_that_cannot_start_has_no_output_nor_has_the_one_before() -> None:
    text = 'PROGRAM=="/usr/bin/get-kb", ENV{x}="1"\nPROGRAM!="awk -f /x", ATTR{read_ahead_kb}="%c"'
    assert [(each.line, each.program) for each in writers(text)] == [(2, None)]


SHELL = "/bin/sh -c 'echo 512 > /sys$devpath/read_ahead_kb'"
TEE = "/bin/sh -c '/opt/value | tee /sys%p/read_ahead_kb'"


def test_commands_run_after_all_rules() -> None:
    assert writers(f'RUN+="{SHELL}", RUN+="{TEE}"\n{SECOND}') == (
        RuleWriter("r", 2, "2", None, certain=True),
        RuleWriter("r", 1, "512", SHELL, certain=False),
        RuleWriter("r", 1, "", TEE, certain=False),
    )


@pytest.mark.parametrize(
    ("after", "left"),
    [
        ('RUN="/bin/true"', []),
        ('PROGRAM="/bin/true", RUN="/bin/true"', [1]),
        ('RUN+="/bin/true"', [1]),
        (f'RUN:="/bin/true"\nRUN+="{SHELL}"', []),
        (f'RUN:="{TEE}"\nRUN="/bin/true"', [2]),
    ],
)
def test_a_later_run_may_drop_the_earlier_ones(after: str, left: list[int]) -> None:
    assert [each.line for each in writers(f'RUN+="{SHELL}"\n{after}')] == left


def test_a_program_that_writes_for_itself_is_a_writer() -> None:
    assert writers(f'PROGRAM="{SHELL}"') == (RuleWriter("r", 1, "512", SHELL, certain=False),)


@pytest.mark.parametrize(
    ("script", "kb", "reaches"),
    [
        ("echo 512 > /sys%p/read_ahead_kb", 512, True),
        ("echo 1 > /run/seen; echo 512 > /sys%p/read_ahead_kb", 512, True),
        ("/opt/kb %k | tee /sys%p/read_ahead_kb", None, True),
        ("grep -qw %k /proc/fs/nfsfs/volumes && echo 512 > /sys%p/read_ahead_kb", 512, True),
        ("/opt/is-nfs %k && echo 512 > /sys%p/read_ahead_kb", 512, False),
        ("for f in /sys/class/bdi/0:*/read_ahead_kb; do echo 512 > $$f; done", 512, False),
    ],
)
def test_a_command_reaches_all_where_it_asks_for_nfs(script: str, kb: int | None, *, reaches: bool) -> None:
    file = UdevFile("r", f'SUBSYSTEM=="bdi", RUN+="/bin/sh -c \'{script}\'"')
    (writer,) = file_writers([file])
    assert (writer.kb, reaches_all([file], writer)) == (kb, reaches)


AZURE = RuleWriter("/etc/udev/rules.d/90-azure.rules", 1, "15381", None, certain=False)
REFUSED = tuple(RuleWriter("r", 1, value, None, certain=True) for value in ("15M", "", "9" * 5000, "²"))


@pytest.mark.parametrize(
    ("rules", "kb", "culprit"),
    [
        *[((AZURE, NFSRAHEAD), kb, NFSRAHEAD) for kb in (128, 15380, 15381)],
        ((AZURE,), 15380, AZURE),
        ((AZURE,), 15381, None),
        ((AZURE,), 128, None),
        (REFUSED, 15, None),
    ],
)
def test_the_last_writer_counts(rules: tuple[RuleWriter, ...], kb: int, culprit: RuleWriter | None) -> None:
    assert find_culprit(rules, kb, 4) is culprit


def test_nfsraheads_value_is_changed_in_its_own_configuration() -> None:
    assert describe(NFSRAHEAD) == f"{PACKAGED[0]}, set by [nfsrahead] of /etc/nfs.conf"
    assert describe(AZURE) == AZURE.file


@given(damaged(VENDOR) | tokens_damaged(NFS_UTILS) | any_text | damaged("\n".join(HOLDS + FAILS + UNKNOWN)))
def test_any_text_is_judged(text: str) -> None:
    for writer in find_writers((("r", text + f"\n{SECOND}\n"), ("s", f'KERNEL=="{text}", {SECOND}'))):
        assert writer.file in {"r", "s"}
        find_culprit((writer,), 2, 4)
        describe(writer)


def test_a_pattern_of_many_stars_is_matched_at_once() -> None:
    device = "/devices/virtual/bdi/0:46"
    start = time.process_time()
    for pattern in ("*" * 40 + "x", "*?" * 20 + "x", "*i*" * 30, "a*" * 30, "*[0-9]" * 20 + "x"):
        assert matches(UdevToken("DEVPATH", None, "==", pattern), device) is fnmatchcase(device, pattern)
    assert time.process_time() - start < 1


@given(st.text(st.sampled_from("*?ab]!"), max_size=8), st.text(st.sampled_from("ab]!"), max_size=8))
def test_stars_match_as_everywhere(pattern: str, text: str) -> None:
    assert matches(UdevToken("KERNEL", None, "==", pattern), text) is fnmatchcase(text, pattern)


def test_the_last_words_among_many_rules_are_found_at_once() -> None:
    """An image may have some ten thousand rules in a file."""
    file = UdevFile("r", f'SUBSYSTEM=="bdi", PROGRAM="/x", {SECOND}\n' * 15_000)
    start = time.process_time()
    assert len(final_writers([file], file_writers([file]))) == 15_000
    assert time.process_time() - start < 5
