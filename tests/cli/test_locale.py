"""The commands where the locale is not UTF-8, and mounts have names that it cannot show."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nfstuned.core.samples.sample import to_line
from tests.cli.conftest import PROGRAM, REPOSITORY, Host, MakeHost
from tests.core.pages import shown
from tests.parse.test_samples import SAMPLE
from tests.tree import put

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
STREAMS = ASCII | {"PYTHONIOENCODING": "iso8859-1"}
GERMAN = "de_DE.ISO-8859-1"
UTF_8 = """\
import sys
from nfstuned.__main__ import ensure_utf_8_names
ensure_utf_8_names()
assert sys.getfilesystemencoding() == "utf-8"
"""
CHILD = """
import select
from nfstuned.model.policy import ConfigError
from nfstuned.host.config import start_load
from nfstuned.host.root import Root
from nfstuned.model.policy import ConfigError
child = start_load(Root(sys.argv[1]), 60)
select.select([child], [], [])
try:
    child.finish()
except ConfigError as error:
    print(ascii(error.problems[0].rpartition("/")[2]))
"""


@pytest.fixture
def german(tmp_path: Path) -> dict[str, str]:
    """A locale whose encoding has letters that are other bytes in UTF-8."""
    command = ["localedef", "-c", "-i", "de_DE", "-f", "ISO-8859-1", str(tmp_path / GERMAN)]
    if shutil.which("localedef") is None or subprocess.run(command, check=False).returncode != 0:
        pytest.skip("localedef cannot make a locale here (Debian's package locales)")
    return {"LOCPATH": str(tmp_path), "LC_ALL": GERMAN, "PYTHONUTF8": "0"}


def run(
    host: Host, locale: dict[str, str], *args: str, program: str = PROGRAM
) -> subprocess.CompletedProcess[bytes]:
    command, environ = [sys.executable, "-c", UTF_8 + program, str(host.tree), *args], os.environ | locale
    return subprocess.run(command, env=environ, cwd=REPOSITORY, capture_output=True, check=False, timeout=60)


@pytest.fixture
def named(host: MakeHost) -> Host:
    """A host whose mount has a letter that is not ASCII in its name, and a byte that is no letter at all."""
    made = host("clean")
    for file in ("mountinfo", "mountstats"):
        made.edit(f"proc/1/{file}", " /mnt/share ", " /mnt/\u00e9\udcff ")
    return made


@pytest.mark.parametrize(("locale", "letter"), [(ASCII, b"\\xe9"), (STREAMS, b"\xe9")])
def test_names_suit_the_streams(named: Host, locale: dict[str, str], letter: bytes, tmp_path: Path) -> None:
    file = tmp_path / "s\u00e9.jsonl"
    file.write_bytes(to_line(replace(SAMPLE, mount_points=("/mnt/\u00e9\udcff",))))
    samples = ("--file", str(file), "--mount", "/mnt/\u00e9\udcff")
    for args in (("status",), ("check", "--offline"), ("samples", *samples, "--format", "csv")):
        done = run(named, locale, *args)
        assert (done.returncode, done.stderr) == (0, b"") or args[0] == "check", done.stderr
        assert b"Traceback" not in done.stderr
        assert b"Error" not in done.stderr
        assert b"/mnt/" + letter + b"\\xff" in done.stdout or args[0] == "check", done.stdout
    page = tmp_path / "p\u00e9.html"
    done = run(named, locale, "report", *samples, "--samples-only", "--output", str(page))
    assert (done.returncode, done.stderr) == (
        0,
        bytes(str(tmp_path), "ascii") + b"/p" + letter + b".html: 1 mount\n",
    )
    assert "/mnt/\u00e9\\377" in shown(page.read_text("utf-8"))


def test_in_a_locale_of_utf_8_the_letters_are_shown(named: Host) -> None:
    done = run(named, {"LC_ALL": "C.UTF-8"}, "status")
    assert done.returncode == 0
    assert "/mnt/\u00e9\\xff".encode() in done.stdout


def test_the_letters_of_another_encoding_are_shown_in_it(named: Host, german: dict[str, str]) -> None:
    done = run(named, german, "status")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"/mnt/\xe9\\xff" in done.stdout


def test_a_file_of_the_configuration_is_named_as_it_is_called(named: Host, german: dict[str, str]) -> None:
    put(named.tree / "etc/nfstuned/conf.d/\u00e9.toml", "x =\n")
    done = run(named, german, program=CHILD)
    assert done.stdout.decode().startswith("'\\xe9.toml:1: "), done
