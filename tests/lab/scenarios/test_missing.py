"""Mounts that files ask for and nobody has made are found, with their reasons; what comes and goes is not."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.lab.kit.daemon import nfstuned_json
from tests.lab.kit.fstab import POINTS, lines, unit
from tests.lab.kit.network import silent
from tests.lab.kit.server import AZURE, GENERIC, OTHER_ADDRESS
from tests.lab.kit.shell import attempt, run, wait_for

OPTIONS = "vers=4.1,nofail,_netdev"
pytestmark = [
    pytest.mark.system,
    pytest.mark.usefixtures("quiet_udev", "stopped_daemon", "server"),
]


def found() -> dict[str, str]:
    """Return what check says of mounts that are missing, by the names of their points."""
    document = nfstuned_json("check", "--offline", "--select", "NFS412", timeout=180)
    findings = document["findings"]
    assert isinstance(findings, list)
    return {one["message"].split(" ")[0].rpartition("/")[2]: one["message"] for one in findings}


def test_a_mount_that_failed_is_found_with_its_reason_and_what_lies_below() -> None:
    with lines(("failed", f"{AZURE}:/srv/nothing", OPTIONS), ("never", f"{AZURE}:/srv/a", OPTIONS)):
        attempt("systemctl", "start", unit("failed"))
        (POINTS / "never/backup.tar").touch()
        told = found()
        assert told.keys() == {"failed", "never"}
        assert "its mount has failed (exit-code): mount.nfs: " in told["failed"], told["failed"]
        assert told["never"].endswith(
            "is not mounted: nobody has mounted it; the folder below it has 1 name, which programs may have "
            "written there"
        )
        (POINTS / "never/backup.tar").unlink()


def test_behind_a_link_systemd_knows_it_by_what_the_link_leads_to() -> None:
    (POINTS / "place").mkdir(parents=True, exist_ok=True)
    (POINTS / "link").symlink_to("place")
    real = unit("place-failed")
    try:
        with lines(("link/failed", f"{AZURE}:/srv/nothing", OPTIONS)):
            attempt("systemctl", "start", real)
            assert "its mount has failed (exit-code): mount.nfs: " in found()["failed"]
    finally:
        attempt("systemctl", "reset-failed", real)
        (POINTS / "link").unlink()


def test_a_copy_in_another_mount_namespace_is_not_the_hosts_mount() -> None:
    """As a container has it: the host unmounts, and what ran before keeps its copy."""
    with lines(("shared", f"{AZURE}:/srv/a", OPTIONS)):
        run("systemctl", "start", unit("shared"))
        argv = ["unshare", "--mount", "--propagation=private", "sleep", "300"]
        with subprocess.Popen(argv) as container:
            try:
                view = Path(f"/proc/{container.pid}/mountinfo")
                wait_for(
                    "a namespace of its own", lambda: _namespace(container.pid) != _namespace(os.getpid())
                )
                run("systemctl", "stop", unit("shared"))
                assert f" {POINTS}/shared " in view.read_text()
                assert found().keys() == {"shared"}
            finally:
                container.kill()


def test_what_is_mounted_by_hand_at_its_first_use_a_service_or_elsewhere_is_not_missing() -> None:
    with lines(
        ("noauto", f"{AZURE}:/srv/a", f"{OPTIONS},noauto"),
        ("auto", f"{AZURE}:/srv/b", f"{OPTIONS},x-systemd.automount,x-systemd.idle-timeout=1"),
        ("service", f"{AZURE}:/srv/d", f"{OPTIONS},x-systemd.wanted-by=backup.service"),
        ("mounted", f"{AZURE}:/srv/c", OPTIONS),
    ):
        run("systemctl", "start", unit("mounted"), unit("auto").replace(".mount", ".automount"))
        run("ls", str(POINTS / "auto"))
        assert found() == {}
        wait_for("the automount to expire", lambda: _state(unit("auto")) != "active", 60)
        assert found() == {}


def test_a_condition_that_is_not_met_excuses_a_mount() -> None:
    drop_in = Path(f"/etc/systemd/system/{unit('elsewhere')}.d/condition.conf")
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text("[Unit]\nConditionPathExists=/nowhere\n")
    try:
        with lines(("elsewhere", f"{AZURE}:/srv/a", OPTIONS)):
            run("systemctl", "start", unit("elsewhere"))
            assert found() == {}
    finally:
        drop_in.unlink()
        drop_in.parent.rmdir()


def test_a_mount_that_comes_late_or_goes_and_comes_again_is_not_missing() -> None:
    with lines(("late", f"{GENERIC}:/srv/a", OPTIONS), ("again", f"{AZURE}:/srv/b", OPTIONS)):
        with silent(OTHER_ADDRESS):
            run("systemctl", "start", "--no-block", unit("late"))
            wait_for("the mount to begin", lambda: _state(unit("late")) == "activating", 30)
            assert "late" not in found()
        wait_for("the mount", lambda: _state(unit("late")) == "active", 150)
        restarts = f"while systemctl restart {unit('again')}; do sleep 3; done"
        with subprocess.Popen(["sh", "-c", restarts]) as process:
            try:
                for _ in range(5):
                    assert found() == {}
                    time.sleep(0.3)
            finally:
                process.kill()


def _namespace(process: int) -> str:
    return str(Path(f"/proc/{process}/ns/mnt").readlink())


def _state(name: str) -> str:
    return run("systemctl", "show", "--property=ActiveState", "--value", name).strip()
