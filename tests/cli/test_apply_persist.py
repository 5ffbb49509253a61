"""`nfstuned apply --persist`: what it says, what it writes, and what it refuses."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from nfstuned.core.nconnect.persist import with_sections
from nfstuned.model.mounts import PERSISTED
from tests.cli.conftest import CASE, Host, MakeHost, furnish

TWO = "10.1.2.4:/vol1 /mnt/vol1 nfs vers=4.1,hard 0 0\n10.1.2.4:/vol2 /mnt/vol2 nfs vers=4.1 0 0\n"
NOTHING = f"Nothing to do: {PERSISTED} is as the profiles ask.\n"
AZURE = "sa1.file.core.windows.net"
JSON = ("--format", "json")


@pytest.fixture
def here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Host:
    made = furnish(Host(tmp_path, capsys))
    (tmp_path / "etc/fstab").write_text(TWO)
    return made


def drop_in(here: Host) -> Path:
    return here.tree / PERSISTED[1:]


def names(here: Host) -> set[str]:
    return {path.name for path in drop_in(here).parent.iterdir()}


def test_a_dry_run_says_what_it_would_do_and_does_nothing(here: Host) -> None:
    run = here.run("apply", "--persist", "--dry-run")
    assert (run.status, run.err) == (0, "")
    assert run.out == (
        "10.1.2.4  nconnect none -> 8  planned  (azure-netapp-files asks for nconnect=8)\n1 planned\n"
    )
    assert not drop_in(here).parent.exists()


@pytest.mark.usefixtures("umask_077")
def test_it_writes_the_file_once_and_says_when_that_counts(here: Host) -> None:
    run = here.run("apply", "--persist")
    assert (run.status, run.err) == (0, "")
    assert run.out == (
        "10.1.2.4  nconnect none -> 8  done  (azure-netapp-files asks for nconnect=8)\n"
        "1 done\n"
        "Written to /etc/nfsmount.conf.d/50-nfstuned.conf.\n"
        "A server has the new number when it is mounted again, after every mount of it was unmounted: see "
        "nfstuned check.\n"
    )
    assert drop_in(here).read_text() == with_sections({"10.1.2.4": 8})
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (drop_in(here), drop_in(here).parent)]
    assert (modes, names(here)) == ([0o644, 0o755], {"50-nfstuned.conf"})
    before = drop_in(here).stat()
    run = here.run("apply", "--persist")
    assert (run.status, run.out, run.err) == (0, NOTHING, "")
    after = drop_in(here).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_changes_later_is_changed_in_it_and_no_backups_pile_up(here: Host) -> None:
    here.run("apply", "--persist")
    here.edit("etc/fstab", TWO, TWO + "10.1.2.9:/vol /mnt/vol nfs rw,nconnect=16 0 0\n")
    action = here.run("apply", "--persist", *JSON).action
    seen = action["target"], action["old"], action["new"], action["outcome"]
    assert seen == ("10.1.2.9", None, 16, "done")
    assert drop_in(here).read_text() == with_sections({"10.1.2.4": 8, "10.1.2.9": 16})
    assert names(here) == {"50-nfstuned.conf"}


def test_json_is_the_document_of_every_apply_and_fstab_then_needs_no_number(here: Host) -> None:
    run = here.run("apply", "--persist", *JSON)
    assert (run.status, run.err) == (0, "")
    assert run.action == {
        "kind": "persist",
        "target": "10.1.2.4",
        "old": None,
        "new": 8,
        "outcome": "done",
        "reason": "azure-netapp-files asks for nconnect=8",
    }
    assert here.run("apply", "--persist", *JSON).actions == []
    assert here.run("apply", "--fstab", "--dry-run").out.startswith("Nothing to do")


def test_a_server_that_is_gone_stays_until_it_is_pruned(here: Host) -> None:
    here.run("apply", "--persist")
    (here.tree / "etc/fstab").write_text("")
    run = here.run("apply", "--persist")
    assert (run.status, run.out) == (0, NOTHING)
    assert run.err == f"{PERSISTED}: nothing here uses 10.1.2.4; --prune takes its section out\n"
    run = here.run("apply", "--persist", "--prune", "--dry-run")
    assert run.out == "10.1.2.4  nconnect 8 -> none  planned  (nothing here uses it)\n1 planned\n"
    run = here.run("apply", "--persist", "--prune", *JSON)
    assert (run.status, run.err) == (0, "")
    assert (run.action["old"], run.action["new"], run.action["outcome"]) == (8, None, "done")
    assert drop_in(here).read_text() == with_sections({})
    assert here.run("apply", "--persist", "--prune").out == NOTHING


@pytest.mark.parametrize("text", ["# mine\n", "", with_sections({"10.1.2.4": 8}).replace("=8", "=2")])
@pytest.mark.parametrize("more", [[], ["--dry-run"], ["--prune"]])
def test_a_file_that_somebody_edited_is_refused(here: Host, text: str, more: list[str]) -> None:
    drop_in(here).parent.mkdir()
    drop_in(here).write_text(text)
    run = here.run("apply", "--persist", *more, *JSON)
    assert (run.status, run.action["target"], run.action["outcome"]) == (1, PERSISTED, "failed")
    assert "move the additions to a file of another name" in run.action["reason"]
    assert (drop_in(here).read_text(), names(here)) == (text, {"50-nfstuned.conf"})
    run = here.run("apply", "--persist", *more)
    assert run.out.startswith(f"{PERSISTED}  -  failed  (it is not as nfstuned wrote it: ")


def test_a_link_in_its_place_is_not_followed(here: Host) -> None:
    drop_in(here).parent.mkdir()
    drop_in(here).symlink_to("../elsewhere")
    run = here.run("apply", "--persist")
    assert (run.status, run.out) == (2, "")
    assert run.err == f"{PERSISTED}: is a symbolic link to ../elsewhere\n"
    assert not (here.tree / "etc/elsewhere").exists()


def test_with_debian_12_the_second_server_is_refused_with_the_reason(here: Host) -> None:
    here.install(b"2.6.2")
    here.edit("etc/fstab", TWO, TWO + "10.1.2.9:/vol /mnt/vol nfs rw 0 0\n")
    run = here.run("apply", "--persist")
    assert run.status == 0
    assert run.out.startswith(
        "10.1.2.4  nconnect none -> 8  done     (azure-netapp-files asks for nconnect=8)\n"
        "10.1.2.9  nconnect none -> 8  skipped  (mount.nfs 2.6.2 has one nconnect for all [ Server ] "
        "sections, and 10.1.2.4 has it: put nconnect into the options of the mounts instead)\n"
        "1 done, 1 skipped\n"
    )
    assert drop_in(here).read_text() == with_sections({"10.1.2.4": 8})


def test_without_mount_nfs_it_says_so(here: Host) -> None:
    (here.tree / "usr/sbin/mount.nfs").unlink()
    run = here.run("apply", "--persist", *JSON)
    assert (run.status, "there is no mount.nfs here" in run.action["reason"]) == (1, True)
    assert not drop_in(here).parent.exists()


def test_the_administrators_own_number_is_named(here: Host) -> None:
    (here.tree / "etc/nfsmount.conf").write_text('[ Server "10.1.2.4" ]\nnconnect=2\n')
    action = here.run("apply", "--persist", *JSON).action
    reason = "/etc/nfsmount.conf:2 says nconnect=2: that counts"
    assert (action["outcome"], action["reason"]) == ("skipped", reason)
    assert not drop_in(here).exists()


def test_status_then_names_the_file_as_who_asks(host: MakeHost) -> None:
    here = host(CASE)
    here.install(b"2.8.3")
    actions = here.run("apply", "--persist", *JSON).actions
    done = [(one["target"], one["new"], one["outcome"]) for one in actions]
    assert done == [("10.10.10.10", 4, "done"), (AZURE, 4, "done")]
    rows = {row["mount_point"]: row for row in here.run("status", *JSON).document["mounts"]}
    asked = {point: (row["nconnect_requested"], row["nconnect"]) for point, row in rows.items()}
    assert (asked["/mnt/2"], asked["/mnt/3"]) == ((4, 4), (None, 1))
    line = drop_in(here).read_text().splitlines().index(f'[ Server "{AZURE}" ]') + 2
    assert rows["/mnt/2"]["nconnect_requested_by"] == f"{PERSISTED}:{line}"


def test_no_section_is_pruned_while_fstab_cannot_be_read(here: Host) -> None:
    here.run("apply", "--persist")
    before = drop_in(here).read_text()
    (here.tree / "etc/fstab").unlink()
    (here.tree / "etc/fstab").symlink_to("fstab")
    run = here.run("apply", "--persist", "--prune", *JSON)
    assert (run.status, run.action["outcome"]) == (2, "failed")
    assert drop_in(here).read_text() == before
