"""The installed files are right by the judgement of systemd and udev themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.kit.daemon import nfstuned
from tests.lab.kit.shell import attempt, run
from tests.lab.kit.unit import compiled

UNIT = Path("/usr/lib/systemd/system/nfstuned.service")
RULE = Path("/lab/udev/99-nfstuned.rules")
pytestmark = pytest.mark.system


def test_systemd_and_udev_find_nothing_wrong() -> None:
    done = attempt("systemd-analyze", "verify", "--man=yes", "--recursive-errors=no", str(UNIT))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    done = attempt("udevadm", "verify", str(RULE))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert not list(Path("/usr/lib/udev/rules.d").glob("*nfstuned*")), "the fallback rule is installed"


def test_the_service_is_exposed_at_most_2() -> None:
    """`--threshold` counts in tenths: 20 is an exposure of 2.0."""
    done = attempt("systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", str(UNIT))
    assert done.returncode == 0, done.stdout


def test_the_preset_enables_the_service_and_the_catalog_explains_its_messages() -> None:
    run("systemctl", "preset", "nfstuned.service")
    assert run("systemctl", "is-enabled", "nfstuned.service").strip() == "enabled"
    assert "nfstuned" in run("journalctl", "--list-catalog")


def test_commands_find_all_their_imports_compiled() -> None:
    """A service in its sandbox and a user without rights cannot write compiled files."""
    before = compiled()
    assert before
    for command in (("status",), ("check", "--offline"), ("config", "schema"), ("explain", "NFS101")):
        assert nfstuned(*command).returncode in {0, 1}
    assert compiled() == before
    assert attempt("dpkg", "--verify", "nfstuned").stdout == ""
