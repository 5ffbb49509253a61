"""udev/99-nfstuned.rules alone, without the daemon: tunes NFS and touches nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit import rivals
from tests.lab.kit.mounts import all_read_ahead_kb
from tests.lab.kit.server import SHARES
from tests.lab.kit.strangers import strangers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.mounts import Mounts

RULE_KB = 15360
pytestmark = pytest.mark.kernel
SHIPPED = Path("/lab/udev/99-nfstuned.rules")
VERSIONS = ("vers=3,nolock", "vers=4.1,nconnect=4", "vers=4.2")


@pytest.fixture
def rule() -> Iterator[Path]:
    """The rule as an administrator installs it, beside nfs-utils' own."""
    path = rivals.add_rule(SHIPPED.name, SHIPPED.read_text())
    yield path
    path.unlink()
    rivals.reload_rules()


@pytest.mark.usefixtures("rule")
@pytest.mark.parametrize("options", VERSIONS)
def test_the_rule_tunes_a_mount_and_outdoes_nfs_utils_own(mount: Mounts, options: str) -> None:
    mounted = mount("a", options)
    rivals.settle()
    assert mounted.read_ahead_kb == RULE_KB


@pytest.mark.usefixtures("rule", "quiet_udev")
def test_the_rule_tunes_a_mount_where_nfs_utils_own_is_masked(mount: Mounts) -> None:
    mounted = mount("a")
    rivals.settle()
    assert mounted.read_ahead_kb == RULE_KB


def test_the_rule_touches_nothing_else(mount: Mounts, request: pytest.FixtureRequest) -> None:
    before = all_read_ahead_kb()
    with strangers() as without:
        rivals.settle()
        kernels = without.values()
    request.getfixturevalue("rule")
    mounted = [mount(share) for share in SHARES]
    with strangers() as beside:
        rivals.settle()
        assert beside.values() == kernels, f"of {beside.bdis}"
    assert {one.read_ahead_kb for one in mounted} == {RULE_KB}
    after = all_read_ahead_kb()
    assert {name: after.get(name) for name in before} == before
