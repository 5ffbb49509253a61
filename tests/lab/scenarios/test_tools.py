"""nfstuned says what was done, each byte once; prints what other tools say of the same load."""

from __future__ import annotations

import os
from dataclasses import astuple
from typing import TYPE_CHECKING

import pytest

from tests.bench.bench_tools import TOOLS, compare, table

if TYPE_CHECKING:
    from tests.lab.kit.mounts import Mounts

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("quiet_udev"),
    # It takes minutes, most of them PCP's, and test_samples.py holds nfstuned's part on every kernel.
    pytest.mark.skipif(os.uname().release.startswith("5."), reason="one kernel shows what the tools say"),
]


def test_nfstuned_says_what_fio_the_server_and_the_sockets_say(
    mount: Mounts, capsys: pytest.CaptureFixture[str]
) -> None:
    def tell(line: str) -> None:
        with capsys.disabled():
            print(f"\n{line}", flush=True)

    found = compare(mount, tell)
    tell(table(found))
    assert found.failed == {}
    assert list(found.said) == list(TOOLS)
    assert astuple(found.said["nfstuned"]) == pytest.approx(astuple(found.truth))
