from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Request
from nfstuned.parse.etc.fstab import parse_utab
from tests.parse.damage import any_text, damaged, tokens_damaged

# fprintf_utab_fs of libmount's tab_update.c; newer versions start with ID= and know UNIQID=
NFS = "ID=61 SRC=sa1:/a TARGET=/mnt/2 ROOT=/ ATTRS=vers=4.1,nconnect=8,addr=10.10.10.10 UNIQID=9"
ESCAPED = r"SRC=s:/a\040b TARGET=/mnt/with\040space ROOT=/ ATTRS=addr=fd00::10 OPTS=_netdev"
REAL = f"{NFS}\n{ESCAPED}\n"


def test_nfs_requests_are_found_with_the_options_of_mount_nfs() -> None:
    assert parse_utab(REAL) == (
        Request(
            "sa1:/a",
            "/mnt/2",
            "vers=4.1,nconnect=8,addr=10.10.10.10",
            "/run/mount/utab",
            1,
        ),
        Request("s:/a b", "/mnt/with space", "addr=fd00::10", "/run/mount/utab", 2),
    )


def test_other_entries_and_noise_do_not_count() -> None:
    assert (
        parse_utab("\nSRC=/dev/sda1 TARGET=/ ROOT=/ OPTS=_netdev,addr=x\nnoise\nSRC=x TARGET=/x ATTRS=a\n")
        == ()
    )


def test_an_entry_without_a_mount_point_is_located_and_the_others_survive() -> None:
    before, error, after = parse_utab(f"{NFS}\nSRC=s:/ ATTRS=vers=3\n{NFS}\n", "utab")
    assert isinstance(before, Request)
    assert isinstance(after, Request)
    assert (before.options, before.line, after.options, after.line) == (after.options, 1, before.options, 3)
    assert isinstance(error, ParseError)
    assert str(error) == "utab:2: neither SRC nor TARGET may be missing: 'SRC=s:/ ATTRS=vers=3'"


@given(st.one_of(damaged(REAL), tokens_damaged(REAL), any_text))
def test_nothing_but_parse_errors_comes_out(text: str) -> None:
    assert all(isinstance(entry, (Request, ParseError)) for entry in parse_utab(text))
