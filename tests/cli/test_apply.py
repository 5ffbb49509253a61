"""`nfstuned apply` and `nfstuned undo` over trees of real kernel files."""

from __future__ import annotations

from operator import itemgetter

import pytest

from tests.cli.conftest import CASE, GOLDEN, Golden, Host, MakeHost

TUNED = {"0:45": 1024, "0:46": 15360, "0:47": 15360, "0:48": 15360, "0:49": 15360, "0:50": 15360}


@pytest.fixture
def here(host: MakeHost) -> Host:
    return host(CASE)


def values(here: Host) -> dict[str, int]:
    folder = here.tree / "sys/class/bdi"
    return {file.name: here.read_ahead(file.name) for file in folder.iterdir()}


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("case", ["debian-13-5.10", CASE, "no-nfs"])
def test_the_output_is_the_golden_one(case: str, form: str, host: MakeHost, golden: Golden) -> None:
    run = host(case).run("apply", "--format", form)
    golden(GOLDEN / case / f"apply.{form.replace('text', 'txt')}", run.out)
    assert (run.status, run.err) == (0, "")


@pytest.mark.usefixtures("as_user")
def test_a_dry_run_changes_nothing_and_a_user_may_try_it(here: Host) -> None:
    before = values(here)
    run = here.run("apply", "--dry-run", "--format", "json")
    assert (run.status, run.err) == (0, "")
    assert {action["outcome"] for action in run.actions} == {"planned"}
    assert values(here) == before
    assert not (here.tree / "run/nfstuned").exists()


def test_every_superblock_is_set_once_and_nothing_else_is_touched(here: Host) -> None:
    before = values(here)
    run = here.run("apply", "--format", "json")
    assert (run.status, [action["outcome"] for action in run.actions]) == (0, ["done"] * 6)
    assert values(here) == before | TUNED
    again = here.run("apply", "--format", "json")
    assert (again.status, again.actions) == (0, [])
    assert here.run("apply").out == "Nothing to do: 9 mounts as the profiles ask.\n"


def test_undo_puts_every_value_back_and_names_the_mounts_and_apply_sets_them_again(here: Host) -> None:
    before = values(here)
    here.run("apply")
    run = here.run("undo", "--format", "json")
    assert (run.status, values(here)) == (0, before)
    assert {(action["new"], action["outcome"]) for action in run.actions} == {(128, "done")}
    assert "/mnt/with space" in {action["target"] for action in run.actions}
    assert here.run("undo").out == "Nothing to put back.\n"
    assert here.run("undo", "--format", "json").actions == []
    assert "6 done" in here.run("apply").out
    assert values(here) == before | TUNED
    here.run("undo")
    assert values(here) == before


def test_undo_leaves_what_somebody_else_changed_since(here: Host) -> None:
    here.run("apply")
    here.set_read_ahead("0:46", 4096)
    before = values(here)
    plan = here.run("undo", "--dry-run", "--format", "json")
    assert values(here) == before
    run = here.run("undo", "--format", "json")
    assert (run.status, here.read_ahead("0:46")) == (0, 4096)
    done = [action | {"outcome": action["outcome"].replace("planned", "done")} for action in plan.actions]
    assert sorted(done, key=itemgetter("target")) == sorted(run.actions, key=itemgetter("target"))
    (reason,) = [action["reason"] for action in run.actions if action["outcome"] == "skipped"]
    assert "4096" in reason


def test_undo_works_with_a_broken_configuration(here: Host) -> None:
    here.run("apply")
    here.configure("[")
    assert here.run("undo").status == 0
    assert here.read_ahead("0:46") == 128


@pytest.mark.parametrize("args", [(), ("--dry-run",), ("--format", "json"), ("--remount", "--all", "--yes")])
def test_an_invalid_configuration_is_no_try(here: Host, args: tuple[str, ...]) -> None:
    here.configure('[profile.generic]\nread_ahead_kb = "lots"\n')
    run = here.run("apply", *args)
    assert (run.status, run.out) == (2, "")
    assert "etc/nfstuned/nfstuned.toml:2: " in run.err
    assert run.err.count("\n") == run.err.count("lots") == 1
    assert here.read_ahead("0:45") == 128


def test_an_unreadable_line_is_named_and_the_rest_is_done(here: Host) -> None:
    here.edit("proc/1/mountinfo", "59 27 0:45 ", "59 27 0-45 ")
    run = here.run("apply")
    assert run.status == 0
    assert "/proc/1/mountinfo:" in run.err
    assert here.read_ahead("0:46") == 15360


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize("verb", ["apply", "undo"])
def test_without_root_each_action_fails_and_says_what_to_do(here: Host, verb: str) -> None:
    if verb == "undo":
        here.run("apply")
    for file in [*here.tree.glob("sys/class/bdi/*/read_ahead_kb"), here.tree / "run"]:
        file.chmod(file.stat().st_mode & ~0o222)
    before = values(here)
    run = here.run(verb, "--format", "json")
    assert (run.status, [action["outcome"] for action in run.actions]) == (1, ["failed"] * 6)
    assert all(action["reason"].endswith("Permission denied; run it as root") for action in run.actions)
    assert values(here) == before
