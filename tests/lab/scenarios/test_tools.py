"""nfstuned says what was done, each byte once; prints what other tools say of the same load."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING

import pytest

from tests.bench.bench_tools import TOOLS, compare, table

if TYPE_CHECKING:
    from tests.lab.kit.mounts import Mounts

pytestmark = [
    pytest.mark.release,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("quiet_udev"),
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
