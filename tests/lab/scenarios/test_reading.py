"""Each kernel's files of mounts, superblocks, bdis and clients are read whole."""

from __future__ import annotations

import pytest

from nfstuned.host.observe import observe_host
from nfstuned.host.root import Root
from tests.lab.kit.mounts import Mounts
from tests.lab.kit.shell import run

pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("quiet_udev")]

V6 = "fd00::10"


def test_the_parsers_understand_all_that_this_kernel_writes(mount: Mounts) -> None:
    run("ip", "address", "replace", f"{V6}/128", "dev", "lo")
    mounts = [mount("a", "vers=3,nolock"), mount("a", "vers=4.1,nconnect=4"), mount("b", "vers=4.2")]
    mounts += [mount("c", "vers=4.0"), mount("d", "vers=3,nolock", host=f"[{V6}]")]
    snapshot = observe_host(Root())
    assert snapshot.problems == ()
    assert {m.point for s in snapshot.superblocks for m in s.mounts} >= {str(m.point) for m in mounts}
    assert all(s.volume is not None and s.bdi is not None for s in snapshot.superblocks)
    assert {request.point for request in snapshot.requests} >= {str(m.point) for m in mounts}
