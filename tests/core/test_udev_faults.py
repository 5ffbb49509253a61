"""Broken rules of udev, compared with udevadm test of systemd 252, and the rules that are masked."""

from __future__ import annotations

import time

import pytest
from hypothesis import given

from nfstuned.core.rules.nfs1_udev import broken, tolerated
from nfstuned.core.udev.faults import find_broken
from nfstuned.core.udev.writers import choose_masks, is_default, set_by_administrator
from nfstuned.model.facts import Facts
from nfstuned.model.mounts import NFSRAHEAD, Setting, Snapshot
from nfstuned.model.policy import Policy
from nfstuned.model.udev import UdevFile
from tests.parse.damage import any_text, damaged
from tests.parse.test_udevrules import NFS_UTILS, VENDOR

GOOD = VENDOR.replace("$4", "$$4")
ONE_LINE = GOOD.replace(" \\\n", "")


def found(text: str) -> list[tuple[int, str]]:
    """Return line and defect of each broken rule, as NFS105 sees the file."""
    facts = Facts(frozenset(), Snapshot(), Policy(()), udev=(UdevFile("/r", text),))
    return [(int(fault.subject.removeprefix("/r:")), fault.observed) for fault in broken.judge(facts)]


def message(text: str) -> str:
    facts = Facts(frozenset(), Snapshot(), Policy(()), udev=(UdevFile("/r", text),))
    return next(iter(broken.judge(facts))).message


@pytest.mark.parametrize("end", [" \\ \n", "\t\\\t\n"])
def test_a_space_after_each_backslash_is_one_defect_at_the_first_line(end: str) -> None:
    text = GOOD.replace(" \\\n", end)
    assert found("\n" + text) == [(2, "space after the backslash")]
    assert "line 4 writes 15360 KiB to every bdi, disks too" in message(text)


def test_lines_without_their_backslashes_and_backslashes_within_lines_are_one_defect() -> None:
    assert found(GOOD.replace("\\\n", "\\ ")) == [(1, "flattened continuation")]
    for text in (GOOD.replace(" \\\n", "\n"), GOOD.replace(" \\\n, ", ",\n"), GOOD.replace(" \\\n, ", "\n")):
        assert found(text) == [(1, "missing backslash")]
        assert "line 4 writes 15360 KiB to every bdi, disks too" in message(text)
    # A program is a part of its rule, too, though its answer is taken.
    for text in (NFS_UTILS.replace(", ", "\n, "), NFS_UTILS.replace(", ", "\n")):
        assert found(text) == [(1, "missing backslash")]


def test_where_the_condition_stays_with_the_value_only_the_event_is_lost() -> None:
    text = GOOD.replace('"bdi" \\\n', '"bdi" \\ \n')
    assert found(text) == [(1, "space after the backslash")]
    assert "at the events of other devices" in message(text)


@pytest.mark.parametrize("end", ["\f", "\v", "\x1c", "\x85", "\u2028"])
def test_a_character_in_a_comment_that_ends_no_line_for_udev_moves_nothing(end: str) -> None:
    text = f"# NFS{end}mounts\n{ONE_LINE.rstrip()} \\\n"
    assert found(text) == [(2, "backslash at the end of the file")]


def test_a_dollar_sign_of_awk_works_and_is_named_with_the_rules_first_line() -> None:
    text = "# azure\n\n" + VENDOR
    facts = Facts(frozenset(), Snapshot(), Policy(()), udev=(UdevFile("/r", text),))
    assert [(fault.subject, fault.observed) for fault in tolerated.judge(facts)] == [("/r:3", "$4 for $$4")]
    assert found(text) == []


NFS = 'SUBSYSTEM=="bdi", ACTION=="add", KERNEL=="0:*"'
CHANGE = NFS.replace("add", "change")


@pytest.mark.parametrize(
    ("rule", "defect"),
    [
        (f'{NFS}, ATTR{{read_ahead_kb}}=="15360"', "== for ="),
        (ONE_LINE.strip().replace("}=", "}=="), "== for ="),
        (NFS_UTILS.strip().replace("}=", "}==").replace("ACTION", 'KERNEL=="0:*", ACTION'), "== for ="),
        (f'{NFS}, ATTR{{read_ahead_kb}}=="15M"', "== for =, value with a unit"),
        (f'{NFS}, ATTR{{read_ahead_kb}}="15M"', "value with a unit"),
        (f'{NFS}, ATTR{{read_ahead_kb}}="15360 "', "value with a unit"),
        (f'{NFS}, ATTR{{read_ahead_kb}}="<kb>"', "value that is no number"),
        (f'{NFS}, ATTR{{read_ahead_kb}}="-1"', "value that is no number"),
        (f'{NFS}, ATTR{{read_ahead_kb}}=""', "value that is no number"),
        (f'{NFS}, ATTR{{bdi/read_ahead_kb}}="15M"', "value with a unit, attribute that no bdi has"),
        (f'{NFS}, ATTR{{bdi/read_ahead_kb}}="15360"', "attribute that no bdi has"),
        (f'{NFS}, ATTR{{readahead_kb}}="15360"', "attribute that no bdi has"),
        (ONE_LINE.strip().replace("/usr/bin/awk", "<absolute_path>/awk"), "placeholder for a path"),
        (ONE_LINE.strip().replace("/usr/bin/awk", "/path/to/awk"), "placeholder for a path"),
        (VENDOR.strip().replace("/usr/bin/awk", "<absolute path>/awk"), "placeholder for a path"),
        (ONE_LINE.strip().replace("/usr/bin/awk", "$AWK_PATH"), "placeholder for a path"),
        (ONE_LINE.strip().replace("/usr/bin/awk", "$(which awk)"), "placeholder for a path"),
        (ONE_LINE.strip().replace("/usr/bin/awk", "awk"), "program without a path"),
        (f"{NFS}, RUN+=\"sh -c 'echo 1024 > /sys/class/bdi/%k/read_ahead_kb'\"", "program without a path"),
        (f'{NFS}, RUN+="/bin/echo 1024 > /sys/class/bdi/%k/read_ahead_kb"', "redirection without a shell"),
        (f'{CHANGE}, ATTR{{read_ahead_kb}}="15360"', "no rule for add"),
        (f'{NFS}, ATTR{{read_ahead_kb}}="15360"'.replace("add", "remove|bind"), "no rule for add"),
        (f'{NFS}, ATTR{{read_ahead_kb}}="15360"'.replace("add", "ADD"), "unknown action"),
        (f'{CHANGE}, ATTR{{read_ahead_kb}}="15M"', "value with a unit, no rule for add"),
    ],
)
def test_a_rule_that_never_acts_has_one_finding_with_the_reason(rule: str, defect: str) -> None:
    assert found(rule + "\n") == [(1, defect)]
    assert "this rule never acts on a new mount: " in message(rule + "\n")
    # The next line is a rule of its own: no backslash is missing.
    second = rule.count("\n") + 2
    assert found(f"{rule}\n{rule}\n") == [(1, defect), (second, defect)]
    assert found(rule + '\nSUBSYSTEM=="net", ACTION=="add", NAME="lan"\n') == [(1, defect)]


@pytest.mark.parametrize(
    ("program", "repair"),
    [
        ("<absolute_path>/awk", "/usr/bin/awk instead of <absolute_path>/awk"),
        ("<absolute path>/awk", "/usr/bin/awk instead of <absolute path>/awk"),
        ("/path/to/mawk", "/usr/bin/mawk instead of /path/to/mawk"),
        ("$AWK_PATH", "/usr/bin/awk instead of $AWK_PATH"),
        ("$${AWK}", "/usr/bin/awk instead of $${AWK}"),
        ("awk", "/usr/bin/awk instead of awk"),
        ("python3", ""),
        ("/usr/bin/gawk", "the path of an existing program for gawk"),
    ],
)
def test_a_program_that_cannot_start_has_the_smallest_repair(program: str, repair: str) -> None:
    text = ONE_LINE.replace("/usr/bin/awk", program)
    assert [rule.repair for rule in find_broken(text, {}, absent=("/usr/bin/gawk",))] == [repair]


def test_a_guard_that_lets_only_other_events_through_is_the_reason_for_its_rules() -> None:
    guarded = 'ACTION!="change", GOTO="end"\nSUBSYSTEM=="bdi", KERNEL=="0:*", ATTR{read_ahead_kb}="15360"\n'
    assert found(guarded + 'LABEL="end"\n') == [(2, "no rule for add")]
    assert len(found(guarded.replace("15360", "15M") + 'LABEL="end"\n')) == 1


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
        # A broken rule about something else is not our business.
        'SUBSYSTEM=="block" \\ , ATTR{queue/scheduler}="none"\n' + ONE_LINE,
        # One rule for the mount, another for those that want to be asked again.
        ONE_LINE + ONE_LINE.replace("add", "change"),
        ONE_LINE.replace('"add"', '"add|change"'),
        # Disks, whose mistakes are others' business, and which have these folders.
        'SUBSYSTEM=="block", KERNEL=="sd*", ATTR{bdi/read_ahead_kb}="15M"\n',
        'ACTION=="change", KERNEL=="nvme*", ATTR{bdi/read_ahead_kb}="256"\n',
        'ACTION=="add|change", ATTR{bdi/read_ahead_kb}="4096"\n',
        'SUBSYSTEM=="bdi", KERNEL=="8:*", ATTR{read_ahead_kb}="15M"\n',
        'SUBSYSTEM!="block", GOTO="end"\nATTR{queue/read_ahead_kb}="15M"\nLABEL="end"\n',
        'KERNEL!="sd*", GOTO="end"\nACTION=="change", ATTR{bdi/read_ahead_kb}="15M"\nLABEL="end"\n',
        # Questions that something hangs on.
        'SUBSYSTEM=="bdi", ATTR{read_ahead_kb}=="15360", GOTO="end"\n' + ONE_LINE + 'LABEL="end"\n',
        'SUBSYSTEM=="bdi", ATTR{read_ahead_kb}=="128", PROGRAM="/opt/tune %k"\n',
        'SUBSYSTEM=="bdi", ATTR{read_ahead_kb}=="128", RUN+="/opt/tune %k"\n',
        'SUBSYSTEM=="bdi", ATTR{read_ahead_kb}=="128", ENV{SYSTEMD_WANTS}="tune.service", TAG+="systemd"\n',
        # What the kernel takes, and what nobody knows before.
        f'{NFS}, ATTR{{read_ahead_kb}}="+1024"\n',
        f'{NFS}, ATTR{{read_ahead_kb}}=e"1024\\n"\n',
        f'{NFS}, PROGRAM="mykb", ATTR{{read_ahead_kb}}="%c"\n',
        f'{NFS}, ATTR{{read_ahead_kb}}="15M", ATTR{{read_ahead_kb}}="15360"\n',
        f'{NFS}, PROGRAM!="awk", ATTR{{read_ahead_kb}}="15360"\n',
    ],
)
def test_rules_that_work_or_are_not_for_nfs_are_left_alone(text: str) -> None:
    assert found(text) == []


def test_a_rule_that_a_shell_has_eaten_into_is_named() -> None:
    emptied = (ONE_LINE.replace("$kernel", empty) for empty in ("''", '\\"\\"'))
    without = ONE_LINE.replace("$$4", "")
    for text in (without, without.replace("$kernel", ""), *emptied):
        assert found(text) == [(1, "variables eaten by a shell")]


TO = "/sys%p/read_ahead_kb"


def run(script: str) -> str:
    return f'ACTION=="add", SUBSYSTEM=="bdi", RUN+="/bin/sh -c \'{script}\'"\n'


@pytest.mark.parametrize(
    "script",
    [
        f"grep -qw %k /proc/fs/nfsfs/volumes && echo 15360 > {TO}",
        f"grep -qw %k /proc/fs/nfsfs/volumes || exit 0; echo 15360 > {TO}",
        f"case %k in 0:*) echo 15360 > {TO} ;; esac",
        f"findmnt -t nfs4 -no MAJ:MIN | grep -q %k && echo 15360 > {TO}",
        f"if grep -q %k /proc/fs/nfsfs/volumes; then echo 15360 | tee {TO}; fi",
        f"sleep 1; test -e /run/nfs && echo 15360 > {TO}",
        "echo 15360 > /sys/class/bdi/$$(mountpoint -d /srv/nfs)/read_ahead_kb",
        "echo 15360 > /sys/class/bdi/`mountpoint -d /srv/nfs`/read_ahead_kb",
    ],
)
def test_a_command_that_asks_before_it_writes_is_no_unconditional_write(script: str) -> None:
    assert found(run(script)) == []


@pytest.mark.parametrize(
    "script",
    [
        f"echo 15360 > {TO}",
        f"echo 15360 > {TO} || true",
        f"echo 15360 > {TO} && [ -e /run/nfs ] && touch /run/done",
        f"echo -n 15360 | /usr/bin/tee {TO}",
        f"true && sleep 1 && echo 15360 > {TO}",
        f"echo 1 > /run/seen && echo 15360 > {TO}",
    ],
)
def test_other_output_and_effects_of_a_command_are_no_condition_of_its_write(script: str) -> None:
    assert found(run(script)) == [(1, "unconditional bdi write")]
    assert "writes 15360 KiB" in message(run(script))


@pytest.mark.parametrize("asks", ['=="128"', '=="128|256"', '!="15360"'])
def test_a_rule_for_every_bdi_of_the_kernels_own_value_is_named(asks: str) -> None:
    rule = f'SUBSYSTEM=="bdi", ATTR{{read_ahead_kb}}{asks}, ATTR{{./read_ahead_kb}}="15360"\n'
    assert found(rule) == [(1, "unconditional bdi write")]
    assert "to every device's bdi with the value it asks for: nothing in it tests for NFS" in message(rule)
    guard = f'ATTR{{[bdi/%k]read_ahead_kb}}!="1", GOTO="end"\n{rule}LABEL="end"\n'
    assert found(guard) == []


def test_a_devices_value_after_another_rule_is_not_known() -> None:
    rule = 'SUBSYSTEM=="bdi", ATTR{read_ahead_kb}=="128", ATTR{read_ahead_kb}="15360"\n'
    for major, defects in ((8, []), (7, [(2, "unconditional bdi write")])):
        assert found(f'SUBSYSTEM=="bdi", KERNEL=="{major}:*", ATTR{{read_ahead_kb}}="512"\n{rule}') == defects


def test_a_typing_error_is_named_in_the_words_of_udev() -> None:
    text = 'SUBSYSTEM=="bdi", ATR{read_ahead_kb}="1"\n'
    assert found(text) == [(1, "rule ignored by udev")]
    assert "Invalid key 'ATR'" in message(text)


@given(damaged(VENDOR + NFS_UTILS) | any_text)
def test_any_text_is_judged(text: str) -> None:
    for rule in find_broken(text, {1: "15360", 4: "15360"}):
        assert rule.line >= 1


@pytest.mark.parametrize(
    "text",
    [
        'bdi "' + '\\"' * 60_000,
        "bdi " + "\\A{" * 60_000,
        'SUBSYSTEM=="bdi"\n' * 8_000,
        ('SUBSYSTEM=="bdi", KERNEL=="' + "[[:a" * 4_000 + '", ATTR{read_ahead_kb}="1"\n') * 6,
        "".join(
            f'SUBSYSTEM=="bdi", KERNEL=="{n}{"*a" * 8_000}", ATTR{{read_ahead_kb}}="1"\n' for n in range(30)
        ),
        f'SUBSYSTEM=="bdi", RUN+="/bin/sh -c {"/true;" * 20_000} echo 1 > /read_ahead_kb"\n',
        f'SUBSYSTEM=="bdi", RUN+="/bin/sh -c {"echo 1 > echo " * 20_000} /read_ahead_kb > x"\n',
    ],
    ids=["quotes", "braces", "lines", "brackets", "stars", "commands", "writes"],
)
def test_a_file_that_was_made_to_take_long_does_not(text: str) -> None:
    """Of an image; the largest file that is read is thirty times as long."""
    start = time.process_time()
    found(text)
    assert time.process_time() - start < 4


NFS_FILE = "/usr/lib/udev/rules.d/99-nfs.rules"
EC2 = "/usr/lib/udev/rules.d/53-ec2-read-ahead-kb.rules"
STOCK = 'SUBSYSTEM=="bdi", ACTION=="add", PROGRAM="/usr/libexec/nfsrahead %k", ATTR{read_ahead_kb}="%c"\n'
AMAZONS = """\
# increase read_ahead_kb
SUBSYSTEM=="bdi", ACTION=="add", PROGRAM="/bin/awk -v bdi=$kernel 'BEGIN{ret=1} {if ($$4 == bdi) {ret=0}} \
END{exit ret}' /proc/fs/nfsfs/volumes", ATTR{read_ahead_kb}="15360"
"""


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (NFS_FILE, STOCK),
        (NFS_FILE, f"# nfs-utils\n\n{STOCK}"),
        (NFS_FILE.removeprefix("/usr"), STOCK),
        (NFS_FILE, STOCK.replace("/usr/libexec", "/usr/lib/nfs-utils")),
        (NFS_FILE, STOCK.replace('ACTION=="add"', 'ACTION=="add", KERNEL=="0:*"')),
        (EC2, AMAZONS),
    ],
)
def test_the_rules_that_distributions_ship_are_known(path: str, text: str) -> None:
    assert is_default(UdevFile(path, text))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (NFS_FILE.replace("/usr/lib", "/etc"), STOCK),
        (NFS_FILE.replace("99-nfs", "98-nfs"), STOCK),
        (NFS_FILE, ""),
        (NFS_FILE, STOCK * 2),
        (NFS_FILE, STOCK + 'SUBSYSTEM=="block", ATTR{queue/read_ahead_kb}="128"\n'),
        (NFS_FILE, STOCK.replace("%c", "15360")),
        (NFS_FILE, STOCK.replace("nfsrahead", "myrahead")),
        (NFS_FILE, STOCK.replace('="%c"', '="%c", RUN+="/usr/bin/logger mounted"')),
        (NFS_FILE, STOCK.replace('"add"', '"change"')),
        (NFS_FILE, STOCK + "nonsense\n"),
        (EC2, AMAZONS.replace("15360", "4096")),
        (EC2, STOCK),
    ],
)
def test_a_changed_file_is_its_authors(path: str, text: str) -> None:
    file = UdevFile(path, text)
    assert not is_default(file)
    if file.path.endswith(("99-nfs.rules", "kb.rules")):
        assert all(one.left for one in choose_masks([file], ()) if path.endswith(one.name))


def test_values_below_nfsrahead_keep_the_rule_in_force_but_a_vendors_do_not() -> None:
    own = Setting(NFSRAHEAD, None, "nfs4", "4096", "/etc/nfs.conf.d/a.conf", 2)
    vendors = Setting(NFSRAHEAD, None, "nfs4", "4096", "/usr/etc/nfs.conf", 2)
    other = Setting("nfsd", None, "threads", "8", "/etc/nfs.conf", 2)
    files = [UdevFile(NFS_FILE, STOCK), UdevFile(EC2, AMAZONS)]
    assert [(one.name, one.left) for one in choose_masks((), ())] == [("99-nfs.rules", "")]
    assert [bool(one.left) for one in choose_masks(files, (vendors, other))] == [False, False]
    assert [bool(one.left) for one in choose_masks(files, (own, vendors))] == [True, False]
    assert set_by_administrator((vendors, other)) is None
