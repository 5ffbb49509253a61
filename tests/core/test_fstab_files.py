"""Real-world fstab files: what is changed in each, and that nothing else is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nfstuned.core.nconnect.fstab import owner
from nfstuned.model.facts import NFS_TYPES
from nfstuned.model.kernel import parse_options
from nfstuned.model.mounts import Request
from nfstuned.model.policy import Policy
from nfstuned.parse.etc.requests import parse_fstab
from nfstuned.view.change import diff_lines
from tests.core.fstabs import EVERYWHERE, FILES, FOLDER, POLICY, decoded, edited

each = pytest.mark.parametrize("name", FILES)
both = pytest.mark.parametrize("policy", [POLICY, EVERYWHERE], ids=["azure", "everywhere"])
_NUMBER = re.compile(rb"(?<=[, \t])nconnect=[0-9]+,?")
_OWNED = {"nixos-generated": "nixos", "puppet-parsedfile": "puppet", "ansible-managed": "ansible"}


def test_there_are_at_least_forty_and_each_is_in_the_readme() -> None:
    readme = (FOLDER / "README.md").read_text()
    assert len(FILES) >= 40
    assert set(re.findall(r"^\| `([^`]+)` \|", readme, re.MULTILINE)) == {*FILES}


def test_the_changes_are_the_intended_ones(golden: Callable[[Path, str], None]) -> None:
    golden(FOLDER / "changes.txt", "".join(f"-- {name} --\n{_changes(name)}" for name in FILES))


def _changes(name: str) -> str:
    """Return the difference, and the reasons for lines that stay."""
    text = decoded(name)
    result = edited(text)
    shown = [*diff_lines(text, result.text, "fstab")]
    shown += [f"line {line} stays: {reason}" for line, reason in result.skipped.items()]
    return "".join(line + "\n" for line in shown)


@each
@both
def test_every_byte_but_those_of_the_option_stays(name: str, policy: Policy) -> None:
    before = FILES[name]
    result = edited(decoded(name), policy)
    after = result.text.encode("utf-8", "surrogateescape")
    changed = result.counts
    old, new = before.split(b"\n"), after.split(b"\n")
    assert len(old) == len(new)
    for number, (was, now) in enumerate(zip(old, new, strict=True), 1):
        if number not in changed:
            assert was == now
        else:
            assert now.count(b"nconnect=") == 1
            assert b"nconnect=%d" % changed[number] in now
            assert _bare(was) == _bare(now)


def _bare(line: bytes) -> bytes:
    """Return a line without the option, and without the comma or blank that it needs."""
    return re.sub(rb"[, \t](?=[ \t\r]|$)", b"", _NUMBER.sub(b"", line))


@each
@both
def test_a_second_time_there_is_nothing_to_change(name: str, policy: Policy) -> None:
    once = edited(decoded(name), policy).text
    assert edited(once, policy).text == once


@each
def test_with_every_server_in_a_profile_every_entry_that_can_have_it_gets_it(name: str) -> None:
    result = edited(decoded(name), EVERYWHERE)
    for request in parse_fstab(result.text):
        if isinstance(request, Request) and request.fstype in NFS_TYPES:
            asked = parse_options(request.options).number("nconnect")
            assert asked in {8, 16} or result.skipped[request.line]


@each
@both
@pytest.mark.skipif(shutil.which("findmnt") is None, reason="no findmnt")
def test_libmount_reads_the_same_entries_but_for_the_number(
    name: str, policy: Policy, tmp_path: Path
) -> None:
    result = edited(decoded(name), policy)
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(FILES[name])
    new.write_bytes(result.text.encode("utf-8", "surrogateescape"))
    before, after = _libmount(old), _libmount(new)
    assert len(before) == len(after)
    differing = [(was, now) for was, now in zip(before, after, strict=True) if was != now]
    assert len(differing) == len(result.counts)
    for was, now in differing:
        assert _without(was) == _without(now)
        assert [one.partition("=")[0] for one in now["options"].split(",")].count("nconnect") == 1


def _libmount(file: Path) -> list[dict[str, Any]]:
    """Return the entries as mount(8) reads them."""
    columns = "SOURCE,TARGET,FSTYPE,OPTIONS,FREQ,PASSNO"
    options = ["--list", "--json", "--nocanonicalize", "-o", columns]
    command = ["findmnt", "--fstab", "--tab-file", str(file), *options]
    done = subprocess.run(command, capture_output=True, check=False)
    text = done.stdout.decode("utf-8", "surrogateescape")
    return list(json.loads(text)["filesystems"]) if text.strip() else []


def _without(entry: dict[str, Any]) -> dict[str, Any]:
    options = [one for one in (entry["options"] or "").split(",") if not one.startswith("nconnect=") and one]
    return {**entry, "options": options}


@each
def test_the_files_that_programs_call_their_own_are_known(name: str) -> None:
    assert owner(decoded(name)) == _OWNED.get(name, "")
