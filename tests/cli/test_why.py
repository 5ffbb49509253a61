"""`nfstuned why` for mounts of all kinds: the same numbers as `status`, and the terminal's width."""

from __future__ import annotations

import sys

import pytest

from tests.cli.conftest import MakeHost
from tests.tree import put

JSON = ("--format", "json")
HOSTS = (
    *("aks-node-two-volumes-in-pods", "autofs-followed", "tls-tunnel-full", "azure-shares-alike"),
    *("container-bind-has-no-say", "container-bind-other-profile", "efs-nconnect-live", "identity-shared"),
)


@pytest.mark.parametrize("case", HOSTS)
def test_the_first_origin_has_the_number_that_status_shows(case: str, host: MakeHost) -> None:
    here = host(case)
    rows = here.run("status", *JSON).document["mounts"]
    assert rows
    for row in rows:
        found = here.run("why", row["mount_point"], *JSON).document
        for origins, now in (("read_ahead_origins", "read_ahead_kb"), ("nconnect_origins", "nconnect")):
            assert [origin["wins"] for origin in found[origins]].index(True) == 0
            assert sum(origin["wins"] for origin in found[origins]) == 1
            assert found[origins][0]["value"] == found[now] == row[now]


@pytest.mark.parametrize("width", [60, 80])
def test_a_terminal_has_no_longer_lines(width: int, host: MakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    here = host("udev-nfsrahead-unmasked")
    here.capture.readouterr()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    lines = here.run("why", "/mnt/share").out.splitlines()
    head, *others = lines
    assert "sa1.file.core.windows.net" in head
    assert max(map(len, others)) <= width


def test_a_mount_on_a_path_that_is_not_nfs_hides_the_mount_below(host: MakeHost) -> None:
    here = host("clean")
    table = here.tree / "proc/1/mountinfo"
    table.write_text(table.read_text() + "900 27 0:99 / /mnt/share/tmp rw - tmpfs tmpfs rw\n")
    assert here.run("why", "/mnt/share/temp").status == 0
    run = here.run("why", "/mnt/share/tmp/x")
    assert (run.status, run.err) == (2, "/mnt/share/tmp/x: no NFS mount is there; NFS mounts: /mnt/share\n")


def test_a_mount_over_the_mount_point_hides_the_mount(host: MakeHost) -> None:
    here = host("clean")
    table = here.tree / "proc/1/mountinfo"
    table.write_text(table.read_text() + "900 27 0:99 / /mnt/share rw - tmpfs tmpfs rw\n")
    assert here.run("why", "/mnt/share").status == 2


def test_a_containers_mount_does_not_answer_for_a_path_of_the_host(host: MakeHost) -> None:
    here = host("clean")
    (line,) = [
        line for line in (here.tree / "proc/1/mountinfo").read_text().splitlines() if " /mnt/share " in line
    ]
    own = {mount["mount_point"] for mount in here.run("status", *JSON).document["mounts"]}
    assert own == {"/mnt/share"}
    for each in ("mnt", "user"):
        put(here.tree / f"proc/500/ns/{each}", "")
    put(here.tree / "proc/500/mountinfo", line.replace(" /mnt/share ", " /mnt/share/sub ") + "\n")
    assert here.run("why", "//mnt/share/sub/x", *JSON).document["mount_point"] == "/mnt/share"


def test_a_workload_and_a_shared_superblock_keep_each_mounts_own_nconnect(host: MakeHost) -> None:
    here = host("read-ahead-128")
    here.configure('[[policy]]\nworkload = "database"\nmatch = {}\n')
    (row,) = here.run("status", *JSON).document["mounts"]
    assert (row["profile"], row["nconnect_target"]) == ("azure-files+database", 4)
    assert (
        here.run("why", "/mnt/share")
        .out.splitlines()[-1]
        .startswith("To have other numbers: read_ahead_kb of [workload.database]")
    )
    here = host("read-ahead-shared")
    config = here.tree / "etc/nfstuned/nfstuned.toml"
    config.write_text(config.read_text() + "nconnect = 2\nnconnect_max = 2\n")
    rows = here.run("status", *JSON).document["mounts"]
    assert [row["nconnect_target"] for row in rows] == [4, 2]
    found = here.run("why", "/mnt/small", *JSON).document
    assert (found["profile"], found["nconnect_target"]) == ("small", 2)


def test_an_earlier_decision_is_no_other_programs(host: MakeHost) -> None:
    here = host("clean")
    here.configure('[[policy]]\nprofile = "generic"\nmatch = {}\n')
    here.run("apply")
    (origin, *_) = here.run("why", "/mnt/share", *JSON).document["read_ahead_origins"]
    assert origin["wins"]
    here.configure("[profile.azure-files]\nread_ahead_kb = 20000\nread_ahead_max_kb = 20000\n")
    here.run("apply")
    here.configure('[[policy]]\nprofile = "generic"\nmatch = {}\n')
    found = here.run("why", "/mnt/share", *JSON).document
    assert found["read_ahead_origins"][0]["place"] == "nfstuned"
    assert found["remedies"][0] == "To set the read-ahead: sudo nfstuned apply"


def test_a_line_of_fstab_is_filled_by_its_servers_section_before_a_unit_counts(host: MakeHost) -> None:
    here = host("read-ahead-128")
    fstab = here.tree / "etc/fstab"
    fstab.write_text(fstab.read_text().replace("nconnect=4,", "").replace(",nconnect=4", ""))
    options = "vers=4.1,nconnect=8,sec=sys"
    put(
        here.tree / "usr/lib/systemd/system/mnt-share.mount",
        f"[Mount]\nWhat=sa1.file.core.windows.net:/sa1/share\nWhere=/mnt/share\nType=nfs\nOptions={options}\n",
    )
    put(here.tree / "etc/nfsmount.conf", '[ Server "sa1.file.core.windows.net" ]\nnconnect=3\n')
    origins = here.run("why", "/mnt/share", *JSON).document["nconnect_origins"]
    reasons = {origin["place"]: origin["reason"] for origin in origins}
    assert "takes precedence" in reasons["/usr/lib/systemd/system/mnt-share.mount:5"]
    assert "takes precedence" not in reasons["/etc/nfsmount.conf:2"]
