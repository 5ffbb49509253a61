"""`nfstuned apply` and `nfstuned undo` over trees of real kernel files."""

from __future__ import annotations

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
