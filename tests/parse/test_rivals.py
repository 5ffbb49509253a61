from __future__ import annotations

from hypothesis import given

from nfstuned.model.requests import Setting
from nfstuned.parse.etc.writers import parse_aznfs, parse_ini
from tests.parse.damage import any_text, damaged

TUNED = """\
[main]
include=throughput-performance

# all of them
[sysfs]
/sys/class/bdi/0:*/read_ahead_kb = 4096 # KiB
[disk]
readahead=>4096
; nothing
"""
AZNFS = '# Read ahead size in KB defaults to 16384.\nAZNFS_READ_AHEAD_KB="${AZNFS_READ_AHEAD_KB:-16384}"\n'


def test_assignments_keep_their_section_their_case_and_their_line() -> None:
    assert tuple(parse_ini(TUNED, "/f")) == (
        Setting("main", None, "include", "throughput-performance", "/f", 2),
        Setting("sysfs", None, "/sys/class/bdi/0:*/read_ahead_kb", "4096", "/f", 6),
        Setting("disk", None, "readahead", ">4096", "/f", 8),
    )


def test_what_stands_before_a_section_and_what_assigns_nothing_is_left_out() -> None:
    assert tuple(parse_ini("a=b\n[s]\nword\nx==y=z\n", "/f")) == (Setting("s", None, "x", "=y=z", "/f", 4),)


def test_the_default_of_aznfs_is_found_with_its_line() -> None:
    expected = Setting("aznfs", None, "AZNFS_READ_AHEAD_KB", "16384", "/f", 2)
    assert parse_aznfs(AZNFS, "/f", "aznfs") == expected


def test_of_an_environment_the_last_line_counts_and_comments_do_not() -> None:
    text = (
        "AZNFS_READ_AHEAD_KB=1\nAZNFS_READ_AHEAD_KB='2'\n#AZNFS_READ_AHEAD_KB=3\nMY_AZNFS_READ_AHEAD_KB=4\n"
    )
    found = parse_aznfs(text, "/etc/environment", "aznfs")
    assert found is not None
    assert (found.value, found.line) == ("2", 2)


def test_what_is_no_number_is_no_setting() -> None:
    assert parse_aznfs("AZNFS_READ_AHEAD_KB=big\nAZNFS_READ_AHEAD_KB=\n", "/f", "aznfs") is None


@given(damaged(TUNED) | damaged(AZNFS) | any_text)
def test_any_text_is_read(text: str) -> None:
    assert all(one.line >= 1 for one in parse_ini(text, "/f"))
    found = parse_aznfs(text, "/f", "aznfs")
    assert found is None or int(found.value) >= 0
