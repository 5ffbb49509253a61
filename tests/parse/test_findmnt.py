"""What findmnt --verify printed: util-linux 2.38 on Debian 12, in English."""

from __future__ import annotations

from hypothesis import given

from nfstuned.parse.etc.fstab import parse_verify
from tests.parse.damage import any_text

OUTPUT = """\
/
   [E] unreachable on boot required source: LABEL=x
/nope
   [E] unreachable on boot required target: No such file or directory
/proc
   [W] unreachable source: proc: No such file or directory
   [W] bogus seems unsupported by the current kernel
   [W] cannot detect on-disk filesystem type (No such file or directory)
"""
ERRORS = """\
findmnt: /tmp/t.fstab: parse error at line 3 -- ignored
findmnt: /tmp/t.fstab: parse error at line 6 -- ignored

2 parse errors, 2 errors, 3 warnings
"""


def test_errors_are_counted_and_warnings_are_not() -> None:
    assert parse_verify(OUTPUT, ERRORS) == {
        "/: unreachable on boot required source: LABEL=x": 1,
        "/nope: unreachable on boot required target: No such file or directory": 1,
        "parse error at line 3": 1,
        "parse error at line 6": 1,
    }


def test_the_same_error_twice_counts_twice() -> None:
    found = parse_verify(OUTPUT + OUTPUT, ERRORS)
    assert found is not None
    assert found["/: unreachable on boot required source: LABEL=x"] == 2


def test_success_is_no_error() -> None:
    assert parse_verify("Success, no errors or warnings detected\n", "") == {}


def test_what_has_no_summary_is_no_verdict() -> None:
    assert parse_verify("", "findmnt: unrecognized option '--verify'\n") is None
    assert parse_verify("", "") is None


@given(any_text, any_text)
def test_no_output_breaks_it(output: str, errors: str) -> None:
    found = parse_verify(output, errors)
    assert found is None or all(count > 0 for count in found.values())
