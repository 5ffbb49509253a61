"""Mounts that files ask for and nobody has made are found, with their reasons, and no others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.kit.daemon import nfstuned_json, unit_property
from tests.lab.kit.faults import silent
from tests.lab.kit.fstab import POINTS, lines, unit
from tests.lab.kit.server import AZURE, GENERIC, OTHER_ADDRESS
from tests.lab.kit.shell import attempt, program, run, wait_for

OPTIONS = "vers=4.1,nofail,_netdev"
REASON = "its mount failed (exit-code): mount.nfs: "
pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev", "stopped_daemon", "server")]


def found() -> dict[str, str]:
    """Return the findings about missing mounts, by the names of their points."""
    document = nfstuned_json("check", "--offline", "--select", "NFS412", timeout=180)
    findings = document["findings"]
    assert isinstance(findings, list)
    return {one["message"].split(" ")[0].rpartition("/")[2]: one["message"] for one in findings}


@pytest.fixture
def condition() -> Iterator[None]:
    """A drop-in with a condition that the mount `elsewhere` does not meet."""
    drop_in = Path(f"/etc/systemd/system/{unit('elsewhere')}.d/condition.conf")
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text("[Unit]\nConditionPathExists=/nowhere\n")
    yield
    drop_in.unlink()
    drop_in.parent.rmdir()


@pytest.mark.usefixtures("condition")
def test_a_mount_that_failed_is_found_with_its_reason_and_a_condition_excuses_one() -> None:
    asked = (("failed", "/srv/nothing"), ("never", "/srv/a"), ("elsewhere", "/srv/a"))
    with lines(*((name, f"{AZURE}:{export}", OPTIONS) for name, export in asked)):
        attempt("systemctl", "start", unit("failed"))
        run("systemctl", "start", unit("elsewhere"))
        (POINTS / "never/backup.tar").touch()
        messages = found()
        assert messages.keys() == {"failed", "never"}
        assert REASON in messages["failed"], messages["failed"]
        assert messages["never"].endswith(
            "is not mounted: nobody mounted it; the folder below it has 1 name, which programs may have "
            "written"
        )
        (POINTS / "never/backup.tar").unlink()


@pytest.mark.release
def test_a_mount_by_hand_at_its_first_use_by_a_service_or_elsewhere_is_not_missing() -> None:
    with lines(
        ("noauto", f"{AZURE}:/srv/a", f"{OPTIONS},noauto"),
        ("auto", f"{AZURE}:/srv/b", f"{OPTIONS},x-systemd.automount,x-systemd.idle-timeout=1"),
        ("service", f"{AZURE}:/srv/d", f"{OPTIONS},x-systemd.wanted-by=backup.service"),
        ("mounted", f"{AZURE}:/srv/c", OPTIONS),
    ):
        run("systemctl", "start", unit("mounted"), unit("auto").replace(".mount", ".automount"))
        run("ls", str(POINTS / "auto"))
        assert found() == {}
        wait_for("the automount's end", lambda: unit_property(unit("auto"), "ActiveState") != "active", 60)
        assert found() == {}


@pytest.mark.release
def test_a_mount_that_comes_late_or_goes_and_comes_again_is_not_missing() -> None:
    with lines(("late", f"{GENERIC}:/srv/a", OPTIONS), ("again", f"{AZURE}:/srv/b", OPTIONS)):
        with silent(OTHER_ADDRESS):
            run("systemctl", "start", "--no-block", unit("late"))
            wait_for("the mount", lambda: unit_property(unit("late"), "ActiveState") == "activating", 30)
            assert "late" not in found()
        wait_for("the mount", lambda: unit_property(unit("late"), "ActiveState") == "active", 150)
        restarts = f"while systemctl restart {unit('again')}; do sleep 3; done"
        with program("sh", "-c", restarts):
            for _ in range(5):
                assert found() == {}
                time.sleep(0.3)
