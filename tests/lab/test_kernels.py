"""Every scenario holds on every kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lab import outcomes

if TYPE_CHECKING:
    from tests.lab.conftest import Lab
    from tests.lab.selection import Choice


@pytest.mark.lab
@pytest.mark.timeout(6 * 3600)  # it waits for its boot, and that for others; each has limits of its own
def test_scenario(lab: Lab, choice: Choice) -> None:
    run = lab.run(choice)
    mine = outcomes.of(choice.scenario, run.outcomes)
    troubles = [f"{one.test}\n{one.trouble}" for one in mine if one.trouble]
    if troubles:
        pytest.fail(f"on {run.boot.release}, see {run.folder}:\n" + "\n".join(troubles), pytrace=False)
    if not mine:
        pytest.fail(f"it did not run\n{lab.explain(run)}", pytrace=False)
    if run.boot.status not in {0, 1}:  # pytest's own: all passed, some failed
        pytest.fail(f"it passed, but its boot did not end well\n{lab.explain(run)}", pytrace=False)
    if all(one.skipped for one in mine):
        pytest.skip(mine[0].skipped)
