"""Other programs next to the daemon: they send events by hand and take its files away."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit.daemon import ETC, STATE, nfstuned
from tests.lab.kit.mounts import announce
from tests.lab.kit.rivals import settle
from tests.lab.kit.shell import run, tuned
from tests.lab.kit.unit import let_tick

if TYPE_CHECKING:
    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounts

OFTEN = '[daemon]\nsample_interval = "1s"\n'
pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev")]


@pytest.fixture
def ticking_daemon(running_daemon: Daemon) -> Daemon:
    """The service, which looks at everything each second."""
    if "nfstuned.toml" not in {path.name for path in ETC.glob("*")}:
        running_daemon.configure(OFTEN)
        running_daemon.reload()
    return running_daemon


def test_a_removal_that_is_none_loses_no_original_value(ticking_daemon: Daemon, mount: Mounts) -> None:
    mounted = mount("a")
    tuned(15360, mounted)
    announce(3, mounted.device, "remove")
    settle()
    let_tick(ticking_daemon)
    assert nfstuned("undo").returncode == 0
    assert mounted.read_ahead_kb == 128


def test_a_trigger_of_all_devices_changes_nothing(ticking_daemon: Daemon, mount: Mounts) -> None:
    mounted, left = mount("a"), mount("b")
    tuned(15360, mounted, left)
    assert nfstuned("undo").returncode == 0
    assert nfstuned("apply").returncode == 0
    ticking_daemon.journal.mark()
    for action in ("add", "change"):
        run("udevadm", "trigger", f"--action={action}", "--subsystem-match=bdi", "--settle")
    let_tick(ticking_daemon)
    assert [m.read_ahead_kb for m in (mounted, left)] == [15360, 15360]
    changes = [entry["MESSAGE"] for entry in ticking_daemon.entries() if "NFSTUNED_NEW_KB" in entry]
    assert changes == []


def test_it_goes_on_without_its_records(ticking_daemon: Daemon, mount: Mounts) -> None:
    """Somebody cleans up /run: the earlier records are lost, nothing else is."""
    before = mount("a")
    tuned(15360, before)
    for file in (STATE / "read-ahead").iterdir():
        file.unlink(missing_ok=True)  # the service drops that of a pseudo-root by itself
    let_tick(ticking_daemon)
    after = mount("b")
    tuned(15360, before, after)
    shutil.rmtree(STATE / "read-ahead")
    tuned(15360, mount("c"))
