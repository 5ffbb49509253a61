"""`nfstuned apply` and `nfstuned undo` under a user's rights; sessions show the rest."""

from __future__ import annotations

import pytest

from tests.cli.conftest import CASE, Host, MakeHost


@pytest.fixture
def here(host: MakeHost) -> Host:
    return host(CASE)


def values(here: Host) -> dict[str, int]:
    folder = here.tree / "sys/class/bdi"
    return {file.name: here.read_ahead(file.name) for file in folder.iterdir()}


@pytest.mark.usefixtures("as_user")
def test_a_dry_run_changes_nothing_and_a_user_may_try_it(here: Host) -> None:
    before = values(here)
    run = here.run("apply", "--dry-run", "--format", "json")
    assert (run.status, run.err) == (0, "")
    assert {action["outcome"] for action in run.actions} == {"planned"}
    assert values(here) == before
    assert not (here.tree / "run/nfstuned").exists()


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize("verb", ["apply", "undo"])
def test_without_root_each_action_fails_and_says_what_to_do(here: Host, verb: str) -> None:
    if verb == "undo":
        here.run("apply")
    for file in [*here.tree.glob("sys/class/bdi/*/read_ahead_kb"), here.tree / "run"]:
        file.chmod(file.stat().st_mode & ~0o222)
    before = values(here)
    run = here.run(verb, "--format", "json")
    assert (run.status, [action["outcome"] for action in run.actions]) == (1, ["failed"] * 5)
    assert all(action["reason"].endswith("Permission denied; run it as root") for action in run.actions)
    assert values(here) == before
