"""Rules NFS506 to NFS511: the interface that carries a mount, and the Azure VM around it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote

from nfstuned.core.policy.endpoint import AZURE_FILES, NETAPP, as_address
from nfstuned.model.facts import Facts, Interface, Route, Target
from nfstuned.model.finding import Fault

_SIZES = "https://learn.microsoft.com/azure/virtual-machines/sizes"


@dataclass(frozen=True, slots=True)
class VmSeries:
    """The "Max Network Bandwidth" column of one page, read 2026-11-20; it counts what the VM sends."""

    page: str
    pattern: str
    """The name of a size; {} stands for the number of CPUs."""
    mbit_per_s: tuple[tuple[int, int], ...]
    """CPUs, and millions of bits a second."""


@dataclass(frozen=True, slots=True)
class Egress:
    """How much one VM may send, on all of its interfaces together."""

    mbit_per_s: int
    page: str


_V4 = ((2, 5000), (4, 10000), (8, 12500), (16, 12500), (32, 16000), (48, 24000), (64, 30000))
_V5 = ((2, 12500), (4, 12500), (8, 12500), (16, 12500), (32, 16000), (48, 24000), (64, 30000), (96, 35000))
_V5E = (*_V5, (20, 12500))

_SERIES = (
    # The page gives 2000 for 8 and for 16 CPUs, as for 4: that does not fit the sizes above, and is left out.
    VmSeries(
        f"{_SIZES}/general-purpose/dsv3-series",
        "Standard_D{}s_v3",
        ((2, 1000), (4, 2000), (32, 16000), (48, 24000), (64, 30000)),
    ),
    VmSeries(f"{_SIZES}/general-purpose/dv4-series", "Standard_D{}_v4", _V4),
    VmSeries(f"{_SIZES}/general-purpose/dsv5-series", "Standard_D{}s_v5", _V5),
    VmSeries(f"{_SIZES}/general-purpose/ddsv5-series", "Standard_D{}ds_v5", _V5),
    VmSeries(f"{_SIZES}/memory-optimized/esv5-series", "Standard_E{}s_v5", _V5E),
    VmSeries(f"{_SIZES}/memory-optimized/esv5-series", "Standard_E{}is_v5", ((104, 100000),)),
    VmSeries(f"{_SIZES}/memory-optimized/edv5-series", "Standard_E{}d_v5", _V5E),
    VmSeries(f"{_SIZES}/memory-optimized/edv5-series", "Standard_E{}id_v5", ((104, 100000),)),
    VmSeries(f"{_SIZES}/memory-optimized/edsv5-series", "Standard_E{}ds_v5", _V5E),
    VmSeries(f"{_SIZES}/memory-optimized/edsv5-series", "Standard_E{}ids_v5", ((104, 100000),)),
)
_EGRESS = {
    series.pattern.format(cpus).lower(): Egress(mbit_per_s, series.page)
    for series in _SERIES
    for cpus, mbit_per_s in series.mbit_per_s
}
# D16s_v3, D2_v3, E64-16s_v3 (fewer CPUs), E64i_v3 (isolated), L8s_v2; not DC2s_v3, which is another family.
_OLD = re.compile(r"standard_(?:[de]\d+(?:-\d+)?i?s?_v3|l\d+s_v2)", re.IGNORECASE)


def egress(size: str) -> Egress | None:
    """Return how much a VM of this size may send; None where that is not known."""
    return _EGRESS.get(size.lower())


def is_old(size: str) -> bool:
    """Return whether a size is of the families E_v3, D_v3 or Lv2, which run on several chipsets."""
    return _OLD.fullmatch(size) is not None


NETVSC = "hv_netvsc"
FUNCTIONS = ("mlx4", "mlx5", "mana")
"""How the drivers of an Azure VM's virtual functions begin: mlx4_core, mlx5_core, mana."""
MTU = 1500
TRAFFIC_BYTES = 1 << 20
"""What an interface must carry before a VF that carried nothing counts. See docs/rules/NFS507.md."""
NEAR, MAINLY = 0.9, 0.5
"""Of a VM's limit, and of what it sends. See docs/rules/NFS510.md."""
_SHOWN = 3
_RESIZE = "az vm resize --resource-group GROUP --name VM --size SIZE"


@dataclass(frozen=True, slots=True)
class _Way:
    """An interface, and the mounts whose packets leave through it."""

    interface: Interface
    mounts: tuple[tuple[Target, Route], ...]

    @property
    def name(self) -> str:
        return self.interface.name

    @property
    def targets(self) -> tuple[Target, ...]:
        return tuple(target for target, _ in self.mounts)


def not_accelerated(facts: Facts) -> Iterator[Fault]:
    """Yield an Azure VM's interfaces that carry a mount without a virtual function."""
    for way in _ways(facts):
        if facts.snapshot.azure and way.interface.driver == NETVSC and not _functions(facts, way.name):
            yield Fault(
                way.name,
                f"{way.name} carries {_shown(way.targets)} without Accelerated Networking: every packet "
                "goes through the host's virtual switch, which costs latency, throughput and CPU time",
                observed=f"{NETVSC} alone",
                expected="an mlx4, mlx5 or mana interface under it",
                remedy="az network nic update --resource-group GROUP --name NIC "
                "--accelerated-networking true, with the VM deallocated; where Azure says that it is on, the "
                "guest lacks the driver: sudo modprobe -a mlx5_core mana",
            )


def not_carrying(facts: Facts) -> Iterator[Fault]:
    """Yield virtual functions that stood still while the interface above them carried traffic."""
    measured = facts.measured
    if measured is None or measured.seconds < 1:
        return
    carried = {traffic.interface: traffic.received + traffic.sent for traffic in measured.traffic}
    for way in _ways(facts):
        total = carried.get(way.name, 0)
        for function in _functions(facts, way.name):
            if total >= TRAFFIC_BYTES and carried.get(function.name) == 0:
                yield Fault(
                    function.name,
                    f"{function.name} stood still for {measured.seconds:g} s while {way.name} carried "
                    f"{total / 1e6:.1f} MB: Accelerated Networking is there and does not work",
                    observed="0 bytes",
                    expected=f"nearly all of what {way.name} carries",
                    remedy=f"sudo ip link set {quote(function.name)} up; then look at dmesg, and at the VM's "
                    "maintenance",
                )


def other_mtu(facts: Facts) -> Iterator[Fault]:
    """Yield interfaces with an MTU that Azure's storage does not have."""
    for way in _ways(facts):
        mtu = way.interface.mtu
        wrong = tuple(target for target, route in way.mounts if _misfits(facts, way.interface, target, route))
        if wrong:
            yield Fault(
                way.name,
                f"{way.name} has an MTU of {mtu} and carries {_shown(wrong)}: Azure's storage is reached "
                f"with {MTU}, and what differs is lost, split or wasted on the way",
                observed=str(mtu),
                expected=str(MTU),
                remedy=f"sudo ip link set {quote(way.name)} mtu {MTU}, and the same where the network is "
                f"configured; or a route to the storage with mtu {MTU}",
            )


def _misfits(facts: Facts, interface: Interface, target: Target, route: Route) -> bool:
    """Return whether packets to Azure's storage have another size than it has.

    A tunnel has a smaller MTU for a reason, and so may the links of other clouds. A larger one fits nowhere,
    nor does that of a bond, a bridge or a VLAN, which have no device of their own. Where a route says
    otherwise, or path MTU discovery did, that is what counts.
    """
    mtu = route.mtu or interface.mtu
    if mtu is None or interface.mtu is None or target.endpoint.provider not in (AZURE_FILES, NETAPP):
        return False
    meant = route.mtu is not None or interface.driver is None or not facts.snapshot.azure
    return mtu > MTU or (mtu < MTU and not meant)


def single_queue(facts: Facts) -> Iterator[Fault]:
    """Yield devices that receive for several CPUs on one queue."""
    cpus = facts.system.cpus
    if cpus is None or cpus < 2:  # noqa: PLR2004 - "more than one"
        return
    for way in _ways(facts):
        for device in _functions(facts, way.name) or (way.interface,):
            if device.driver is not None and device.rx_queues == 1 and not device.spread:
                yield Fault(
                    device.name,
                    f"{device.name} receives for {_shown(way.targets)} on one queue: one of {cpus} CPUs "
                    "takes every packet, and is full before the network is",
                    observed="1 RX queue",
                    expected=f"one a CPU, up to {cpus}",
                    remedy=_more_queues(device.name, cpus),
                )


def near_egress(facts: Facts) -> Iterator[Fault]:
    """Yield the interface that sends most where the VM, mainly by writes to NFS, sends all that it may."""
    measured, size = facts.measured, facts.network.vm_size
    limit = egress(size) if size else None
    if measured is None or limit is None or measured.seconds <= 0:
        return
    # A VF's bytes are in those of the interface above it; the limit is one for all of the VM's interfaces.
    uplinks = {interface.name for interface in facts.network.interfaces if interface.driver == NETVSC}
    sent = {traffic.interface: traffic.sent for traffic in measured.traffic if traffic.interface in uplinks}
    rate = _mbit(sum(sent.values()) / measured.seconds)
    writes = _mbit(sum(sample.server_write_bytes_per_s for sample in measured.samples))
    ways = [way.name for way in _ways(facts) if way.name in sent]
    if ways and rate >= NEAR * limit.mbit_per_s and writes >= MAINLY * rate:
        yield Fault(
            max(ways, key=lambda name: sent[name]),
            f"the VM sends {rate:,.0f} Mbit/s, {writes:,.0f} of them writes to NFS, and a {size} may send "
            f"{limit.mbit_per_s:,}: writes wait for the VM, not for the storage",
            observed=f"{rate:,.0f} Mbit/s",
            expected=f"below {NEAR * limit.mbit_per_s:,.0f} Mbit/s",
            remedy=f"{_RESIZE}, with a larger size; or the writers on several VMs; reads do not count",
            source=limit.page,
        )


def _mbit(bytes_per_s: float) -> float:
    return bytes_per_s * 8 / 1e6


def old_size(facts: Facts) -> Iterator[Fault]:
    """Yield a VM size whose hosts differ in chipset and NUMA layout."""
    size = facts.network.vm_size
    if size and is_old(size) and facts.nfs:
        yield Fault(
            size,
            f"this VM is a {size}: its family runs on several chipsets, and on some of them NFS is slow when "
            "the interface's interrupts are on the wrong NUMA node",
            observed=size,
            expected="v4 or later (of L: Lsv3)",
            remedy=f"{_RESIZE}, with the same size of a later version",
        )


def _ways(facts: Facts) -> Iterator[_Way]:
    """Yield the interfaces that carry mounts, in the order of their names; never this host's own loopback."""
    routes = {route.address: route for route in facts.network.routes if not route.local}
    found: dict[str, list[tuple[Target, Route]]] = {}
    for target in facts.targets:
        route = next((routes[address] for address in _addresses(facts, target) if address in routes), None)
        if route is not None:
            found.setdefault(route.interface, []).append((target, route))
    for name, pairs in sorted(found.items()):
        interface = facts.interface(name)
        if interface is not None:
            yield _Way(interface, tuple(pairs))


def _addresses(facts: Facts, target: Target) -> tuple[str, ...]:
    """Return where the mount's packets go, or would go."""
    place = target.endpoint
    if place.address:
        return (place.address,)
    if as_address(place.host):
        return (place.host,)
    answer = facts.answer(place.host)
    return answer.addresses if answer else ()


def _shown(targets: tuple[Target, ...]) -> str:
    """Return mounts for people, the first few of many."""
    shown = ", ".join(target.subject for target in targets[:_SHOWN])
    more = len(targets) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _functions(facts: Facts, name: str) -> tuple[Interface, ...]:
    """Return the virtual functions under an interface."""
    return tuple(
        interface
        for interface in facts.network.interfaces
        if interface.master == name
        and interface.driver is not None
        and interface.driver.startswith(FUNCTIONS)
    )


def _more_queues(name: str, cpus: int) -> str:
    return (
        f"sudo ethtool -L {quote(name)} combined {cpus}, or as many as ethtool -l {quote(name)} shows; where "
        "the device has one queue only, give the VM more, or spread its packets: write a mask of CPUs to "
        f"/sys/class/net/{name}/queues/rx-0/rps_cpus"
    )
