"""What bench reads of the machine beside a run: what its interfaces sent."""

from __future__ import annotations

from pathlib import Path

from nfstuned.host.bench.machine import observe_sent, uplinks
from nfstuned.host.root import Root


def interface(tree: Path, name: str, driver: str, sent: int) -> None:
    folder = tree / f"sys/class/net/{name}"
    (folder / "statistics").mkdir(parents=True)
    (folder / "device").mkdir()
    (folder / "device/driver").symlink_to(f"../../../bus/drivers/{driver}")
    (folder / "statistics/tx_bytes").write_text(f"{sent}\n")
    (folder / "statistics/rx_bytes").write_text("1\n")


def test_the_interfaces_of_a_vm_count_and_their_virtual_functions_do_not(tmp_path: Path) -> None:
    interface(tmp_path, "eth0", "hv_netvsc", 1000)
    interface(tmp_path, "eth1", "hv_netvsc", 20)
    interface(tmp_path, "enP1", "mlx5_core", 900)
    root = Root(str(tmp_path))
    assert uplinks(root) == ("eth0", "eth1")
    assert observe_sent(root, uplinks(root)) == 1020
    assert observe_sent(root, ("eth0", "gone")) is None
    assert observe_sent(root, ()) is None
