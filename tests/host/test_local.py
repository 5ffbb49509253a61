"""Where a path leads, without a question to a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.host.root import Root, resolve_links
from tests.tree import put

MOUNTINFO = """\
1 1 8:1 / / rw - ext4 /dev/sda1 rw
2 1 0:43 / /srv/nfs rw - nfs4 nas:/a rw
3 1 0:50 / /net rw - autofs auto.net rw
"""


@pytest.fixture
def root(tmp_path: Path) -> Root:
    put(tmp_path / "proc/self/mountinfo", MOUNTINFO)
    (tmp_path / "var/mnt/a").mkdir(parents=True)
    (tmp_path / "srv").mkdir()
    for link, target in {
        "mnt": "var/mnt",
        "data": "/mnt/a",
        "var/mnt/up": "../../srv",
        "export": "srv/nfs/share",
        "loop": "loop",
        "srv/nfs": "/nowhere",  # nothing below a mount is looked at
    }.items():
        (tmp_path / link).symlink_to(target)
    return Root(str(tmp_path))


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [
        ("/", "/"),
        ("/var/mnt", "/var/mnt"),
        ("/mnt/a/b", "/var/mnt/a/b"),
        ("/mnt//a/./new/", "/var/mnt/a/new"),
        ("/data", "/var/mnt/a"),
        ("/mnt/up/x", "/srv/x"),
        ("/mnt/a/../../../..", "/"),
        ("/loop/a", "/loop/a"),
        ("/srv/nfs/x/y", "/srv/nfs/x/y"),
        ("/export/x", "/srv/nfs/share/x"),
        ("/net/host", "/net/host"),
    ],
)
def test_links_are_followed_as_far_as_no_server_is_asked(root: Root, path: str, leads_to: str) -> None:
    assert resolve_links(root, path) == leads_to


def test_without_mountinfo_nobody_knows(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        resolve_links(Root(str(tmp_path)), "/mnt")


@pytest.mark.parametrize(
    ("point", "fstype", "name"),
    [
        ("/opt", "nfs4", "opt/microsoft/aznfs/data/mountmap"),
        ("/opt", "autofs", "opt/microsoft/aznfs/data/mountmap"),
        ("/usr/local", "fuse.sshfs", "usr/local/lib/udev/rules.d/99-nfs.rules"),
        ("/srv/nfs", "nfs", "usr/local/lib/udev/rules.d/99-nfs.rules"),
    ],
)
def test_a_sites_files_on_a_network_are_absent(tmp_path: Path, point: str, fstype: str, name: str) -> None:
    place = tmp_path / name
    if point == "/srv/nfs":
        (tmp_path / "usr").mkdir()
        (tmp_path / "usr/local").symlink_to("../srv/nfs/local")
    place.resolve().parent.mkdir(parents=True)
    place.write_text("a rule")
    mountinfo = put(tmp_path / "proc/1/mountinfo", MOUNTINFO.splitlines()[0] + "\n")
    folder, _, last = name.rpartition("/")
    assert (Root(str(tmp_path)).read(name), Root(str(tmp_path)).names(folder)) == ("a rule", [last])
    mountinfo.write_text(f"{mountinfo.read_text()}9 1 0:60 / {point} rw - {fstype} nas:/x rw\n")
    root = Root(str(tmp_path))
    assert (root.read_or_empty(name), root.names(folder), root.exists(name)) == ("", [], False)
    assert not root.faults


@pytest.mark.parametrize("point", ["/", "/usr"])
def test_where_the_system_is_a_servers_its_files_are_read(tmp_path: Path, point: str) -> None:
    put(tmp_path / "proc/1/mountinfo", f"1 1 0:43 / {point} rw - nfs4 nas:/root rw\n")
    put(tmp_path / "usr/local/file", "text")
    assert Root(str(tmp_path)).read("usr/local/file") == "text"
