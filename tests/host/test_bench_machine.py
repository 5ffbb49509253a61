"""What bench reads of the machine beside a run: what its interfaces sent, what a tunnel took."""

from __future__ import annotations

import os
from pathlib import Path

from nfstuned.host.bench.machine import observe_processor_s, observe_sent, processes_with, uplinks
from nfstuned.host.root import Root

HZ = os.sysconf("SC_CLK_TCK")
CONFIGURATION = "/etc/stunnel/microsoft/aznfs/nfsv4_fileShare/stunnel_a.conf"


def interface(tree: Path, name: str, driver: str, sent: int) -> None:
    folder = tree / f"sys/class/net/{name}"
    (folder / "statistics").mkdir(parents=True)
    (folder / "device").mkdir()
    (folder / "device/driver").symlink_to(f"../../../bus/drivers/{driver}")
    (folder / "statistics/tx_bytes").write_text(f"{sent}\n")
    (folder / "statistics/rx_bytes").write_text("1\n")


def process(tree: Path, pid: int, argv: list[str], ticks: tuple[int, int]) -> None:
    folder = tree / f"proc/{pid}"
    folder.mkdir(parents=True)
    (folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in argv))
    before = "S 1 1 1 0 -1 4194560 10 0 0 0"
    (folder / "stat").write_text(f"{pid} (stunnel) x) {before} {ticks[0]} {ticks[1]} 0 0 20 0\n")


def test_the_interfaces_of_a_vm_count_and_their_virtual_functions_do_not(tmp_path: Path) -> None:
    interface(tmp_path, "eth0", "hv_netvsc", 1000)
    interface(tmp_path, "eth1", "hv_netvsc", 20)
    interface(tmp_path, "enP1", "mlx5_core", 900)
    root = Root(str(tmp_path))
    assert uplinks(root) == ("eth0", "eth1")
    assert observe_sent(root, uplinks(root)) == 1020
    assert observe_sent(root, ("eth0", "gone")) is None
    assert observe_sent(root, ()) is None


def test_a_tunnel_is_known_by_its_configuration_and_its_time_is_that_of_all_its_threads(
    tmp_path: Path,
) -> None:
    process(tmp_path, 70, ["/usr/bin/stunnel", CONFIGURATION], (3 * HZ, HZ))
    process(tmp_path, 71, ["/usr/bin/stunnel", CONFIGURATION + ".other"], (HZ, HZ))
    root = Root(str(tmp_path))
    assert processes_with(root, CONFIGURATION) == (70,)
    assert observe_processor_s(root, (70,)) == 4.0
    assert observe_processor_s(root, (70, 99)) is None
    assert observe_processor_s(root, ()) is None
