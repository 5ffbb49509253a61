"""The format of tests/hosts/*.host holds all bytes and paths, and an error names file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.check import hosts
from tests.host_file import File, HostFileError, parse_host

WHY = 'why = "a host that tests the format"\n'


def parse(text: str) -> dict[str, File]:
    return dict(parse_host(WHY + text, "a.host").files)


@pytest.mark.parametrize(
    ("body", "content"),
    [
        ("a\\r\n", b"a\r\n"),
        ("\\x7fELF\\x00\\xff\\\n", b"\x7fELF\x00\xff"),
        ("a\\\\x41\n", b"a\\x41\n"),
        ("\\x2d- etc/fstab --\n", b"-- etc/fstab --\n"),
        ("one\\\nline\n", b"oneline\n"),
        ("\u201cquoted\u201d\n", "\u201cquoted\u201d\n".encode()),
    ],
)
def test_an_escaped_section_holds_any_bytes(body: str, content: bytes) -> None:
    assert parse(f"-- a (escaped, 0600) --\n{body}") == {"a": File(content, 0o600)}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('base = "b"\n', "1: no why of at least 5 words"),
        ('base = "b"\nwhy = "too short"\n', "2: no why of at least 5 words"),
        (f'{WHY}\nfinding = ["NFS101 /a"]\n', "3: unknown key finding"),
        (f"{WHY}now = yesterday\n", "2: Invalid value (at line 2, column 7)"),
        (f"{WHY}-- a --\n1\n-- a --\n2\n", "4: a second a"),
        (f'{WHY}empty = ["a"]\n-- a --\n', "3: a second a"),
        (f'{WHY}gone = [\n"a",\n"a",\n]\n', "3: a second a"),
        (f"{WHY}-- /etc/fstab --\n", "2: '/etc/fstab' is not a path in the tree"),
        (f"{WHY}-- a/../../b --\n", "2: 'a/../../b' is not a path in the tree"),
        (f'{WHY}[links]\n"../a" = "b"\n', "3: '../a' is not a path in the tree"),
        (f"{WHY}-- a b --\n", "2: neither `-- path --` nor escaped as \\x2d: -- a b --"),
        (f"{WHY}-- a (rwx) --\n", "2: neither a mode such as 0755 nor `escaped`: rwx"),
        (f"{WHY}-- a --\nb\r\n", "2: '\\r' in a section that is not marked `escaped`"),
        (f"{WHY}-- a (escaped) --\n\\q\n", "2: unknown escape \\q"),
    ],
)
def test_an_error_names_file_line_and_reason(text: str, error: str) -> None:
    with pytest.raises(HostFileError) as caught:
        parse_host(text, "a.host")
    assert str(caught.value) == f"a.host:{error}"


def test_only_a_file_of_the_base_can_be_gone(tmp_path: Path) -> None:
    case = hosts.Case("a", parse_host(f'{WHY}gone = ["etc/fstab"]\n', "a.host"))
    with pytest.raises(HostFileError, match=r"a\.host: its base has no etc/fstab that could be gone"):
        case.build(tmp_path)
