from __future__ import annotations

from pathlib import Path

from nfstuned.host.observe import other_views
from nfstuned.host.root import Root
from tests.tree import link, put


def process(proc: Path, pid: int, mount_id: int, network: Path | None) -> None:
    folder = proc / str(pid)
    put(folder / "mountinfo", f"{mount_id} 1 254:0 / / rw - ext4 /dev/vda rw\n")
    if network is not None:
        network.mkdir(exist_ok=True)
        link(folder / "net/nfsfs", network)


def test_each_pair_of_namespaces_is_seen_through_one_process(tmp_path: Path) -> None:
    proc, ours, other = tmp_path / "proc", tmp_path / "ours", tmp_path / "other"
    process(proc, 1, 24, ours)
    process(proc, 10, 24, ours)
    process(proc, 11, 90, ours)
    process(proc, 12, 90, ours)
    process(proc, 13, 24, other)
    process(proc, 14, 77, other)
    (proc / "meminfo").write_text("")
    views = list(other_views(Root(str(tmp_path)), lambda: None))
    assert [view.folder for view in views] == ["proc/11", "proc/13", "proc/14"]


def test_namespaces_of_other_users_are_left_alone(tmp_path: Path) -> None:
    """Whoever makes a user namespace may make any number of bind mounts in it."""
    proc, ours = tmp_path / "proc", tmp_path / "ours"
    for pid, mount_id, users in (
        (1, 24, "0 0 4294967295\n"),
        (10, 90, "0 1000 1\n"),
        (11, 91, "0 0 4294967295\n"),
    ):
        process(proc, pid, mount_id, ours)
        (proc / f"{pid}/uid_map").write_text(users)
    process(proc, 12, 92, ours)
    (proc / "12/uid_map").write_text("")
    views = list(other_views(Root(str(tmp_path)), lambda: None))
    assert [view.folder for view in views] == ["proc/11"]


def test_processes_that_show_nothing_are_passed_over(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    process(proc, 1, 24, None)
    (proc / "20").mkdir()
    process(proc, 21, 24, None)
    put(proc / "22/mountinfo", "")
    assert list(other_views(Root(str(tmp_path)), lambda: None)) == []
