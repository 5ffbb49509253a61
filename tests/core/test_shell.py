"""Commands that are shown: a shell reads back what was meant, however the report was broken into lines."""

from __future__ import annotations

import subprocess

import pytest

from nfstuned.model.change import ShellCommand, quote
from nfstuned.model.facts import Diagnosis, Facts, Finding, Report, Severity
from nfstuned.model.mounts import Snapshot
from nfstuned.model.policy import Policy
from nfstuned.view.check import report_lines
from nfstuned.view.words import printable

NAMES = [
    "/mnt/a",
    "/mnt/my data",
    "/mnt/it's a 'test' of 'many  blanks'",
    '/mnt/$HOME `id` !x \\ "y" ;&|',
    "-rf",
    "/mnt/a\nb\tc",
    "/mnt/a 'b'\n\\1",
    "/mnt/B\udcfcro 7",
    "/mnt/a\u200bb\u00a0c",
    "",
]


def words(command: str) -> list[str]:
    done = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_reads_back_what_a_terminal_shows(name: str) -> None:
    assert words(printable(quote(name))) == [name]
    assert words(printable(str(ShellCommand(("umount", "--", name))))) == ["umount", "--", name]


@pytest.mark.parametrize("width", [None, *range(40, 100, 3)])
@pytest.mark.parametrize("name", NAMES)
def test_no_line_of_a_report_ends_within_a_quoted_word(name: str, width: int | None) -> None:
    remedy = f"take it out of the mounts' own line, then sudo umount {quote(name)} and mount it again"
    finding = Finding("NFS307", "soft-mount", Severity.WARNING, "/", "soft", "", "", remedy, "")
    facts = Facts(frozenset(), Snapshot(), Policy(profiles=()), ())
    lines = [line.text for line in report_lines(Report("/", facts, (), Diagnosis((finding,), ())), width)]
    assert any(printable(quote(name)) in line for line in lines)
