"""What is installed beside the code is right by the judgement of systemd and udev themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.kit.daemon import nfstuned
from tests.lab.kit.package import compiled
from tests.lab.kit.shell import attempt, run

UNIT = Path("/usr/lib/systemd/system/nfstuned.service")
RULE = Path("/lab/udev/99-nfstuned.rules")
pytestmark = pytest.mark.system


def test_the_command_is_installed() -> None:
    assert "daemon" in run("nfstuned", "--help")


def test_the_service_is_installed() -> None:
    assert UNIT.exists()


def test_systemd_finds_nothing_wrong_with_the_service() -> None:
    done = attempt("systemd-analyze", "verify", "--man=yes", "--recursive-errors=no", str(UNIT))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_service_is_exposed_at_most_2() -> None:
    """`--threshold` counts in tenths: 20 is an exposure of 2.0."""
    done = attempt("systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", str(UNIT))
    assert done.returncode == 0, done.stdout


def test_the_preset_enables_the_service() -> None:
    run("systemctl", "preset", "nfstuned.service")
    assert run("systemctl", "is-enabled", "nfstuned.service").strip() == "enabled"


def test_the_fallback_rule_is_not_installed() -> None:
    assert not list(Path("/usr/lib/udev/rules.d").glob("*nfstuned*"))


@pytest.mark.parametrize("arguments", [(), ("--no-style",)])
def test_udev_finds_nothing_wrong_with_the_rule(arguments: tuple[str, ...]) -> None:
    done = attempt("udevadm", "verify", *arguments, str(RULE))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_catalog_explains_every_message() -> None:
    listed = run("journalctl", "--list-catalog")
    assert "nfstuned" in listed


def test_commands_find_all_that_they_import_compiled() -> None:
    """What a service in its sandbox and a user without rights run cannot be written."""
    before = compiled()
    assert before
    for command in (("status",), ("check", "--offline"), ("config", "schema"), ("explain", "NFS101")):
        assert nfstuned(*command).returncode in {0, 1}
    assert compiled() == before
    assert attempt("dpkg", "--verify", "nfstuned").stdout == ""
