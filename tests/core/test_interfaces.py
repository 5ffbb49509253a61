from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from nfstuned.core.rules.catalogue import RULES
from nfstuned.core.rules.nfs5_host import egress, has_old_chipset, refused_number, setting_mistake
from nfstuned.model.facts import Facts, Fault, Measured, Need, Target, Traffic
from nfstuned.model.kernel import Mount, Options
from nfstuned.model.mounts import Endpoint, Snapshot
from nfstuned.model.policy import Policy, Profile
from nfstuned.model.system import Answer, Interface, KernelSetting, Network, Route, System
from tests.parse.test_samples import SAMPLE

ADDRESS = "10.10.10.10"
ETH0 = Interface("eth0", driver="hv_netvsc", mtu=1500, rx_queues=8)
VF = Interface("enP1", driver="mlx5_core", master="eth0", mtu=1500, rx_queues=8)
OTHERS = (Interface("lo", mtu=65536, rx_queues=1), Interface("docker0", mtu=1400))
MIB = 1 << 20


def target(
    point: str = "/mnt/a", address: str | None = ADDRESS, provider: str = "azure-files", fstype: str = "nfs4"
) -> Target:
    place = Endpoint("sa1.file.core.windows.net", address, 2049, provider)
    return Target(point, point, "sa1.file.core.windows.net:/sa1/a", fstype, place, Profile("azure-files"))


@dataclass(frozen=True)
class Host:
    """A host of one mount through eth0, as far as these rules look."""

    interfaces: tuple[Interface, ...] = (ETH0, VF)
    targets: tuple[Target, ...] = (target(),)
    routes: tuple[Route, ...] = (Route(ADDRESS, "eth0"),)
    answers: tuple[Answer, ...] = ()
    azure: bool = True
    cpus: int | None = 8
    size: str | None = None
    seconds: float = 10
    traffic: tuple[Traffic, ...] = ()
    write_bytes_per_s: float = 1e9

    def faults(self, rule: str) -> list[Fault]:
        interfaces = (*self.interfaces, *OTHERS)
        sample = replace(SAMPLE, server_write_bytes_per_s=self.write_bytes_per_s)
        facts = Facts(
            has=frozenset(Need),
            snapshot=Snapshot(azure=self.azure),
            policy=Policy(()),
            targets=self.targets,
            network=Network(self.answers, (), self.routes, interfaces, self.size),
            system=System(cpus=self.cpus),
            measured=Measured(self.seconds, (sample,), traffic=self.traffic),
        )
        (judge,) = (one.judge for one in RULES if one.id == rule)
        return list(judge(facts))

    def subjects(self, rule: str) -> list[str]:
        return [fault.subject for fault in self.faults(rule)]


def device(name: str, driver: str | None = "virtio_net", mtu: int = 1500, queues: int = 8) -> Interface:
    return Interface(name, driver=driver, mtu=mtu, rx_queues=queues)


class TestAcceleratedNetworking:
    def test_an_interface_without_a_virtual_function_is_named_once_for_all_its_mounts(self) -> None:
        five = tuple(target(f"/mnt/{name}") for name in "abcde")
        (fault,) = Host((ETH0,), five).faults("NFS506")
        assert fault.subject == "eth0"
        assert "/mnt/a, /mnt/b, /mnt/c and 2 more" in fault.message

    def test_a_mount_of_another_namespace_may_go_by_another_interface(self) -> None:
        mount = Mount(40, 25, "0:43", "/", "/mnt/b", "nfs4", "nas:/b", Options(), foreign=True)
        away = replace(target("/mnt/b"), live=mount)
        assert Host((ETH0,), (away,)).subjects("NFS506") == []
        (fault,) = Host((ETH0,), (target(), away)).faults("NFS506")
        assert "/mnt/b" not in fault.message

    def test_a_mount_that_only_a_file_asks_for_is_found_by_its_name(self) -> None:
        answers = (Answer("sa1.file.core.windows.net", ("10.9.9.9", ADDRESS)),)
        planned = (target("/etc/fstab:3", address=None),)
        assert Host((ETH0,), planned, answers=answers).subjects("NFS506") == ["eth0"]
        assert not Host((ETH0,), planned).faults("NFS506")


def of_mtu(mtu: int, route: int | None = None, *, azure: bool = True) -> Host:
    return Host((device("eth0", mtu=mtu),), routes=(Route(ADDRESS, "eth0", mtu=route),), azure=azure)


def of_queues(queues: int, cpus: int | None = 8, driver: str | None = "virtio_net") -> Host:
    return Host((device("eth0", driver, queues=queues),), cpus=cpus)


def sending(sent: int, size: str | None = "Standard_D16_v4", writes: float = 1e9) -> Host:
    traffic = (Traffic("eth0", 0, sent), Traffic("enP1", 0, sent))
    return Host(size=size, traffic=traffic, write_bytes_per_s=writes)


STILL = (Traffic("eth0", MIB, 0), Traffic("enP1", 0, 0))
BOND = (Route(ADDRESS, "bond0.7"),)
FOREIGN = (target(provider="generic"), target("/mnt/b", "10.0.0.9", provider="aws-efs"))
TO_FOREIGN = (Route(ADDRESS, "eth0"), Route("10.0.0.9", "eth0"))
MANA = Interface("enP1", "mana", "eth0", rx_queues=16)
NEAR = 14_062_500_000
"""Nine tenths of the limit of a D16_v4 over ten seconds."""


@pytest.mark.parametrize(
    ("rule", "host", "found"),
    [
        # Any of Azure's virtual functions will do.
        *[
            ("NFS506", Host((ETH0, Interface("enP1", driver=driver, master="eth0"))), "")
            for driver in ("mlx4_core", "mlx4_en", "mlx5_core", "mana")
        ],
        # One that stands still is named, but not by little traffic, without a counter or within a second.
        ("NFS507", Host(traffic=STILL), "enP1"),
        ("NFS507", Host(traffic=(Traffic("eth0", MIB - 1, 0), STILL[1])), ""),
        ("NFS507", Host(traffic=(Traffic("eth0", MIB, MIB), Traffic("enP1", 0, 60))), ""),
        *[("NFS507", Host(traffic=one), "") for one in ((Traffic("eth0", MIB, MIB),), STILL[1:], ())],
        ("NFS507", Host(seconds=0.9, traffic=STILL), ""),
        # 1500 fits, and off Azure less does too; a route's MTU comes first.
        *(("NFS508", of_mtu(1500), ""), ("NFS508", of_mtu(1501), "eth0"), ("NFS508", of_mtu(1499), "eth0")),
        *(("NFS508", of_mtu(9000, azure=False), "eth0"), ("NFS508", of_mtu(1460, azure=False), "")),
        *(("NFS508", of_mtu(9000, 1400), ""), ("NFS508", of_mtu(9000, 1500), "")),
        ("NFS508", of_mtu(9000, 3900), "eth0"),
        # Only Azure's storage has a size of its own, and an interface without a device can only be too large.
        ("NFS508", Host((device("eth0", mtu=9001),), FOREIGN, TO_FOREIGN), ""),
        *[("NFS508", Host((device("bond0.7", None, mtu), ETH0), routes=BOND), "") for mtu in (1400, 1500)],
        ("NFS508", Host((device("bond0.7", None, 9000), ETH0), routes=BOND), "bond0.7"),
        # One queue is too few for several CPUs, but not where packets are steered or there is no device.
        *(("NFS509", of_queues(1, 2), "eth0"), ("NFS509", of_queues(1, 1), "")),
        *(("NFS509", of_queues(2), ""), ("NFS509", of_queues(1, None), "")),
        ("NFS509", Host((device("eth0", queues=1)._replace(spread=True),)), ""),
        ("NFS509", of_queues(1, driver=None), ""),
        # The virtual function is judged in place of the interface above it.
        ("NFS509", Host((device("eth0", "hv_netvsc", queues=1), MANA)), ""),
        ("NFS509", Host((ETH0, MANA._replace(rx_queues=1))), "enP1"),
        # Most sent bytes must be writes to NFS, and the size must have a known limit.
        *(("NFS510", sending(NEAR), "eth0"), ("NFS510", sending(NEAR - 1), "")),
        *(
            ("NFS510", sending(NEAR, writes=703_125_000), "eth0"),
            ("NFS510", sending(NEAR, writes=703_124_999), ""),
        ),
        *[("NFS510", sending(10**12, size), "") for size in (None, "Standard_M416ms_v2", "Standard_D16s_v3")],
    ],
)
def test_an_interface_is_named_at_its_threshold(rule: str, host: Host, found: str) -> None:
    assert host.subjects(rule) == ([found] if found else [])


class TestVirtualFunctionCarries:
    @pytest.mark.parametrize("azure", [True, False])
    def test_the_waiting_port_of_a_bond_is_no_virtual_function(self, *, azure: bool) -> None:
        bond = Interface("bond0", mtu=1500, rx_queues=16)
        ports = tuple(Interface(name, "mlx5_core", "bond0", 1500, 8) for name in ("ens1", "ens2"))
        traffic = (Traffic("bond0", MIB, MIB), Traffic("ens1", MIB, MIB), Traffic("ens2", 0, 0))
        host = Host((bond, *ports), routes=(Route(ADDRESS, "bond0"),), azure=azure, traffic=traffic)
        assert not host.faults("NFS507")


class TestMtu:
    def test_where_the_route_is_wrong_its_mtu_is_named(self) -> None:
        (fault,) = Host((device("eth0"),), routes=(Route(ADDRESS, "eth0", mtu=9000),)).faults("NFS508")
        assert (fault.subject, fault.observed) == ("eth0", "9000")
        assert "the route to 10.10.10.10 through eth0 has an MTU of 9000" in fault.message
        assert "ip link set" not in fault.remedy


class TestEgress:
    def test_all_interfaces_share_one_limit(self) -> None:
        eth1 = Interface("eth1", driver="hv_netvsc")
        traffic = (Traffic("eth0", 0, 7_000_000_000), Traffic("eth1", 0, 8_000_000_000))
        (fault,) = Host((ETH0, VF, eth1), size="standard_d16_v4", traffic=traffic).faults("NFS510")
        assert (fault.subject, fault.observed) == ("eth0", "12,000 Mbit/s")
        assert "dv4-series" in fault.source


OLD = """
    Standard_D2_v3 Standard_D16s_v3 Standard_E16s_v3 Standard_E64-16s_v3 Standard_E64i_v3 Standard_E64is_v3
    Standard_L8s_v2 STANDARD_L80S_V2
"""
OTHERS_OF_AZURE = """
    Standard_D16s_v4 Standard_E16_v5 Standard_DC2s_v3 Standard_D2_v2 Standard_D3_v2 Standard_L8s_v3
    Standard_L8s Standard_NV12s_v3 Standard_E16s_v3x
"""


class TestSizes:
    @pytest.mark.parametrize("size", OLD.split())
    def test_families_with_chipsets_that_need_the_right_numa_node_are_old(self, size: str) -> None:
        (fault,) = Host(size=size).faults("NFS511")
        assert fault.subject == size
        assert ("every host" in fault.message) is ("_L" in size)

    def test_others_are_not(self) -> None:
        assert not [size for size in OTHERS_OF_AZURE.split() if has_old_chipset(size)]

    @pytest.mark.parametrize(
        ("size", "mbit_per_s"),
        [
            *(("Standard_D16_v4", 12500), ("Standard_D32s_v3", 16000), ("Standard_E32s_v5", 16000)),
            *(("Standard_D32ds_v5", 16000), ("Standard_E104id_v5", 100000)),
        ],
    )
    def test_the_published_limits(self, size: str, mbit_per_s: int) -> None:
        limit = egress(size)
        assert limit is not None
        assert limit.mbit_per_s == mbit_per_s


SLOTS, NUMBERS = "tcp_max_slot_table_entries", "write a number from 2 to 65536 for"
OF_MODULE = "write options nfs max_session_slots instead of {}"
TO_MODPROBE = "into a file of /etc/modprobe.d instead of max_session_slots"


@pytest.mark.parametrize(
    ("folder", "name", "value", "remedy"),
    [
        ("modprobe", "", '"options nfs a=1"', "write options nfs a=1"),
        ("modprobe", "", "nfs a=1", "write options before the name of the module"),
        ("modprobe", "", "options sunrpc.a=1", "write options sunrpc a=1 instead of it"),
        ("modprobe", "nfs.max_session_slot", "1", OF_MODULE),
        ("modprobe", "nfs.ko.max_session_slots", "1", OF_MODULE),
        ("modprobe", "nfsv4.max_session_slots", "1", OF_MODULE),
        ("modprobe", f"sunrpc.udp{SLOTS[3:]}", "9", f"write options sunrpc udp{SLOTS[7:]} instead of {{}}"),
        ("sysctl", "sunrpc.max_tcp_slot_table_entries", "9", f"write sunrpc.{SLOTS} instead of {{}}"),
        ("sysctl", "nfs.max_session_slots", "9", f"write options nfs max_session_slots=9 {TO_MODPROBE}"),
        (
            *("modprobe", "sunrpc.tcp_fin_timeout", "9"),
            "write sunrpc.tcp_fin_timeout=9 into a file of /etc/sysctl.d instead of tcp_fin_timeout",
        ),
        ("modprobe", "nfs.hard", "", "put mount options into the lines of mounts, not"),
        ("modprobe", "nfs.turbo", "1", "remove turbo"),
        *(("modprobe", f"sunrpc.{SLOTS}", value, f"{NUMBERS} {SLOTS}") for value in ("65537", "many")),
        ("sysctl", f"sunrpc.{SLOTS}", "1", f"{NUMBERS} {SLOTS}"),
        *(("modprobe", f"sunrpc.{SLOTS}", value, "") for value in ('"65536"', "0x80")),
        *(("modprobe", "nfs.nfs4_unique_id", "host", ""), ("modprobe", "iwlwifi.power_save", "0", "")),
        *(("sysctl", "fs.nfs.nlm_tcpport", "4045", ""), ("sysctl", "sunrpc.svc_rdma.max_requests", "64", "")),
    ],
)
def test_a_useless_setting_leads_to_the_right_one(folder: str, name: str, value: str, remedy: str) -> None:
    setting = KernelSetting(name, value, f"/etc/{folder}.d/a.conf", 1)
    mistake = setting_mistake(setting) or refused_number(setting)
    group, _, last = name.rpartition(".")
    shown = name if folder == "sysctl" else f"options {group} {last}"
    assert (mistake[1] if mistake else "") == remedy.format(shown)
