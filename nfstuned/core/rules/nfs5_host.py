"""Rules NFS5xx: the kernel and its parameters, the mount helpers, the interface of a mount, the VM."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from typing import NamedTuple

from nfstuned import data
from nfstuned.core.mounts.options import el8_build, option_names
from nfstuned.core.policy.endpoint import as_address
from nfstuned.core.rules.rule import (
    ADVICE,
    ERROR,
    HOST,
    INFO,
    KERNEL,
    LIVE,
    NETWORK,
    SAMPLE,
    WARNING,
    Manual,
    ParameterWish,
    by_sysctl,
    mount_all_again,
    parameter,
    permanent_setting,
    rule,
    systemctl,
)
from nfstuned.model.facts import Facts, Fault, Need, Target
from nfstuned.model.mounts import AZURE_FILES, EFS_TYPE
from nfstuned.model.system import Interface, KernelSetting, Route
from nfstuned.parse.fields import quote, quoted, some, sudo

_KERNEL = "kernel"
_READDIR_BROKEN, _READDIR_MENDED = (5, 11, 0), (5, 12, 5)
_EL84, _EL86 = 305, 372
"""The builds of RHEL 8.4's and 8.6's kernel 4.18.0."""
_IO_DEPTH_SINCE = (5, 0, 0)
"""The first kernel on which the vendor supports an I/O depth above one."""
_MANY_INODES = 1_000_000
"""The number of files in the directory that the vendor's page measures."""
_PACKAGES = {
    "mount.nfs": "nfs-common (Debian, Ubuntu), nfs-utils (RHEL) or nfs-client (SUSE)",
    "mount.aznfs": "aznfs from packages.microsoft.com",
    "mount.efs": "amazon-efs-utils",
    "mount.cifs": "cifs-utils",
    "mount.smb3": "cifs-utils (6.10 or later, or write the type cifs)",
    "cachefilesd": "cachefilesd, and enable its service (RUN=yes of its defaults on Debian)",
    "tlshd": "ktls-utils, and enable tlshd.service",
}
_NFS_PACKAGES = {
    **dict.fromkeys(("debian", "ubuntu"), "nfs-common"),
    **dict.fromkeys(("rhel", "fedora", "centos", "amzn", "azurelinux", "mariner"), "nfs-utils"),
    **dict.fromkeys(("arch", "alpine"), "nfs-utils"),
    **dict.fromkeys(("sles", "suse"), "nfs-client"),
}
"""The package with mount.nfs, by os-release's ID or ID_LIKE."""
_IDMAPPING_FILE = "/sys/module/nfs/parameters/nfs4_disable_idmapping"
_FALSE = frozenset({"n", "no", "0", "f", "false", "off"})
_SETTINGS = "kernel-settings.toml"
_QUOTES = "\"'\u2018\u2019\u201c\u201d"
_NEAR = 0.85
"""How alike a misspelt name of a parameter is to the right one, at least: as difflib measures it."""
_NOT_LOADED = "does not load with it, and no NFS can be mounted, unless the kernel has it built in"
_TRANSPORTS = {"tcp", "udp", "rdma"}
_RUNS_SYSCTL = r"(?m)^[ \t]*[^#\s].*\b(?:sunrpc|rpcrdma|lockd|nfs(?:d|v[34])?)\b.*sysctl"
"""In a rule of udev, such as those of nfs-utils' 60-nfs.rules."""


@rule("NFS501", "kernel-readdir-hang", ERROR, source=Manual.TROUBLE)
def readdir_hang(facts: Facts) -> Iterator[Fault | Need]:
    """Yield a kernel with an NFS client that hangs while it lists large directories."""
    kernel = facts.snapshot.kernel
    if not facts.nfs:
        return
    if kernel is None:
        yield from facts.lacks(KERNEL)
    elif _READDIR_BROKEN <= kernel.version < _READDIR_MENDED or el8_build(kernel) == _EL84:
        yield Fault(
            _KERNEL,
            f"{kernel.text} has an NFS client that hangs while it lists a large directory (Linux 5.11 to "
            "5.12.4, and RHEL 8.4 with the same change)",
            observed=kernel.text,
            expected="5.12.5 or later, not RHEL 8.4's",
            remedy="install a later kernel" + (" and boot it" if facts.running else ""),
        )


@rule("NFS502", "helper-missing", ERROR, needs=(HOST,), source=Manual.TROUBLE)
def missing_helper(facts: Facts) -> Iterator[Fault]:
    """Yield the mount helpers that a mount or a line of a file needs and that the host does not have.

    The kernel hands the TLS handshakes of xprtsec to tlshd, and the mount fails without it. Mounts of other
    namespaces may have been made with helpers of their own. On a host the cache of fsc, and rpc.statd,
    may be a container's. The kernel mounts SMB shares of a server's address without a helper.
    """
    needed: dict[str, str] = {}
    system = facts.snapshot.distribution
    names = (system.id, *system.like) if system else ()
    of_nfs = next((_NFS_PACKAGES[name] for name in names if name in _NFS_PACKAGES), _PACKAGES["mount.nfs"])
    packages = {**_PACKAGES, **dict.fromkeys(("mount.nfs", "rpc.statd"), of_nfs)}
    for target in facts.targets:
        if target.elsewhere:
            continue
        if target.is_smb and target.live is None and as_address(target.endpoint.host) is None:
            needed.setdefault(f"mount.{target.fstype}", target.origin)
        if not (target.is_nfs or target.fstype == EFS_TYPE):
            continue
        helper = f"mount.{target.request.fstype}" if target.request else ""
        wanted = {
            helper if helper in packages else "mount.nfs": True,
            "mount.nfs": True,
            "tlshd": target.options.get("xprtsec") in {"tls", "mtls"},
            "cachefilesd": facts.image and target.wanted.last_of("fsc", "nofsc") == "fsc",
            "rpc.statd": facts.image and "mount.nfs" in facts.system.helpers and _wants_statd(target),
        }
        for name in (name for name, is_wanted in wanted.items() if is_wanted):
            needed.setdefault(name, target.subject if target.live else target.origin)
    for helper, place in needed.items():
        if helper not in facts.system.helpers:
            caches = helper == "cachefilesd"
            effect = f"fsc of {place} caches nothing" if caches else f"{place} cannot be mounted"
            yield Fault(
                helper,
                f"there is no {helper}, and {effect} without it",
                observed="missing",
                expected=f"{'' if helper.startswith('mount.') else '/usr'}/sbin/{helper}",
                remedy=f"install the package {packages[helper]}{' in the image' if facts.image else ''}",
                severity=WARNING if caches else None,
            )
    if facts.system.rpcbind_masked:
        yield from _without_rpcbind(facts)


def _wants_statd(target: Target) -> bool:
    """Whether mount.nfs refuses a line without rpc.statd: it wants that for the locks of version 3.

    See nfs_verify_lock_option() in utils/mount/stropts.c. mount.aznfs adds nolock itself.
    """
    options, request = target.options, target.request
    local = options.last_of("lock", "nolock") == "nolock" or "local_lock" in options
    asked = target.live is None and request is not None and request.fstype != "aznfs"
    return asked and target.is_v3 and not local


def _without_rpcbind(facts: Facts) -> Iterator[Fault]:
    """Yield the first line that mount.nfs refuses, as rpc.statd does not start where rpcbind is masked."""
    for target in filter(_wants_statd, facts.targets):
        yield Fault(
            "rpcbind",
            "rpcbind.service and rpcbind.socket are masked, so rpc.statd does not start: mount.nfs refuses "
            f"{target.origin}, as version 3 needs it for locks on the server",
            observed="masked",
            expected="rpcbind.socket",
            remedy=f"{systemctl(facts)} unmask rpcbind.service && {systemctl(facts)} unmask rpcbind.socket; "
            f"or add nolock to the options in {target.origin}, if no other host locks files",
        )
        return


@rule("NFS503", "idmapping-enabled", WARNING, needs=(HOST,), source=Manual.TROUBLE)
def id_mapping(facts: Facts) -> Iterator[Fault]:
    """Yield the NFS module's parameter that maps ids to names, where an Azure file share is used."""
    name = "nfs.nfs4_disable_idmapping"
    setting = parameter(facts, name)
    if setting is None or _maps_nothing(setting[0]) or not facts.azure_files:
        return
    value, place = setting
    wish = ParameterWish(name, "Y", _maps_nothing, "nfs-idmapping.conf")
    remount = mount_all_again(facts.azure_files, "unmount and mount again")
    live = "" if facts.image else f"for now: echo Y | sudo tee {_IDMAPPING_FILE}, then {remount}"
    yield Fault(
        name,
        f"{place} says {value}: the client sends names instead of numbers as owners, and Azure Files does "
        'not know names: it answers chgrp and chown with "Invalid argument"',
        observed=value,
        expected="Y",
        remedy="; ".join(filter(None, (permanent_setting(facts, wish), live))),
    )


def _maps_nothing(value: str) -> bool:
    return value.lower() not in _FALSE


@rule("NFS512", "kernel-setting-ineffective", WARNING, needs=(HOST,), source="modprobe.d(5), sysctl.d(5)")
def ineffective_settings(facts: Facts) -> Iterator[Fault]:
    """Yield lines of modprobe.d and sysctl.d that set nothing of the NFS client, or keep a module away."""
    unread = {each.file: each for each in facts.system.unread_settings if _known_names(each) is not None}
    for file, setting in unread.items():
        name, program = file.rpartition("/")[2], "sysctl" if by_sysctl(setting) else "modprobe"
        yield Fault(
            file,
            f"{program} reads only files with names in .conf, and ignores {setting.name}={setting.value} "
            f"in {name}",
            observed=name,
            expected=f"{name}.conf",
            remedy=sudo("mv -n", file, f"{file}.conf", folder=facts.folder),
        )
    mistakes: dict[str, list[tuple[str, str]]] = {}
    for setting in facts.system.settings:
        mistake = setting_mistake(setting) if setting.name not in facts.system.parameters else None
        if mistake or (mistake := refused_number(setting)):
            mistakes.setdefault(f"{setting.file}:{setting.line}", []).append(mistake)
    for place, pairs in mistakes.items():
        whys, remedies = (tuple(dict.fromkeys(texts)) for texts in zip(*pairs, strict=True))
        yield Fault(
            place,
            "; ".join(whys),
            observed="no effect",
            expected="parameters of the kernel",
            remedy=f"{', and '.join(remedies)} in {place}",
            severity=ERROR if any(_NOT_LOADED in why for why in whys) else None,
        )
    if facts.system.sysctls_in_time is False and not any(
        file.unread or re.search(_RUNS_SYSCTL, file.text.replace("\\\n", " ")) for file in facts.udev
    ):
        yield from _late_sysctls(facts)


def _late_sysctls(facts: Facts) -> Iterator[Fault]:
    """Yield lines of sysctl.d that systemd-sysctl passes over, as their module is not loaded so early.

    Where the kernel has the value now, it is set in some way. A running kernel's fs.nfs is not read.
    """
    system, tables = facts.system, data.read_table(_SETTINGS)
    lines = {each.name: each for each in system.settings if by_sysctl(each) and _known_names(each)}
    others = tuple(each for each in system.settings if not by_sysctl(each))
    for name, line in lines.items():
        module = next((home for start, home in tables["homes"].items() if name.startswith(start)), "sunrpc")
        key, now = name.rpartition(".")[2], system.parameters.get(name)
        unseen = facts.running and not name.startswith("sunrpc.")
        if unseen or now == line.value or setting_mistake(line) or refused_number(line):
            continue
        remedy = f"write {module} into /etc/modules-load.d/{module}.conf"
        if key in tables["modules"].get(module, "").split():
            wish = ParameterWish(f"{module}.{key}", line.value, {line.value}.__contains__, f"{module}.conf")
            remedy = permanent_setting(replace(facts, system=replace(system, settings=others)), wish)
        if remedy:
            yield Fault(
                f"{line.file}:{line.line}",
                f"the kernel has {name} only with the module {module}, and no file here loads it before "
                f"systemd-sysctl runs, or runs sysctl after it: {line.value} is not set at boot, unless "
                f"something else loads {module} before",
                observed=now or "no effect",
                expected=line.value,
                remedy=remedy,
                severity=ADVICE,
            )


def setting_mistake(setting: KernelSetting) -> tuple[str, str] | None:
    """Return why a line sets nothing, whatever its value is, and a remedy; None where it may."""
    if not setting.name:
        bare = setting.value.strip(_QUOTES)
        first, _, more = bare.partition(" ")
        why = f"modprobe knows no command {quoted(setting.value.split()[0])}, and ignores the line"
        if setting.value[0] in _QUOTES:
            why = "the line stands in quotation marks, and modprobe ignores it"
        if first == "options" and bare == setting.value:
            why = "modprobe knows no parameters with the module's name and a dot, and ignores the line"
            return why, f"write options {more.strip().replace('.', ' ', 1)} instead of it"
        if first == "options":
            return why, f"write {bare}"
        known = first in data.read_table(_SETTINGS)["modules"] and "=" in more
        return why, "write options before the name of the module" if known else "remove the line"
    names, (group, _, name) = _known_names(setting), setting.name.rpartition(".")
    if names is None or name in names:
        return None
    sysctl = by_sysctl(setting)
    why = (
        f"the kernel has no sysctl {setting.name}"
        if sysctl
        else f"the module {group} has no parameter {name}"
    )
    if name in option_names().nfs | option_names().common:
        return (
            f"{why}, but mounts have this option",
            "put mount options into the lines of mounts, not",
        )
    near = _near_setting(setting.name, sysctl=sysctl)
    if near:
        wrong, right = (_in_file(each, sysctl=sysctl) for each in (setting.name, near))
        return why, f"write {right} instead of {wrong}"
    other = _near_setting(setting.name, sysctl=not sysctl)
    if other:
        line, folder = _in_file(other, sysctl=not sysctl), "modprobe.d" if sysctl else "sysctl.d"
        return why, f"write {line}={setting.value} into a file of /etc/{folder} instead of {name}"
    return why, f"remove {name}"


def refused_number(setting: KernelSetting) -> tuple[str, str] | None:
    """Return why the kernel refuses a number, and a remedy; None where it may take it."""
    group, _, name = setting.name.rpartition(".")
    least, most = data.read_table(_SETTINGS)["bounds"].get(name, (0, 0))
    # next_arg of lib/cmdline.c takes quotes off only where the value begins with them.
    value = setting.value[1:].removesuffix('"') if setting.value.startswith('"') else setting.value
    if not most or _known_names(setting) is None or re.fullmatch("0[0-9a-fA-FxX]+", value):
        return None
    if re.fullmatch("[0-9]{1,9}", value) and least <= int(value) <= most:
        return None
    effect = "it keeps its value" if by_sysctl(setting) else f"{group} {_NOT_LOADED}"
    why = f"{name} takes a number from {least} to {most}, not {quoted(value)}: {effect}"
    return why, f"write a number from {least} to {most} for {name}"


def _known_names(setting: KernelSetting) -> list[str] | None:
    """Return the names that a setting may have in its place; None where it is not about the NFS client."""
    tables, group = data.read_table(_SETTINGS), setting.name.rpartition(".")[0]
    if group.removesuffix(".ko") not in {*tables["modules"], *tables["sysctls"]}:
        return None
    names: str = tables["sysctls" if by_sysctl(setting) else "modules"].get(group, "")
    return names.split()


def _near_setting(wrong: str, *, sysctl: bool) -> str:
    """Return the parameter of modules, or the sysctl, that a name means: its words may be in another order.

    Another transport's is not meant.
    """
    words = _words(wrong)
    table: dict[str, str] = data.read_table(_SETTINGS)["sysctls" if sysctl else "modules"]
    names = [f"{group}.{name}" for group, text in table.items() for name in text.split()]
    known = {
        " ".join(_words(name)): name
        for name in names
        if _TRANSPORTS & {*words} == _TRANSPORTS & {*_words(name)}
    }
    return next((known[each] for each in get_close_matches(" ".join(words), known, 1, _NEAR)), "")


def _words(name: str) -> list[str]:
    return sorted(re.split("[._]", name))


def _in_file(name: str, *, sysctl: bool) -> str:
    """Return a parameter as a file has it: in sysctl.d its name, in modprobe.d after its module's."""
    group, _, parameter_name = name.rpartition(".")
    return name if sysctl else f"options {group} {parameter_name}"


@rule(
    "NFS504",
    "inode-hash-default",
    INFO,
    needs=(LIVE,),
    source="https://learn.microsoft.com/en-us/azure/storage/files/nfs-large-directories",
)
def inode_hash(facts: Facts) -> Iterator[Fault]:
    """Yield a kernel with a million inodes of NFS and an inode table of the default size."""
    inodes = facts.nfs_inodes
    if inodes is None or inodes < _MANY_INODES:
        return
    if not any(word.startswith("ihash_entries=") for word in facts.system.cmdline.words):
        yield Fault(
            "ihash_entries",
            f"the kernel holds {inodes} inodes of NFS, as with very large directories, in an inode table "
            "sized by the memory alone; the vendor asks for a larger table for such directories",
            observed="the kernel's default",
            expected="ihash_entries=16777216",
            remedy="add ihash_entries=16777216 (128 MiB) to the kernel's command line in /etc/default/grub, "
            "write the boot configuration again, and reboot",
        )


@rule("NFS505", "kernel-old-for-depth", WARNING, source=Manual.SLOW)
def kernel_without_io_depth(facts: Facts) -> Iterator[Fault | Need]:
    """Yield a kernel that is too old for I/O depth on Azure Files."""
    kernel = facts.snapshot.kernel
    if not facts.azure_files:
        return
    if kernel is None:
        yield from facts.lacks(KERNEL)
    elif kernel.version < _IO_DEPTH_SINCE and (el8_build(kernel) or 0) < _EL86:
        yield Fault(
            _KERNEL,
            f"{kernel.text} is older than Linux 5.0 and RHEL 8.6: the vendor supports no I/O depth above "
            "one on Azure Files with it",
            observed=kernel.text,
            expected="5.0 or later, RHEL 8.6 or later",
            remedy="install a later kernel" + (" and boot it" if facts.running else ""),
        )


class Egress(NamedTuple):
    """The most that one VM may send, on all of its interfaces together, and the vendor's page."""

    mbit_per_s: int
    page: str


# D16s_v3, D2_v3, E64-16s_v3 (fewer CPUs), E64i_v3 (isolated), L8s_v2; not DC2s_v3, which is another family.
_OLD_SIZES = re.compile(r"standard_(?:[de]\d+(?:-\d+)?i?s?_v3|l\d+s_v2)", re.IGNORECASE)


def egress(size: str) -> Egress | None:
    """Return the most that a VM of this size may send, by data/vm-sizes.toml; None for an unknown size."""
    for series in data.read_table("vm-sizes.toml")["series"]:
        for cpus, mbit_per_s in series["mbit_per_s"].items():
            if series["size"].replace("{}", cpus).lower() == size.lower():
                return Egress(mbit_per_s, series["page"])
    return None


def has_old_chipset(size: str) -> bool:
    """Whether a VM size is of D_v3, E_v3 or Lsv2: their chipsets need interrupts on the right NUMA node."""
    return _OLD_SIZES.fullmatch(size) is not None


NETVSC = "hv_netvsc"
VF_DRIVERS = ("mlx4", "mlx5", "mana")
"""How the drivers of an Azure VM's virtual functions begin: mlx4_core, mlx5_core, mana."""
MTU = 1500
TRAFFIC_BYTES = 1 << 20
"""The least traffic of an interface that shows that the VF under it is idle. See docs/rules/NFS507.md."""
NEAR_LIMIT = 0.9
"""The share of a VM's limit from which the VM is at its limit. See docs/rules/NFS510.md."""
MAINLY_WRITES = 0.5
"""The share of writes to NFS in the sent bytes from which they are the main part."""
_RESIZE = (
    "az vm resize --resource-group GROUP --name VM --size SIZE, with its resource group for GROUP, its name "
    "for VM"
)


class _Uplink(NamedTuple):
    """An interface, and the mounts that it carries."""

    interface: Interface
    mounts: tuple[tuple[Target, Route], ...]

    @property
    def name(self) -> str:
        return self.interface.name

    @property
    def subjects(self) -> tuple[str, ...]:
        return tuple(target.subject for target, _ in self.mounts)


@rule("NFS506", "accelerated-networking-off", WARNING, needs=(LIVE,), source=Manual.ACCELERATED)
def without_vf(facts: Facts) -> Iterator[Fault]:
    """Yield an Azure VM's interfaces that carry mounts and have no virtual function."""
    for uplink in _uplinks(facts):
        hyper_v = facts.snapshot.azure and uplink.interface.driver == NETVSC
        if hyper_v and not _virtual_functions(facts, uplink.interface):
            yield Fault(
                uplink.name,
                f"{uplink.name} carries {some(uplink.subjects)} without Accelerated Networking: every "
                "packet goes through the host's virtual switch, which costs latency, throughput and CPU "
                "time",
                observed=f"{NETVSC} alone",
                expected="an mlx4, mlx5 or mana interface under it",
                remedy="az network nic update --resource-group GROUP --name NIC --accelerated-networking "
                "true, with the VM's resource group for GROUP and its interface for NIC, while the VM "
                "is deallocated; if Azure shows it as on, the guest lacks the driver: sudo modprobe -a "
                "mlx5_core mana",
            )


@rule("NFS507", "vf-not-carrying", WARNING, needs=(LIVE, SAMPLE), source=Manual.ACCELERATED)
def idle_vf(facts: Facts) -> Iterator[Fault]:
    """Yield virtual functions that were idle while the interface above them carried traffic."""
    measured = facts.measured
    if measured is None or measured.seconds < 1:
        return
    carried = {traffic.interface: traffic.received + traffic.sent for traffic in measured.traffic}
    for uplink in _uplinks(facts):
        total = carried.get(uplink.name, 0)
        for function in _virtual_functions(facts, uplink.interface):
            if total >= TRAFFIC_BYTES and carried.get(function.name) == 0:
                yield Fault(
                    function.name,
                    f"{function.name} carried nothing for {measured.seconds:.0f} s while {uplink.name} "
                    f"carried {total / 1e6:.1f} MB: Accelerated Networking is there and does not work",
                    observed="0 bytes",
                    expected=f"nearly all traffic of {uplink.name}",
                    remedy=f"sudo ip link set {quote(function.name)} up; then look at dmesg, and at the VM's "
                    "maintenance",
                )


@rule(
    "NFS508",
    "mtu-not-1500",
    WARNING,
    needs=(LIVE,),
    source="https://learn.microsoft.com/azure/virtual-network/how-to-virtual-machine-mtu",
)
def other_mtu(facts: Facts) -> Iterator[Fault]:
    """Yield interfaces and routes with an MTU that is wrong for Azure's storage."""
    for uplink in _uplinks(facts):
        wrong: dict[int | None, list[tuple[Target, Route]]] = {}
        for target, route in uplink.mounts:
            if _has_wrong_mtu(facts, uplink.interface, target, route):
                wrong.setdefault(route.mtu, []).append((target, route))
        for route_mtu, mounts in wrong.items():
            address = mounts[0][1].address
            if route_mtu is None:
                owner, mtu = uplink.name, uplink.interface.mtu
                remedy = _corrected_mtu(uplink.interface, address)
            else:
                owner, mtu = f"the route to {address} through {uplink.name}", route_mtu
                remedy = (
                    f"give the route that ip route get {address} shows mtu {MTU} (sudo ip route change), "
                    "and the same in the network's configuration"
                )
            yield Fault(
                uplink.name,
                f"{owner} has an MTU of {mtu} and carries "
                f"{some([target.subject for target, _ in mounts])}: Azure's storage is reached with {MTU}, "
                "and packets of other sizes are lost, split or wasted",
                observed=str(mtu),
                expected=str(MTU),
                remedy=remedy,
            )


def _corrected_mtu(interface: Interface, address: str) -> str:
    """Return how packets to the storage get the right size; other traffic may need the larger ones."""
    name, kept = quote(interface.name), "the same in the network's configuration"
    link = f"sudo ip link set {name} mtu {MTU}"
    if (interface.mtu or 0) < MTU:
        return f"{link}, and {kept}"
    route = f"sudo ip route replace {address} via GATEWAY dev {name} mtu {MTU}"
    return (
        f"{route}, with the gateway that ip route get {address} shows for GATEWAY (without via, if it "
        f"shows none); or, if nothing needs larger packets, {link}; and {kept}"
    )


def _has_wrong_mtu(facts: Facts, interface: Interface, target: Target, route: Route) -> bool:
    """Whether the MTU is wrong for Azure's storage.

    More than 1500 is always wrong, also on a bond, a bridge or a VLAN. Less is wrong only on a device of an
    Azure VM, where the route sets no MTU: tunnels and other clouds need less. A route's MTU overrides the
    interface's.
    """
    mtu = route.mtu or interface.mtu
    of_azure = target.endpoint.provider == AZURE_FILES or target.is_netapp
    if mtu is None or interface.mtu is None or not of_azure:
        return False
    may_be_less = route.mtu is not None or interface.driver is None or not facts.snapshot.azure
    return mtu > MTU or (mtu < MTU and not may_be_less)


@rule(
    "NFS509",
    "single-queue-nic",
    WARNING,
    needs=(LIVE,),
    source="https://docs.kernel.org/networking/scaling.html",
)
def single_queue(facts: Facts) -> Iterator[Fault]:
    """Yield devices with one receive queue on a host with several CPUs."""
    cpus = facts.system.cpus
    if cpus is None or cpus < 2:  # noqa: PLR2004 - "more than one"
        return
    for uplink in _uplinks(facts):
        for device in _virtual_functions(facts, uplink.interface) or (uplink.interface,):
            if device.driver is not None and device.rx_queues == 1 and not device.spread:
                yield Fault(
                    device.name,
                    f"{device.name} receives for {some(uplink.subjects)} on one queue: one of {cpus} CPUs "
                    "takes every packet, and is full before the network",
                    observed="1 RX queue",
                    expected=f"one a CPU, up to {cpus}",
                    remedy=f"sudo ethtool -L {quote(device.name)} combined {cpus}, or as many as ethtool -l "
                    f"{quote(device.name)} shows; if the device has only one queue, give the VM more, "
                    "or spread its packets: write a mask of CPUs to "
                    f"/sys/class/net/{device.name}/queues/rx-0/rps_cpus",
                )


@rule(
    "NFS510",
    "egress-near-limit",
    INFO,
    needs=(LIVE, NETWORK, SAMPLE),
    source="https://learn.microsoft.com/azure/virtual-network/virtual-machine-network-throughput",
)
def near_egress(facts: Facts) -> Iterator[Fault]:
    """Yield the interface that sends most, where writes to NFS bring the VM to its limit."""
    measured, size = facts.measured, facts.network.vm_size
    limit = egress(size) if size else None
    if measured is None or limit is None or measured.seconds <= 0:
        return
    # The bytes of a VF are counted in the interface above it; the limit is for all interfaces together.
    synthetic = {interface.name for interface in facts.network.interfaces if interface.driver == NETVSC}
    sent = {traffic.interface: traffic.sent for traffic in measured.traffic if traffic.interface in synthetic}
    rate = _mbit(sum(sent.values()) / measured.seconds)
    writes = _mbit(sum(sample.server_write_bytes_per_s or 0.0 for sample in measured.samples))
    uplinks = [uplink.name for uplink in _uplinks(facts) if uplink.name in sent]
    if uplinks and rate >= NEAR_LIMIT * limit.mbit_per_s and writes >= MAINLY_WRITES * rate:
        yield Fault(
            max(uplinks, key=lambda name: sent[name]),
            f"the VM sends {rate:,.0f} Mbit/s, {writes:,.0f} of them writes to NFS, and a {size} may send "
            f"{limit.mbit_per_s:,}: writes wait for the VM, not for the storage",
            observed=f"{rate:,.0f} Mbit/s",
            expected=f"below {NEAR_LIMIT * limit.mbit_per_s:,.0f} Mbit/s",
            remedy=f"{_RESIZE}, and a larger size for SIZE; or spread the writers over several VMs; reads do "
            "not count",
            source=limit.page,
        )


def _mbit(bytes_per_s: float) -> float:
    return bytes_per_s * 8 / 1e6


@rule(
    "NFS511",
    "vm-size-old",
    INFO,
    needs=(LIVE, NETWORK),
    source="https://learn.microsoft.com/azure/azure-netapp-files/performance-virtual-machine-sku",
)
def old_size(facts: Facts) -> Iterator[Fault]:
    """Yield a VM size with chipsets on which the NUMA node of the interface limits NFS reads."""
    size = facts.network.vm_size
    if size and has_old_chipset(size) and facts.nfs:
        where = "every host of its family has" if "_L" in size.upper() else "some hosts of its family have"
        yield Fault(
            size,
            f"this VM is a {size}: {where} a chipset with which NFS is slow when the interface's interrupts "
            "are on the wrong NUMA node",
            observed=size,
            expected="v4 or later (of L: Lsv3)",
            remedy=f"{_RESIZE}, and the same size of a later version for SIZE",
        )


def _uplinks(facts: Facts) -> Iterator[_Uplink]:
    """Yield the interfaces that carry mounts, in the order of their names; never this host's own loopback.

    Mounts of other namespaces are left out: they may have interfaces and routes of their own.
    """
    routes = {route.address: route for route in facts.network.routes if not route.local}
    carried: dict[str, list[tuple[Target, Route]]] = {}
    for target in facts.targets:
        route = next((routes[address] for address in _addresses(facts, target) if address in routes), None)
        if route is not None and not target.elsewhere:
            carried.setdefault(route.interface, []).append((target, route))
    for name, pairs in sorted(carried.items()):
        interface = facts.interface(name)
        if interface is not None:
            yield _Uplink(interface, tuple(pairs))


def _addresses(facts: Facts, target: Target) -> tuple[str, ...]:
    """Return the addresses that the mount's packets go to, or would go to."""
    place = target.endpoint
    if place.address:
        return (place.address,)
    if as_address(place.host):
        return (place.host,)
    answer = facts.answers.get(place.host)
    return answer.addresses if answer else ()


def _virtual_functions(facts: Facts, uplink: Interface) -> tuple[Interface, ...]:
    """Return the virtual functions under a synthetic interface of Hyper-V (hv_netvsc).

    Under a bond or a bridge, cards with the same drivers are ports, and an idle port is normal.
    """
    if uplink.driver != NETVSC:
        return ()
    return tuple(
        interface
        for interface in facts.network.interfaces
        if interface.master == uplink.name
        and interface.driver is not None
        and interface.driver.startswith(VF_DRIVERS)
    )
