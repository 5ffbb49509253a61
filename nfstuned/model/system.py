"""The facts of a host or an image that concern no single mount: services, settings, TLS, the network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import ip_address
from types import MappingProxyType
from typing import NamedTuple

from nfstuned.errors import ParseError

APART_SINCE = (2, 8, 3)
"""The first nfs-utils that keeps sections of different names apart."""
NO_TEXTS: Mapping[str, str] = MappingProxyType({})
AUTOFS = "autofs.service.d"
"""The drop-ins of the automounter's service, which stand for all that sets its environment."""
IDENTITY_UNIT = "nfstuned-identity.service"
MACHINE_ID = "/etc/machine-id"
LOGINS = "logins"
"""All that is started from a login, as pam_env sets its environment; systemd reads no /etc/environment."""


class KernelSetting(NamedTuple):
    """A parameter that modprobe.d or sysctl.d sets: "nfs.max_session_slots" (module, dot, parameter)."""

    name: str
    """"" of a line that modprobe passes over; its value is the line."""
    value: str
    file: str
    line: int


RUNNING = "/proc/cmdline"
"""The file with the running kernel's command line."""


class CommandLine(NamedTuple):
    """A kernel's command line, "" where no file has it, and the file."""

    text: str = ""
    file: str = RUNNING

    @property
    def words(self) -> tuple[str, ...]:
        """The words in their order; of a parameter the last counts."""
        return tuple(self.text.split())


class RefusedModule(NamedTuple):
    """A line of modprobe.d that runs a program instead of a module, and the program does nothing."""

    name: str
    file: str
    line: int


class Unit(NamedTuple):
    """A service by its files and, on a running host, by its processes."""

    installed: bool = False
    enabled: bool = False
    """Something starts it at boot: a link in a .wants or .requires folder, or a preset at a first boot."""
    active: bool | None = None
    """None where no running system was asked."""
    masked: bool = False
    """systemctl can neither enable nor start it before it is unmasked."""
    masks_rules: bool = False
    """Its unit masks the distribution's udev rules while it runs, as nfstuned's own does."""


class Override(NamedTuple):
    """A place that sets AZURE_ENDPOINT_OVERRIDE for mount.aznfs, or a drop-in that hides such a place."""

    value: str
    """The suffix of a cloud's names, without a dot before it: "chinacloudapi.cn".

    "" of a drop-in that does not set it: for its mounts it hides the earlier drop-ins of its name.
    """
    file: str
    scope: str = ""
    """The unit or the folder of drop-ins that has it ("mnt-a.mount.d", "autofs.service.d"), or LOGINS; "" for
    all that systemd starts."""


TUNNEL_FULL = 0.9
"""Of a processor: so much a thread of a tunnel has that never waits long for its connection's next bytes."""


class TunnelService(NamedTuple):
    """A service of a tunnel's configuration: where it listens and leads to, and whom it trusts there."""

    file: str
    line: int
    """That of `accept`."""
    accept: str
    """As it is written: "127.0.0.1:20049"."""
    port: int
    server: str
    ca_file: str = ""
    """"" where none is named."""
    ca_line: int = 0
    other_ca: bool = False
    """It takes certificates from a folder (CApath) or an engine, too."""
    verifies_chain: bool = False
    """The server's certificate must come from a CA that it trusts."""
    verifies_peer: bool = False
    """The server is known by its own certificate, or by a shared key."""
    verifies_name: bool = False
    server_port: int = 2049
    log: str = ""
    """The file of its log; the other services of its configuration share it."""
    pid_file: str = ""
    """The file with the number of the process, which has the other services, too."""


class Refusal(NamedTuple):
    """A server that a tunnel refused at its last connection, by the tunnel's log."""

    time: str
    """As the log has it, in local time: "2026.11.25 04:47:37"."""
    reason: str
    """In OpenSSL's or stunnel's words; "" where the log has no reason."""
    certificate: str
    """The subject of the certificate that was refused."""


class CaFile(NamedTuple):
    """A file with certificates of CAs, in which all that is there was understood."""

    ends_s: tuple[int, ...] = ()
    """The last second of each certificate in Unix time."""
    missing: bool = False


class TunnelEntry(NamedTuple):
    """A line of AZNFS's list of tunnels."""

    file: str
    line: int
    server: str
    configuration: str
    status: str
    """"waiting" while a mount is under way, then "mounted" or "failed"."""
    until_s: int
    """How long the mount under way may take, in Unix time."""


NO_CA_FILES: Mapping[str, CaFile] = MappingProxyType({})
NO_REFUSALS: Mapping[str, Refusal] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Tls:
    """The TLS helper of Azure Files: its watchdog, its tunnels, and where these may listen."""

    watchdog: Unit = Unit()
    listening: frozenset[int] | None = None
    """The TCP ports of this machine with a listener; None where they are unknown."""
    overrides: tuple[Override, ...] = ()
    """Of several for a mount the last counts; of drop-ins with one name only the last is read."""
    services: tuple[TunnelService, ...] = ()
    """Of the running host; none of an image."""
    ca_files: Mapping[str, CaFile] = field(default_factory=lambda: NO_CA_FILES)
    """By path; those that could not be read, or not whole, are left out."""
    refusals: Mapping[str, Refusal] = field(default_factory=lambda: NO_REFUSALS)
    """By the file of a tunnel's configuration."""
    entries: tuple[TunnelEntry, ...] = ()
    """Of the running host; none of an image."""
    problems: tuple[ParseError, ...] = ()
    """The lines and files of them that could not be understood."""


@dataclass(frozen=True, slots=True)
class ImageKernel:
    """A kernel that is installed in an image."""

    release: str
    modules: frozenset[str] = frozenset()
    """The modules that it has of nfs, nfsv3, nfsv4, cifs and the character sets, as a file or built in."""
    config: Mapping[str, str] = field(default_factory=lambda: NO_TEXTS)
    """CONFIG_… = y or m, where the image has the file."""


class NfsUtils(NamedTuple):
    """The installed mount.nfs, and how it reads nfsmount.conf, which depends on its version."""

    version: tuple[int, ...] | None = None
    """None where the program does not have it."""
    drop_ins: bool = False
    """It reads /etc/nfsmount.conf.d."""

    @property
    def keeps_sections_apart(self) -> bool:
        """Whether each [ Server ] section has its own value of an option; before, they shared the last.

        "conffile: ... remove configurations ... the 'arg' argument" came with nfs-utils 2.8.3-rc1. A
        distribution may have taken it into an older version, and nothing shows it.
        """
        return self.version is not None and self.version >= APART_SINCE

    @property
    def mixes_sections(self) -> bool:
        """Whether it is known to keep a single value of an option for all sections of a kind."""
        return self.drop_ins and self.version is not None and not self.keeps_sections_apart

    @property
    def name(self) -> str:
        """The program and its version, for people."""
        return f"mount.nfs {'.'.join(map(str, self.version))}" if self.version else "mount.nfs"


class ClientIdentity(NamedTuple):
    """The name of an NFSv4 client to servers (fs/nfs/nfs4proc.c): its host's name, and an identifier.

    Clients with the same two are one client to a server, which gives the session to the last.
    """

    name: str | None = None
    """The host name, in an image from /etc/hostname; None without a name, or where it cannot be read."""
    identifier: str = ""
    """The identifier that the running kernel has for this network namespace."""
    renamed: bool = False
    """Of an image: something in it names each instance at its first boot, as cloud-init does."""
    given: bool = False
    """IDENTITY_UNIT gives the host an identifier at each boot, which is made of its machine id."""
    machine_ids: tuple[str, ...] = ()
    """The files of an image from which all of its clones would take the same machine id."""

    @property
    def named_alike(self) -> bool:
        """Of an image: whether all of its clones are known to have one name."""
        return self.name is not None and not self.renamed

    @property
    def shared_by_clones(self) -> bool:
        """Of an image: whether all of its clones are known to call themselves alike.

        An identifier that a parameter sets for all of them is not counted.
        """
        return self.named_alike and not (self.given and not self.machine_ids)


@dataclass(frozen=True, slots=True)
class System:
    """The facts of the host or the image that concern no single mount."""

    parameters: Mapping[str, str] = field(default_factory=lambda: NO_TEXTS)
    """The parameters of the running kernel: "nfs.max_session_slots" -> "64"."""
    settings: tuple[KernelSetting, ...] = ()
    """The settings of modprobe.d and sysctl.d, in the order in which they count: the last wins."""
    unread_settings: tuple[KernelSetting, ...] = ()
    """Those of files in both folders that are not read, because their names have no ending."""
    sysctls_in_time: bool | None = None
    """Whether lines of sysctl.d about NFS may count without a udev rule: systemd-sysctl passes over those of
    modules that are not loaded. None without settings of NFS, or where it is unknown."""
    refused_modules: tuple[RefusedModule, ...] = ()
    cmdline: CommandLine = CommandLine()
    """The running kernel's; of an image its newest kernel's."""
    cpus: int | None = None
    fips: bool = False
    helpers: frozenset[str] = frozenset()
    """The mount helpers that exist, such as mount.nfs, and tlshd, cachefilesd and rpc.statd."""
    daemon: Unit = Unit()
    """nfstuned.service."""
    client: ClientIdentity = ClientIdentity()
    tls: Tls = Tls()
    rpcbind_masked: bool = False
    """Neither rpcbind.service nor rpcbind.socket can start, without which rpc.statd does not either."""
    nfs_utils: NfsUtils | None = None
    """mount.nfs by its file; None where it is not installed, or may not be read."""
    config_problems: tuple[str, ...] = ()
    """The problems of nfstuned's own configuration; the built-in profiles count then."""
    kernels: tuple[ImageKernel, ...] = ()
    """Of an image, the newest last."""
    scripts: tuple[str, ...] = ()
    """Of an image: services and scripts that name the attribute read_ahead_kb, and may write it."""


def is_address(text: str) -> bool:
    """Return whether `text` is an IP address; an IPv6 address may have a scope, one of IPv4 has none."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


class Answer(NamedTuple):
    """The resolver's answer about a host name."""

    host: str
    addresses: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()
    """The names that its CNAME records lead through, in order, without the name itself."""
    error: str = ""
    """Why there is no address: "NXDOMAIN", "no answer within 3 s"; "" where there are addresses."""
    final: bool = True
    """Whether the error is the resolver's verdict, and not only a failure to ask it."""


class Reachable(str, Enum):
    """The result of a TCP connection to a server."""

    OPEN = "open"
    REFUSED = "refused"
    TIMEOUT = "no answer"
    UNREACHABLE = "unreachable"


class Reach(NamedTuple):
    """An attempt to connect to a server, and its result."""

    address: str
    port: int
    state: Reachable
    detail: str = ""


class Interface(NamedTuple):
    """A network interface; `None` means that the kernel did not say."""

    name: str
    driver: str | None = None
    """Of the device behind it: "hv_netvsc", "mlx5_core", "mana", "virtio_net"; None without a device."""
    master: str | None = None
    """The interface that it is enslaved to: an Azure VF's is the hv_netvsc interface."""
    mtu: int | None = None
    rx_queues: int | None = None
    spread: bool = False
    """Receive packet steering hands the packets of some queue to other CPUs."""
    rx_bytes: int | None = None
    tx_bytes: int | None = None


class Route(NamedTuple):
    """How packets to an address leave this host."""

    address: str
    interface: str
    local: bool = False
    """The address is this host's own."""
    mtu: int | None = None
    """The MTU of a route or of path MTU discovery; it counts before the interface's."""


class Network(NamedTuple):
    """The network's answers, and the kernel's facts about it."""

    answers: tuple[Answer, ...] = ()
    reaches: tuple[Reach, ...] = ()
    routes: tuple[Route, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    vm_size: str | None = None
    """As Azure's metadata service calls it: "Standard_D16_v4"; None off Azure, or without an answer."""

    @property
    def by_name(self) -> dict[str, Answer]:
        """The answers by name, for rules that ask for many."""
        return {answer.host: answer for answer in self.answers}


class SmbSession(NamedTuple):
    """An SMB session of /proc/fs/cifs/DebugData."""

    server: str
    """The host name, or the address of a server without a name."""
    address: str
    dialect: int | None
    """0x311 for 3.1.1."""
    channels: int
    """The number of its channels, the first included."""
    shares: tuple[str, ...] = ()
    """The names in the file: r"\\\\server\\share"."""
    signed: bool | None = None
    encrypted: bool | None = None
    """Of the session, or of one of its shares."""


class SmbOps(NamedTuple):
    """Requests to a share: since the kernel counts, or between two looks (/proc/fs/cifs/Stats)."""

    share: str
    """The name in the file: r"\\\\server\\share"."""
    metadata: int
    """Creates (opens), closes, listings, and queries and changes of attributes."""
    data: int
    """Reads and writes."""
