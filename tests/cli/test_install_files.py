"""`nfstuned install-files` over trees, as an installation by pip would run it."""

from __future__ import annotations

import json
import os
import re
import sys
import sysconfig
from pathlib import Path

import pytest

from nfstuned.cli.install_files import LIST
from nfstuned.host import installed
from nfstuned.host.installed import contents
from nfstuned.model.change import FILES, SERVICES
from tests.cli.conftest import COMMAND, REPOSITORY, Host, MakeHost, full_at
from tests.tree import put
from tests.users import NOBODY, rights_of

UNIT = "usr/local/lib/systemd/system/nfstuned.service"
MANUAL = "usr/local/share/man/man8/nfstuned.8"


@pytest.fixture
def venv(host: MakeHost, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Return a host with nfstuned in /opt, which is the one that runs."""
    made = host("no-nfs")
    command = put(made.tree / COMMAND, "#!/opt/nfstuned/bin/python\n", 0o755)
    monkeypatch.setattr(sys, "argv", [str(command), "install-files"])
    return made


def words(out: str) -> set[str]:
    return {line.split()[0] for line in out.splitlines() if "  /" in line}


def test_every_file_is_put_where_the_system_looks_and_the_unit_starts_this_command(venv: Host) -> None:
    run = venv.run("install-files")
    assert (run.status, run.err) == (0, "")
    for source, place in FILES.items():
        written = (venv.tree / "usr/local" / place).read_text()
        original = (REPOSITORY / source).read_text()
        started = original.replace("/usr/bin/nfstuned ", f"/{COMMAND} ")
        assert written == (started if source in SERVICES else original)
        assert f"/usr/local/{place}\n" in run.out
    assert f"\nExecStart=/{COMMAND} daemon\n" in (venv.tree / UNIT).read_text()
    assert f"'/{COMMAND} check " in (venv.tree / UNIT).with_name("nfstuned-check.service").read_text()
    assert "systemctl enable --now nfstuned" in run.out


@pytest.fixture
def older(venv: Host, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Return a host on which an older version wrote its files: another unit, and one more file."""

    def then(prefix: str, command: str) -> dict[str, bytes]:
        texts = contents(prefix, command)
        return {**texts, UNIT: b"[Service]\n", "usr/local/share/man/man7/nfstuned.7": b".TH\n"}

    with monkeypatch.context() as past:
        past.setattr("nfstuned.cli.install_files.contents", then)
        assert venv.run("install-files").status == 0
    return venv


def test_a_newer_version_replaces_its_own_files_and_drops_obsolete_files(older: Host) -> None:
    run = older.run("install-files")
    assert (run.status, words(run.out)) == (0, {"write", "unchanged", "remove"})
    assert f"\nExecStart=/{COMMAND} daemon\n" in (older.tree / UNIT).read_text()
    assert not (older.tree / "usr/local/share/man/man7/nfstuned.7").exists()
    assert len(json.loads((older.tree / LIST).read_text())["files"]) == len(FILES)
    assert older.run("install-files", "--remove").status == 0
    assert not (older.tree / "usr").exists()


@pytest.mark.parametrize("write", range(3))
def test_a_full_disk_leaves_a_way_to_undo(write: int, older: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three are written: the list, the unit, which differs, and the list of the new files alone."""
    with full_at(write, monkeypatch):
        run = older.run("install-files")
    assert (run.status, run.out) == (1, "")
    assert re.match(r"/usr/local/lib/\S+: No space left on device: remove the obstacle and run it", run.err)
    assert not list((older.tree / "usr").rglob("*.nfstuned-new"))
    assert older.run("install-files", "--remove").status == 0
    assert not (older.tree / "usr").exists()


def test_python_m_nfstuned_finds_the_command_next_to_it(venv: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/opt/nfstuned/lib/python3/site-packages/nfstuned/__main__.py"])
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str((venv.tree / COMMAND).parent))
    assert venv.run("install-files").status == 0
    assert f"\nExecStart=/{COMMAND} daemon\n" in (venv.tree / UNIT).read_text()


def test_an_image_folder_gets_no_unit_that_cannot_start(venv: Host, host: MakeHost, tmp_path: Path) -> None:
    assert host("read-ahead-128").run("install-files", "--root", str(venv.tree)).status == 0
    assert (venv.tree / MANUAL).exists()
    run = venv.run("install-files", "--root", str(tmp_path))
    assert (run.status, run.out) == (2, "")
    assert "has no such command: install nfstuned there" in run.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("place", "mode", "owner", "refused"),
    [
        ("opt/nfstuned", 0o777, None, True),
        ("opt/nfstuned", 0o1777, None, False),
        ("opt/nfstuned", 0o755, NOBODY, True),
        (COMMAND, 0o777, None, True),
    ],
)
def test_a_command_that_others_may_replace_is_not_started_as_root(
    place: str, mode: int, owner: int | None, *, refused: bool, venv: Host
) -> None:
    (venv.tree / place).chmod(mode)
    if owner is not None:
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder away")
        os.chown(venv.tree / place, owner, -1)
    run = venv.run("install-files")
    reason = "another user could change the command that root runs"
    assert (run.status, reason in run.err) == ((2, True) if refused else (0, False))


def test_an_images_own_command_counts_not_the_one_that_runs(
    venv: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = put(tmp_path / "bin/nfstuned", "#!/bin/sh\n", 0o755)
    inside = put(venv.tree / str(running)[1:], "#!/bin/sh\n", 0o777)
    monkeypatch.setattr(sys, "argv", [str(running)])
    run = venv.run("install-files", "--root", str(venv.tree))
    assert (run.status, f"{inside}: another user could change" in run.err) == (2, True)


def test_a_command_that_a_unit_cannot_name_is_refused(venv: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    strange = venv.tree / "opt/my tools/nfstuned"
    strange.parent.mkdir()
    (venv.tree / COMMAND).rename(strange)
    monkeypatch.setattr(sys, "argv", [str(strange)])
    run = venv.run("install-files")
    assert run.status == 2
    assert "a unit cannot name it" in run.err


def test_a_package_installs_no_files(venv: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_CHECKOUT", str(tmp_path))
    run = venv.run("install-files")
    assert run.status == 2
    assert "if a package brought it, the package has installed them" in run.err


def test_without_root_it_says_so(venv: Host) -> None:
    venv.tree.chmod(0o555)
    with rights_of(NOBODY):
        run = venv.run("install-files")
    assert (run.status, run.out) == (2, "")
    assert run.err.endswith("run it as root\n")
