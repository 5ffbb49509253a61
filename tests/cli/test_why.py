"""`nfstuned why` for mounts of all kinds: the same numbers as `status`, and the terminal's width."""

from __future__ import annotations

import sys

import pytest

from tests.cli.conftest import MakeHost

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
