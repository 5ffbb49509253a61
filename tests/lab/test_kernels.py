"""Every scenario of a boot passes."""

from __future__ import annotations

import pytest

from tests.lab.conftest import Lab
from tests.lab.runs import Boot


@pytest.mark.lab
@pytest.mark.timeout(3 * 3600)  # it waits for its boot, and that for others; each has limits of its own
def test_all_scenarios_pass(lab: Lab, boot: Boot) -> None:
    failure = lab.run(boot).failure
    if failure:
        pytest.fail(failure, pytrace=False)
