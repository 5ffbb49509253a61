"""The processor time of a tunnel's threads: from a /proc of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nfstuned.host.root import Root
from nfstuned.model.system import TunnelService
from nfstuned.parse.proc.processes import (
    TunnelThreads,
    parse_processor_ticks,
    parse_uptime,
    read_tunnel_threads,
    read_tunnels,
    tunnel_shares,
)

HZ = os.sysconf("SC_CLK_TCK")
PID_FILE = "/etc/stunnel/microsoft/aznfs/nfsv4_fileShare/logs/stunnel_a.pid"
BEFORE = "S 1 1 1 0 -1 4194560 10 0 0 0"


def stat(number: int, ticks: tuple[int, int], name: str) -> str:
    return f"{number} ({name}) {BEFORE} {ticks[0]} {ticks[1]} 0 0 20 0\n"


def process(tree: Path, pid: int, ticks: tuple[int, int], name: str = "stunnel4 x) (") -> None:
    folder = tree / f"proc/{pid}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stat").write_text(stat(pid, ticks, name))


def thread(tree: Path, pid: int, number: int, ticks: tuple[int, int], name: str = "stunnel4 x) (") -> None:
    folder = tree / f"proc/{pid}/task/{number}"
    folder.mkdir(parents=True)
    (folder / "stat").write_text(stat(number, ticks, name))


def named(tree: Path, text: str) -> Root:
    (tree / PID_FILE.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
    (tree / PID_FILE.lstrip("/")).write_text(text)
    (tree / "proc").mkdir(exist_ok=True)
    (tree / "proc/uptime").write_text("2048.46 3711.12\n")
    return Root(str(tree))


def test_each_thread_of_the_process_that_the_file_names_has_its_time(tmp_path: Path) -> None:
    process(tmp_path, 70, (6 * HZ, HZ))
    thread(tmp_path, 70, 70, (HZ, 0))
    thread(tmp_path, 70, 74, (3 * HZ, HZ))
    thread(tmp_path, 71, 71, (9 * HZ, 0))
    expected = (2048.46, 7.0, {"70": 1.0, "74": 4.0})
    assert read_tunnel_threads(named(tmp_path, "70\n"), PID_FILE) == expected


def test_the_work_of_efs_proxy_is_that_of_threads_with_other_names(tmp_path: Path) -> None:
    process(tmp_path, 70, (9 * HZ, 0), "efs-proxy")
    thread(tmp_path, 70, 70, (0, 0), "efs-proxy")
    thread(tmp_path, 70, 71, (9 * HZ, 0), "tokio-runtime-w")
    assert read_tunnel_threads(named(tmp_path, "70\n"), PID_FILE) == (2048.46, 9.0, {"70": 0.0, "71": 9.0})


def test_another_program_with_the_number_of_a_tunnel_that_ended_is_none(tmp_path: Path) -> None:
    process(tmp_path, 70, (HZ, 0), "cc1plus")
    thread(tmp_path, 70, 70, (HZ, 0))
    assert read_tunnel_threads(named(tmp_path, "70\n"), PID_FILE) is None


@pytest.mark.parametrize("text", ["", "x", "-1", "../1", "99", "70 71"])
def test_a_file_without_the_number_of_a_process_names_none(text: str, tmp_path: Path) -> None:
    process(tmp_path, 70, (HZ, 0))
    assert read_tunnel_threads(named(tmp_path, text), PID_FILE) is None


def test_a_tunnel_without_such_a_file_has_no_threads(tmp_path: Path) -> None:
    assert read_tunnel_threads(Root(str(tmp_path)), "") is None
    assert read_tunnel_threads(Root(str(tmp_path)), PID_FILE) is None


def test_the_threads_that_were_there_at_both_looks_have_a_share() -> None:
    before = {"a": TunnelThreads(100.0, 5.0, {"70": 1.0, "74": 4.0, "75": 0.0})}
    after = {"a": TunnelThreads(110.0, 24.5, {"70": 1.5, "74": 13.0, "80": 10.0})}
    assert tunnel_shares(before, after) == {"a": (0.9, 0.05)}
    assert tunnel_shares(before, {"a": TunnelThreads(110.0, 9.0, {"74": 14.3})}) == {"a": (1.0,)}
    assert tunnel_shares(before, {"a": TunnelThreads(110.0, 9.0, {"99": 1.0})}) == {"a": ()}
    assert tunnel_shares(before, before) == {}
    assert tunnel_shares({}, after) == tunnel_shares(before, {}) == {}


def test_a_tunnel_without_a_process_is_left_out(tmp_path: Path) -> None:
    process(tmp_path, 70, (HZ, 0))
    root = named(tmp_path, "70\n")
    services = [
        TunnelService(file, 1, "127.0.0.1:20049", 20049, "10.0.0.4", pid_file=pid_file)
        for file, pid_file in (("a.conf", PID_FILE), ("b.conf", "/run/gone.pid"), ("c.conf", ""))
    ]
    assert read_tunnels(root, services) == {"a.conf": TunnelThreads(2048.46, 1.0, {})}


def test_without_the_clock_nothing_is_known(tmp_path: Path) -> None:
    process(tmp_path, 70, (HZ, 0))
    root = named(tmp_path, "70")
    (tmp_path / "proc/uptime").write_text("soon")
    assert parse_uptime("soon") is None
    assert read_tunnel_threads(root, PID_FILE) is None


@pytest.mark.parametrize("text", ["", "70 (stunnel", "70 (stunnel) S 1 2", f"70 (stunnel) {BEFORE} 5 x"])
def test_what_is_no_line_of_stat_has_no_time(text: str) -> None:
    assert parse_processor_ticks(text) is None
