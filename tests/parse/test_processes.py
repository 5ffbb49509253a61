"""What keeps a mount busy, as the kernel and nfs-utils write it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nfstuned.host.root import Root
from nfstuned.parse.proc import processes
from tests.tree import put

MAPS = """\
55b0a592d000-55b0a592f000 r--p 00000000 fe:00 247278                     /usr/bin/head
7f0000000000-7f0000001000 rw-s 00000000 00:2b 12                         /mnt/a/b c (deleted)
7f0000001000-7f0000002000 rw-s 00001000 00:2b 13                         /mnt/a/other
7f0000002000-7f0000003000 rw-p 00000000 00:00 0                          [heap]
7f0000003000-7f0000004000 rw-p 00000000 00:00 0
"""
SWAPS = """\
Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
/mnt/a/swap\\040file                     file\t\t1048572\t\t0\t\t-2
/dev/sda2                               partition\t1048572\t\t0\t\t-3
"""
SOCKETS = """\
Num       RefCount Protocol Flags    Type St Inode Path
000000003e98976b: 00000003 00000000 00000000 0001 03   559
00000000c117bb01: 00000002 00000000 00010000 0001 01   560 /mnt/a/the socket
00000000c117bb02: 00000002 00000000 00010000 0001 01 12345 @abstract
"""


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (processes.parse_mount_id, "pos:\t0\nflags:\t0100000\nmnt_id:\t64\nino:\t3\n", 64),
        (processes.parse_mount_id, "pos:\t0\n", None),
        (processes.parse_mapped, MAPS, {"254:0": "/usr/bin/head", "0:43": "/mnt/a/b c (deleted)"}),
        (processes.parse_swaps, SWAPS, ("/mnt/a/swap file",)),
        (processes.parse_exports, "# Version 1.1\n# Path Client\n/mnt/a\\040b\t*(rw,sync)\n", ("/mnt/a b",)),
        (processes.parse_exports, "/srv/a\t*(rw,sync)\n/srv/a\t10.0.0.0/8(ro)\n", ("/srv/a",)),
        (processes.parse_unix, SOCKETS, ("/mnt/a/the socket",)),
    ],
)
def test_uses_of_a_mount_are_read(parse: Callable[[str], object], text: str, expected: object) -> None:
    assert parse(text) == expected


def test_this_process_says_so_of_its_own_files() -> None:
    with Path("/proc/self/maps").open() as file:
        said = processes.parse_mount_id(Path(f"/proc/self/fdinfo/{file.fileno()}").read_text())
        mapped = processes.parse_mapped(file.read())
    rows = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    assert [row[4] for row in rows if int(row[0]) == said] == ["/proc"]
    assert mapped


def test_the_layers_of_an_overlay() -> None:
    options = "rw,lowerdir=/mnt/a/l:relative:/l2,upperdir=/up\\040per,workdir=/work,xino=off"
    assert list(processes.parse_layers(options)) == ["/mnt/a/l", "/l2", "/up per", "/work"]


HZ = os.sysconf("SC_CLK_TCK")
PID_FILE = "/etc/stunnel/microsoft/aznfs/nfsv4_fileShare/logs/stunnel_a.pid"
BEFORE = "S 1 1 1 0 -1 4194560 10 0 0 0"


def stat(number: int, ticks: tuple[int, int], name: str) -> str:
    return f"{number} ({name}) {BEFORE} {ticks[0]} {ticks[1]} 0 0 20 0\n"


def process(tree: Path, pid: int, ticks: tuple[int, int], name: str = "stunnel4 x) (") -> None:
    put(tree / f"proc/{pid}/stat", stat(pid, ticks, name))


def thread(tree: Path, pid: int, number: int, ticks: tuple[int, int], name: str = "stunnel4 x) (") -> None:
    put(tree / f"proc/{pid}/task/{number}/stat", stat(number, ticks, name))


def named(tree: Path, text: str) -> Root:
    put(tree / PID_FILE.lstrip("/"), text)
    put(tree / "proc/uptime", "2048.46 3711.12\n")
    return Root(str(tree))


def test_each_thread_of_the_process_that_the_file_names_has_its_time(tmp_path: Path) -> None:
    process(tmp_path, 70, (6 * HZ, HZ))
    thread(tmp_path, 70, 70, (HZ, 0))
    thread(tmp_path, 70, 74, (3 * HZ, HZ))
    thread(tmp_path, 71, 71, (9 * HZ, 0))
    expected = (2048.46, 7.0, {"70": 1.0, "74": 4.0})
    assert processes.read_tunnel_threads(named(tmp_path, "70\n"), PID_FILE) == expected


def test_the_work_of_efs_proxy_is_that_of_threads_with_other_names(tmp_path: Path) -> None:
    process(tmp_path, 70, (9 * HZ, 0), "efs-proxy")
    thread(tmp_path, 70, 70, (0, 0), "efs-proxy")
    thread(tmp_path, 70, 71, (9 * HZ, 0), "tokio-runtime-w")
    expected = (2048.46, 9.0, {"70": 0.0, "71": 9.0})
    assert processes.read_tunnel_threads(named(tmp_path, "70\n"), PID_FILE) == expected


def test_another_program_with_the_number_of_a_tunnel_that_ended_is_none(tmp_path: Path) -> None:
    process(tmp_path, 70, (HZ, 0), "cc1plus")
    thread(tmp_path, 70, 70, (HZ, 0))
    assert processes.read_tunnel_threads(named(tmp_path, "70\n"), PID_FILE) is None


def test_the_threads_that_were_there_at_both_looks_have_a_share() -> None:
    before = {"a": processes.TunnelThreads(100.0, 5.0, {"70": 1.0, "74": 4.0, "75": 0.0})}
    after = {"a": processes.TunnelThreads(110.0, 24.5, {"70": 1.5, "74": 13.0, "80": 10.0})}
    assert processes.tunnel_shares(before, after) == {"a": (0.9, 0.05)}
    for threads, shares in (({"74": 14.3}, (1.0,)), ({"99": 1.0}, ())):
        now = {"a": processes.TunnelThreads(110.0, 9.0, threads)}
        assert processes.tunnel_shares(before, now) == {"a": shares}
    assert processes.tunnel_shares(before, before) == {}
    assert processes.tunnel_shares({}, after) == processes.tunnel_shares(before, {}) == {}


@pytest.mark.parametrize("text", ["", "70", "70 (stunnel", "70 (stunnel)"])
def test_what_is_no_line_of_stat_has_neither_a_state_nor_a_time(text: str) -> None:
    assert (processes.parse_state(text)[1], processes.parse_processor_ticks(text)) == ("", None)
    for more in ("S 1 2", f"{BEFORE} 5 x", f"{BEFORE} 5 {'9' * 5000}"):
        assert processes.parse_processor_ticks(f"70 (stunnel) {more}") is None


NODES = "36 1 0:43 / /mnt/a rw - nfs4 nas:/a rw\n37 1 0:44 / /mnt/b rw - nfs4 nas:/b rw\n"


def waiting_process(root: Path, pid: int, name: str, states: str, **files: str) -> None:
    folder = root / f"proc/{pid}"
    (folder / "fdinfo").mkdir(parents=True)
    (folder / "mountinfo").write_text(NODES)
    for number, state in enumerate(states):
        put(folder / f"task/{pid + number}/stat", f"{pid + number} ({name}) {state} 1 1 1 0 -1\n")
    for number, mount_id in enumerate(files.get("opened", "").split()):
        (folder / f"fdinfo/{number}").write_text(f"pos:\t0\nflags:\t02\nmnt_id:\t{mount_id}\n")
    if "cwd" in files:
        (folder / "cwd").symlink_to(files["cwd"])


def test_a_program_that_waits_is_named_with_the_superblocks_that_it_has_files_of(tmp_path: Path) -> None:
    waiting_process(tmp_path, 900, "cp", "D", opened="36 37")
    waiting_process(tmp_path, 812, "a (b) c", "SD", cwd="/mnt/a/deep")
    waiting_process(tmp_path, 813, "bash", "S", cwd="/mnt/a")
    waiting_process(tmp_path, 814, "dd", "D", cwd="/home")
    (tmp_path / "proc/self").mkdir()
    found = processes.read_waiters(Root(str(tmp_path)), frozenset({"0:43", "0:44"}))
    assert found == {"0:43": ("a (b) c (812)", "cp (900)"), "0:44": ("cp (900)",)}
    assert processes.read_waiters(Root(str(tmp_path)), frozenset({"0:99"})) == {}


def test_of_a_process_that_has_just_ended_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "proc/7/task/7").mkdir(parents=True)
    assert processes.read_waiters(Root(str(tmp_path)), frozenset({"0:43"})) == {}


@pytest.mark.parametrize(
    ("arguments", "user", "runs"),
    [
        ("/usr/bin/python3|-sE|/usr/bin/nfstuned|daemon", 0, True),
        ("/usr/bin/python3|/usr/lib/nfstuned/__main__.py|daemon", 0, True),
        ("/usr/bin/nfstuned|daemon", 1000, False),
        ("/usr/bin/python3|/usr/bin/nfstuned|status", 0, False),
        ("/usr/bin/less|/var/log/nfstuned|daemon.log", 0, False),
        ("/opt/notnfstuned|daemon", 0, False),
    ],
)
def test_a_service_without_a_unit_is_a_process_of_roots(
    tmp_path: Path, arguments: str, user: int, *, runs: bool
) -> None:
    put(tmp_path / "proc/812/cmdline", arguments.replace("|", "\0") + "\0")
    put(tmp_path / "proc/812/status", f"Name:\tnfstuned\nUid:\t{user}\t{user}\t{user}\t{user}\n")
    put(tmp_path / "proc/self/cmdline", "/usr/bin/nfstuned\0daemon\0")
    put(tmp_path / "proc/self/status", "Uid:\t0\t0\t0\t0\n")
    assert processes.runs_service(Root(str(tmp_path))) is runs
