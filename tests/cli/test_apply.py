"""`nfstuned apply` and `nfstuned undo` over trees of real kernel files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import GOLDEN, Host

MakeHost = Callable[[str], Host]
CASE = "debian-13-6.12"
TUNED = {"0:45": 1024, "0:46": 15360, "0:47": 15360, "0:48": 15360, "0:49": 15360, "0:50": 15360}


def values(here: Host) -> dict[str, int]:
    folder = here.tree / "sys/class/bdi"
    return {file.name: here.read_ahead(file.name) for file in folder.iterdir()}


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("case", ["debian-13-5.10", "debian-13-6.12", "no-nfs"])
def test_the_output_is_the_golden_one(
    case: str, form: str, host: MakeHost, golden: Callable[[Path, str], None]
) -> None:
    run = host(case).run("apply", "--format", form)
    golden(GOLDEN / case / f"apply.{form.replace('text', 'txt')}", run.out)
    assert (run.status, run.err) == (0, "")


def test_a_dry_run_changes_nothing(host: MakeHost) -> None:
    here = host(CASE)
    before = values(here)
    run = here.run("apply", "--dry-run", "--format", "json")
    assert run.status == 0
    assert {action["outcome"] for action in run.document["actions"]} == {"planned"}
    assert values(here) == before
    assert not (here.tree / "run/nfstuned").exists()


def test_every_superblock_is_set_once_and_nothing_else_is_touched(host: MakeHost) -> None:
    here = host(CASE)
    before = values(here)
    run = here.run("apply", "--format", "json")
    assert run.status == 0
    assert [action["outcome"] for action in run.document["actions"]] == ["done"] * 6
    assert values(here) == before | TUNED


def test_a_second_time_there_is_nothing_to_do(host: MakeHost) -> None:
    here = host(CASE)
    here.run("apply")
    run = here.run("apply", "--format", "json")
    assert run.status == 0
    assert run.document["actions"] == []
    assert here.run("apply").out == "Nothing to do: 9 mounts as the profiles ask.\n"


def test_undo_puts_every_value_back_and_names_the_mounts(host: MakeHost) -> None:
    here = host(CASE)
    before = values(here)
    here.run("apply")
    run = here.run("undo", "--format", "json")
    assert run.status == 0
    assert values(here) == before
    actions = run.document["actions"]
    assert {(action["new"], action["outcome"]) for action in actions} == {(128, "done")}
    assert "/mnt/with space" in {action["target"] for action in actions}


def test_undo_without_anything_done_says_so(host: MakeHost) -> None:
    run = host(CASE).run("undo")
    assert (run.status, run.out) == (0, "Nothing to put back.\n")
    assert host("no-nfs").run("undo", "--format", "json").document["actions"] == []


def test_apply_sets_again_what_was_undone(host: MakeHost) -> None:
    here = host(CASE)
    here.run("apply")
    here.run("undo")
    run = here.run("apply")
    assert run.status == 0
    assert "6 done" in run.out
    assert here.read_ahead("0:46") == 15360
    here.run("undo")
    assert here.read_ahead("0:46") == 128


def test_undo_leaves_what_somebody_else_changed_since(host: MakeHost) -> None:
    here = host(CASE)
    here.run("apply")
    here.set_read_ahead("0:46", 4096)
    run = here.run("undo", "--format", "json")
    assert run.status == 0
    assert here.read_ahead("0:46") == 4096
    (skipped,) = [action for action in run.document["actions"] if action["outcome"] == "skipped"]
    assert "4096" in skipped["reason"]


def test_undo_works_with_a_broken_configuration(host: MakeHost) -> None:
    here = host(CASE)
    here.run("apply")
    here.configure("[")
    assert here.run("undo").status == 0
    assert here.read_ahead("0:46") == 128


@pytest.mark.parametrize("args", [("apply",), ("apply", "--dry-run"), ("apply", "--format", "json")])
def test_an_invalid_configuration_is_no_try(host: MakeHost, args: tuple[str, ...]) -> None:
    here = host(CASE)
    here.configure('[profile.generic]\nread_ahead_kb = "lots"\n')
    run = here.run(*args)
    assert (run.status, run.out) == (2, "")
    (line,) = run.err.splitlines()
    assert "nfstuned.toml" in line
    assert "lots" in line
    assert here.read_ahead("0:45") == 128


def test_the_administrator_s_numbers_count(host: MakeHost) -> None:
    here = host(CASE)
    here.configure(
        '[[policy]]\nmatch = { export = "/srv/*" }\nprofile = "x"\n[profile.x]\nread_ahead_kb = 2048\n'
    )
    here.run("apply")
    assert here.read_ahead("0:45") == 2048


def test_an_unreadable_line_is_named_and_the_rest_is_done(host: MakeHost) -> None:
    here = host(CASE)
    here.edit("proc/1/mountinfo", "59 27 0:45 ", "59 27 0-45 ")
    run = here.run("apply", "--format", "json")
    assert run.status == 0
    assert "/proc/1/mountinfo:" in run.err
    assert here.read_ahead("0:46") == 15360
    assert run.document["actions"]


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize("verb", ["apply", "undo"])
def test_without_root_each_action_fails_and_says_what_to_do(host: MakeHost, verb: str) -> None:
    here = host(CASE)
    if verb == "undo":
        here.run("apply")
    for file in [*here.tree.glob("sys/class/bdi/*/read_ahead_kb"), here.tree / "run"]:
        file.chmod(file.stat().st_mode & ~0o222)
    before = values(here)
    run = here.run(verb, "--format", "json")
    assert run.status == 1
    actions = run.document["actions"]
    assert [action["outcome"] for action in actions] == ["failed"] * 6
    assert all(action["reason"].endswith("Permission denied; run it as root") for action in actions)
    assert values(here) == before


@pytest.mark.usefixtures("as_user")
def test_a_user_may_look_at_what_would_be_done(host: MakeHost) -> None:
    run = host(CASE).run("apply", "--dry-run", "--format", "json")
    assert (run.status, run.err) == (0, "")
