"""The kernel's facts about NFS: a value for each line or stanza of its files.

Times are in the unit that the name ends with. `None` means that the kernel does not show it.
Strings decode the kernel's escapes; bytes that are not UTF-8 stay as surrogate escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

NO_COUNTERS: Mapping[str, OpCounters] = MappingProxyType({})
NFS_PORT = 2049
"""Kernels show a port only where it is another (fs/nfs/super.c, nfs_show_mount_options)."""
_MOST_DIGITS = 20
"""As many as 64 bits need; int() refuses thousands."""


def decimal(text: str | None) -> int | None:
    """Return the number that a text of plain digits is; None for any other text, and for too many digits."""
    return int(text) if text and len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit() else None


_BASED = re.compile(r"0(?:x([0-9a-f]{1,16})|[0-7]{0,22})", re.ASCII | re.IGNORECASE)


def whole(text: str | None) -> int | None:
    """Return the number that the kernel reads in an option; None for any other text.

    0x begins a hexadecimal number, and 0 an octal one (kstrtouint). Kernels before 5.6 have decimal ones.
    """
    digits = (text or "").removeprefix("+")
    if not digits.startswith("0"):
        return decimal(digits)
    match = _BASED.fullmatch(digits)
    return int(match[1] or digits, 16 if match[1] else 8) if match else None


def bracketed(address: str) -> str:
    """Return a host or an address as it stands before a port: an IPv6 address in brackets."""
    return f"[{address}]" if ":" in address else address


def whole_pages(kb: int, page_kb: int) -> int:
    """Return a read-ahead in KiB as the kernel keeps it: rounded down to whole pages."""
    return kb - kb % page_kb


def option_text(name: str, value: str | None) -> str:
    """Return an option as it is written: "name" or "name=value"."""
    return name if value is None else f"{name}={value}"


@dataclass(frozen=True, slots=True)
class Options:
    """Mount options in their order, as `/proc/self/mountinfo`, fstab or utab write them.

    Where an option is repeated, the last counts, as in nfs(5) and the kernel's parser.
    """

    pairs: tuple[tuple[str, str | None], ...] = ()

    def get(self, name: str) -> str | None:
        """Return the value of `name`: None when it is absent, "" when it stands without a value."""
        for key, value in reversed(self.pairs):
            if key == name:
                return "" if value is None else value
        return None

    def number(self, name: str) -> int | None:
        """Return the value of `name` as an integer; None when it is absent or no number."""
        return whole(self.get(name))

    def numbers(self, names: Iterable[str]) -> dict[str, int]:
        """Return the numbers of these options, in the order of `names`."""
        values = dict(self.pairs)  # the last of a name counts
        numbers = ((name, whole(values.get(name))) for name in names)
        return {name: number for name, number in numbers if number is not None}

    def last_of(self, *names: str) -> str:
        """Return which of several options that contradict each other stands last; "" where none is there."""
        return next((name for name, _ in reversed(self.pairs) if name in names), "")

    @property
    def texts(self) -> tuple[str, ...]:
        """The options as they are written."""
        return tuple(option_text(*pair) for pair in self.pairs)

    def __contains__(self, name: str) -> bool:
        return any(key == name for key, _ in self.pairs)


@dataclass(frozen=True, slots=True)
class Mount:
    """A line of mountinfo: a superblock at a mount point of a mount namespace (proc_pid_mountinfo(5))."""

    mount_id: int
    parent_id: int
    device: str
    """The superblock's number, "0:43": st_dev of every file on it, and the name of its bdi."""
    root: str
    point: str
    fstype: str
    source: str
    options: Options
    """The superblock's own options, as in `/proc/mounts`: those in effect, never those asked for."""
    flags: str = ""
    """This mount's own options, as they stand: "ro,nosuid,relatime"."""
    foreign: bool = False
    """It is in a mount namespace that is not the host's own, where somebody else chose the mount point."""


class MountNode(NamedTuple):
    """A mount of any kind in the tree of a mount namespace: a line of mountinfo."""

    mount_id: int
    parent_id: int
    device: str
    point: str
    fstype: str
    source: str
    options: str
    """The superblock's own, as they stand."""
    shared: int | None = None
    """Its peer group: mounts in it appear and vanish in its peers."""
    master: int | None = None
    """The peer group that it receives from."""


class Volume(NamedTuple):
    """A row of `/proc/fs/nfsfs/volumes`: a superblock of this network namespace (fs/nfs/client.c)."""

    version: int
    address: str
    port: int
    device: str
    fsid: str
    """"0:0" for an NFSv4 pseudo-root, and for every superblock of a server without fsids."""

    @property
    def peer(self) -> str:
        """The version and the server, as RpcRequest.peer has them: "v4 10.10.10.10:2049"."""
        return f"v{self.version} {bracketed(self.address)}:{self.port}"


class NfsClient(NamedTuple):
    """A row of `/proc/fs/nfsfs/servers`: an nfs_client of this network namespace.

    `hostname` is the name that the client's first mount used; later mounts under other names share the row.
    """

    version: int
    address: str
    port: int
    users: int
    hostname: str


RDMA = (
    *("read chunks", "write chunks", "reply chunks", "request bytes", "reply bytes", "pulled up bytes"),
    *("fixed up bytes", "registered bytes", "failed marshals", "bad replies", "calls without a message"),
    *("recycled regions", "orphaned regions", "allocated regions", "local invalidations"),
    *("empty send queues", "waits for a send"),
)
"""The last counters of xprt_rdma_print_stats (net/sunrpc/xprtrdma/transport.c); old kernels have fewer."""


class Transport(NamedTuple):
    """An `xprt:` line of mountstats: a connection of the superblock's transport group.

    The sums are sampled once a send, so that `in_flight_sum / sends` is the mean number in flight.
    """

    protocol: str
    source_port: int | None
    connects: int | None
    idle_s: int | None
    sends: int
    receives: int
    bad_xids: int
    in_flight_sum: int
    backlog_sum: int
    max_slots: int | None = None
    sending_sum: int | None = None
    pending_sum: int | None = None
    extra: tuple[int, ...] = ()
    """Counters behind those above, as they stand: for rdma the counters of RDMA."""

    @property
    def rdma(self) -> dict[str, int]:
        """The counters of RDMA alone, by the names in RDMA; empty for other protocols."""
        return dict(zip(RDMA, self.extra, strict=False)) if self.protocol.startswith("rdma") else {}


LEASE_OPS = frozenset({"NULL", "RENEW", "SEQUENCE"})
"""Operations that the client sends by itself as long as the mount exists."""


class OpCounters(NamedTuple):
    """A line of the per-op statistics; the three times are sums over all its calls, in milliseconds."""

    ops: int
    transmissions: int
    timeouts: int
    bytes_sent: int
    bytes_received: int
    queue_ms: int
    rtt_ms: int
    execute_ms: int
    errors: int | None = None
    """Replies with an error status; absent before statvers 1.1's ninth column (Linux 5.3)."""


class ByteCounters(NamedTuple):
    """The `bytes:` line: normal and direct are bytes that programs asked for, server those on the wire."""

    normal_read: int
    normal_written: int
    direct_read: int
    direct_written: int
    server_read: int
    server_written: int
    pages_read: int
    pages_written: int


@dataclass(frozen=True, slots=True)
class MountStats:
    """An NFS stanza of `/proc/self/mountstats` (fs/nfs/super.c, nfs_show_stats).

    Bytes and events belong to the superblock, transports to the transport group: mounts that share either
    show the same figures.
    """

    source: str
    point: str
    fstype: str
    statvers: str
    age_s: int | None = None
    options: Options = field(default_factory=Options)
    implementation: str | None = None
    """The server's own name for itself (`impl_id`, NFSv4.1 and later)."""
    bytes: ByteCounters | None = None
    events: tuple[int, ...] = ()
    transports: tuple[Transport, ...] = ()
    """Empty where an xprt: line is damaged: every mount has one."""
    ops: Mapping[str, OpCounters] = field(default_factory=lambda: NO_COUNTERS)
    whole: bool = True
    """Its end is there. A stanza that was cut off lacks counters, or digits of them."""


class Nfsv4State(NamedTuple):
    """The `nfsv4:` line of mountstats (fs/nfs/super.c); None for values that it lacks."""

    lease_s: int | None
    """For how long the server keeps the client's state (opens, locks) without a request."""
    expired_s: int | None
    """How long ago the lease ran out; 0 while it has not."""
    layout: str | None
    """The layout driver of pNFS; None also where there is no pNFS."""


class Stanza(NamedTuple):
    """An NFS stanza of mountstats as the kernel's own text, for a comparison with an earlier look.

    A line that stayed the same is not read, and most of a thousand mounts stay the same. MountStats explains
    `source`, `point`, `age_s` and `whole`; a damaged age makes a stanza not whole. None is an absent line or
    section.
    """

    source: str
    point: str
    age_s: int | None
    totals: bytes | None
    """The numbers of `bytes:`."""
    transports: bytes
    """The `xprt:` lines, each from the protocol on."""
    operations: bytes | None
    """The lines of the per-op statistics."""
    whole: bool
    events: bytes | None = None
    """The numbers of `events:`."""
    nfsv4: bytes | None = None
    """The fields of `nfsv4:`."""
    cached: bool = False
    """The option fsc: data that is read is also kept in FS-Cache."""


class Uevent(NamedTuple):
    """A kernel uevent about a device (`Documentation/driver-api/driver-model`, lib/kobject_uevent.c)."""

    action: str
    subsystem: str
    name: str
    """The last part of DEVPATH: for a bdi its device number, "0:43"."""


@dataclass(frozen=True, slots=True)
class KernelRelease:
    """The version triple of a kernel release; `text` is the whole of `uname -r`."""

    version: tuple[int, int, int]
    text: str = field(compare=False)


class Distribution(NamedTuple):
    """os-release(5), as far as nfstuned uses it."""

    id: str
    version_id: str
    pretty_name: str
    like: tuple[str, ...] = ()


# A quote that is never closed takes the rest of the text along, so that nothing is lost.
_OPTION = r'(?:[^",]|"[^"]*(?:"|$))+'


def parse_options(text: str) -> Options:
    """Return the options in their order; any text is a list of options, so there is no error.

    A comma within double quotes belongs to the value (SELinux labels: mount(8), "context="); the quotes
    stay part of it. Only the first `=` separates name and value. Empty options are left out.
    """
    options = re.findall(_OPTION, text) if '"' in text else text.split(",")
    parts = (option.partition("=") for option in options if option)
    return Options(tuple((name, value if separator else None) for name, separator, value in parts))


Version = tuple[int, int | None]
"""Major and minor version; the minor one is None where mount.nfs negotiates it."""

_VERSION_NUMBER = re.compile(r"([234])(?:\.([0-2]))?")
_VERSION_NAMES = ("vers", "nfsvers")
ONLY_V3 = ("mountaddr", "mounthost", "mountport", "mountproto", "mountvers")
"""Options of the MOUNT protocol, which only version 3 has."""


def nfs_version(fstype: str, options: Options) -> Version | None:
    """Return the version that options name, the last of several; None where they name none.

    `vers=4` without a minor version, and the type nfs4, leave that to mount.nfs, which begins with 4.2. An
    option that only version 3 has names it where nothing else does (nfs_set_version in
    utils/mount/stropts.c, and for mountport nfs_do_mount_v4 of later releases).
    """
    asked: Version | None = (4, None) if fstype == "nfs4" else None
    minor: int | None = None
    for name, value in options.pairs:
        text = value or "" if name in _VERSION_NAMES else name[1:] if name.startswith("v") else ""
        match = _VERSION_NUMBER.fullmatch(text)
        if match and (name in _VERSION_NAMES or value is None):
            asked = (int(match[1]), int(match[2]) if match[2] else None)
        elif name == "minorversion":
            minor = decimal(value)
    if asked is not None and asked[0] == 4 and asked[1] is None:  # noqa: PLR2004 - NFS 4 has minor versions
        return 4, minor
    if asked is None and fstype == "nfs" and any(name in ONLY_V3 for name, _ in options.pairs):
        return 3, None
    return asked


def aznfs_version(options: Options) -> str:
    """Return the version that mount.aznfs reads in its options, "" for none: 4.1 and 3 are all that it takes.

    It looks for "vers=", also within "nfsvers=" and "mountvers=", does not know v4.1 and appends minorversion
    (get_version_from_mount_options in src/mountscript.sh of Azure/AZNFS-mount).
    """
    major = minor = ""
    for name, value in options.pairs:
        if value is not None and name.endswith("vers"):
            major = value
        elif value is not None and name.endswith("minorversion"):
            minor = value
    return f"{major}.{minor}" if major and minor else major


def is_v3(fstype: str, options: Options) -> bool:
    """Return whether the version is 3; for the type aznfs as mount.aznfs reads it, for nfs4 never."""
    if fstype == "aznfs":
        return aznfs_version(options) == "3"
    return fstype != "nfs4" and (nfs_version(fstype, options) or (0, None))[0] == 3  # noqa: PLR2004 - the version


def version_text(numbers: Version) -> str:
    """Return a version as people write it."""
    return f"{numbers[0]}" if numbers[1] is None else f"{numbers[0]}.{numbers[1]}"


def nfs_protocol(options: Options) -> str:
    """Return the protocol without the 6 of IPv6: "tcp", "udp", "rdma", or an unknown value of `proto=`.

    The last one counts, as `proto=` or as a name alone (nfs_nfs_protocol in utils/mount/network.c).
    """
    named = [
        value or "" if name == "proto" else name
        for name, value in options.pairs
        if name in {"proto", "tcp", "udp", "rdma"}
    ]
    return next(filter(None, reversed(named)), "tcp").removesuffix("6")
