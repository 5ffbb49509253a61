from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.model.kernel import Distribution
from nfstuned.parse.proc.machine import parse_os_release, parse_release
from tests.parse.conftest import Captured
from tests.parse.damage import any_text


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("5.10.0-32-cloud-amd64\n", (5, 10, 0)),
        ("4.18.0-394.el8.x86_64", (4, 18, 0)),
        ("6.12.107+deb13-cloud-amd64", (6, 12, 107)),
        ("6.17.8-rc1", (6, 17, 8)),
        ("6.8-custom", (6, 8, 0)),
        ("7", (7, 0, 0)),
        ("5.15.167.4-microsoft-standard-WSL2", (5, 15, 167)),
    ],
)
def test_a_release_starts_with_its_version(text: str, version: tuple[int, int, int]) -> None:
    release = parse_release(text)
    assert release.version == version
    assert release.text == text.strip()


def test_the_release_is_the_folders_name(captured: Captured) -> None:
    release = parse_release(captured("version").split()[2])
    assert release.text.startswith(captured.folder.name)
    assert release.version >= (5, 4, 0)


@pytest.mark.parametrize("text", ["", "linux", "-5.4", "\u0665.\u0664", "9" * 5000])
def test_a_text_without_a_version_is_an_error(text: str) -> None:
    with pytest.raises(ParseError, match=r"^/proc/sys/kernel/osrelease:1: not a kernel release: '"):
        parse_release(text)


def test_a_real_distribution_is_read(captured: Captured) -> None:
    assert parse_os_release(captured("os-release")) == Distribution(
        "debian", "13", "Debian GNU/Linux 13 (trixie)"
    )


def test_quotes_and_escapes_are_those_of_the_shell() -> None:
    text = r"""
# a comment
not an assignment
ID="rocky"
ID_LIKE='rhel  centos fedora'
PRETTY_NAME="a \"b\" \$c \\ \`d\` \e"
VERSION_ID=9.4
BROKEN="x"""
    assert parse_os_release(text) == Distribution(
        "rocky", "9.4", 'a "b" $c \\ `d` \\e', ("rhel", "centos", "fedora")
    )


def test_a_single_quoted_value_has_no_escapes_and_an_empty_one_is_empty() -> None:
    assert parse_os_release("PRETTY_NAME='a\\\\b'\nVERSION_ID=\nID=''\n") == Distribution("", "", "a\\\\b")


def test_an_empty_file_has_the_defaults() -> None:
    assert parse_os_release("") == Distribution("linux", "", "Linux")


@given(st.one_of(any_text, any_text.map(lambda text: "ID=" + text), any_text.map(lambda text: "6." + text)))
def test_nothing_but_parse_errors_comes_out(text: str) -> None:
    parse_os_release(text)
    with suppress(ParseError):
        parse_release(text)
