"""Mounts and superblocks of a host, the settings and requests of administrators, and decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from nfstuned.errors import ParseError
from nfstuned.model.kernel import (
    Distribution,
    KernelRelease,
    Mount,
    MountStats,
    NfsClient,
    Volume,
    aznfs_version,
    parse_options,
)

NO_VARIABLES: Mapping[str, str] = MappingProxyType({})

NFSRAHEAD, AZNFS, EFS_UTILS, TUNED = "nfsrahead", "aznfs", "efs-utils", "tuned"
"""The programs that write read-aheads, as the sections of their settings in Facts.writers."""
NFS_TYPES, SMB_TYPES = ("nfs", "nfs4", AZNFS), ("cifs", "smb3")
"""The types of lines that ask for mounts; AZNFS is NFS through the helper of Azure Files."""
EFS_TYPE = "efs"
"""A type of files alone: mount.efs has options of its own and mounts with type nfs4."""
AZURE_FILES, NETAPP, EFS = "azure-files", "azure-netapp-files", "aws-efs"
"""Providers with rules of their own, and their built-in profiles."""
GENERIC = "generic"
"""Any other provider, and its profile."""


class Setting(NamedTuple):
    """An assignment of nfsmount.conf or nfs.conf (nfs-utils, support/nfs/conffile.c)."""

    section: str
    """In lower case: its case does not matter."""
    argument: str | None
    """The text in quotes behind the section's name; None without quotes."""
    name: str
    value: str
    file: str
    line: int
    alone: bool = False
    """An older mount.nfs keeps one value of an option for all named sections of a kind: this value replaces
    the last before it, of any section."""


class ConfInclude(NamedTuple):
    """`include = path`: the settings of another file stand here, and begin in this section."""

    path: str
    optional: bool
    section: str
    argument: str | None
    file: str
    line: int


class UnitSetting(NamedTuple):
    """An assignment of a systemd unit file or drop-in; an empty value takes earlier ones back."""

    section: str
    name: str
    value: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class AutoMap:
    """An entry of auto.master(5): a map that serves a mount point ("/-": the keys are whole paths)."""

    point: str
    kind: str
    """"file", "program", "hosts", "yp" and so on; "" where automount looks for it itself."""
    format: str
    name: str
    options: str
    file: str
    line: int
    variables: Mapping[str, str] = field(default_factory=lambda: NO_VARIABLES)
    parts: tuple[AutoMap, ...] = ()
    """Of a map of the kind "multi" those that it consists of: the first that has a key counts."""


class MapInclude(NamedTuple):
    """A map that a line names: `+name`, `+dir:folder`, or a master map of autofs.conf."""

    kind: str
    name: str
    file: str
    line: int


class MapSource(NamedTuple):
    """A source of `automount:` in nsswitch.conf(5)."""

    name: str
    """"files", "sss", "ldap", "nis", "yp", "nisplus" or "hesiod"."""
    ends: frozenset[str] = frozenset({"SUCCESS"})
    """After these of its answers no later source is asked; they are SUCCESS, NOTFOUND, UNAVAIL, TRYAGAIN."""


class Unread(Enum):
    """Why a map of the automounter's was not read, or an entry of it does not count."""

    ASKED = "a program or a server has its entries"
    SOURCE = "nsswitch.conf names other sources than files"
    KEY = "the map depends on the key"
    FORMAT = "its format is amd's"
    PLACE = "it lies below a mount point"
    MISSING = "the file does not exist"
    ENDING = "its name does not end in .autofs"
    EXECUTABLE = "automount(8) runs it as a program, and it is no program"
    TWICE = "the key has an earlier entry in the same file"


class UnreadMap(NamedTuple):
    """A map of the automounter's that was not read, or an entry that does not count, and its line."""

    why: Unread
    point: str
    """The mount point that it serves; "" for a master map, which names other maps."""
    kind: str
    """Who has it: "program", "yp", "sss, ldap"."""
    name: str
    file: str
    line: int
    local: str = ""
    """A file of that name; its entries count only where the sources before it have no entry.

    Of an entry that does not count the place of the entry that does.
    """


class MapEntry(NamedTuple):
    """An entry of a file map (autofs(5)): `text` is all that follows the key, as it stands."""

    key: str
    text: str
    file: str
    line: int


class Asked(NamedTuple):
    """An option of a mount, and the line that decided it."""

    name: str
    value: str | None
    file: str
    line: int

    @property
    def origin(self) -> str:
        """Return the file and the line as people write them."""
        return f"{self.file}:{self.line}"

    @property
    def text(self) -> str:
        """Return the option as it is written among others."""
        return self.name if self.value is None else f"{self.name}={self.value}"


class UnitState(NamedTuple):
    """systemd's state of a mount unit: properties of `systemctl show`, and `failure` from the journal."""

    loaded: bool = False
    fragment: str = ""
    """The unit file, also where systemd made it of fstab; "" for a mount that systemd only saw."""
    stale: bool = False
    """NeedDaemonReload: a file has changed since systemd read it."""
    lazy: bool = False
    """LazyUnmount=yes."""
    force: bool = False
    """ForceUnmount=yes."""
    bound_by: tuple[str, ...] = ()
    """Units with BindsTo=: systemd stops them when the mount goes."""
    active: str = ""
    """ActiveState: "active", "inactive", "failed", "activating" and others; "" where it is not known."""
    result: str = ""
    """Why it failed: "exit-code", "timeout" and others."""
    condition: bool = True
    """Whether its conditions were met when it was last to be started."""
    job: bool = False
    """systemd has a job for the unit that has not ended (Job)."""
    wanted_by: tuple[str, ...] = ()
    """WantedBy and RequiredBy: the units that start it. Of a line of fstab it is remote-fs.target."""
    invocation: str = ""
    """InvocationID, of its last start; "" without a start, and from an older systemd."""
    failure: str = ""
    """The last message of its program; "" without a message, or where nobody knows."""

    @property
    def objection(self) -> str:
        """Why systemd would not start it again, or do more than unmount and mount; "" where neither is so."""
        if not self.loaded:
            return "is masked or broken: systemd would unmount it, and not mount it again (systemctl status)"
        if self.lazy or self.force:
            name = "LazyUnmount" if self.lazy else "ForceUnmount"
            return f"has {name}=yes, which would hide that it is still in use"
        bound = ", ".join(self.bound_by)
        return f"would stop {bound} with it (BindsTo=)" if bound else ""


FSTAB, UTAB = "/etc/fstab", "/run/mount/utab"
PERSISTED = "/etc/nfsmount.conf.d/50-nfstuned.conf"
"""nfstuned's own drop-in (`nfstuned nconnect persist`)."""


SEEN_READS = "run/nfstuned/reads.json"
"""The service's file of its knowledge of each superblock's reads."""


class Hold(str, Enum):
    """Why the service leaves a superblock alone until `nfstuned apply`; until the next boot at most."""

    UNDONE = "undone"
    """The administrator took the value back."""
    EXISTING = "existing"
    """It was mounted when the package was installed."""


class Record(NamedTuple):
    """A change of a superblock's read-ahead, kept in /run/nfstuned so that it can be undone.

    `bdi` is the inode of the bdi's read_ahead_kb: device numbers are reused at once, inodes are not.
    """

    device: str
    bdi: int
    original_kb: int
    written_kb: int
    hold: Hold | None = None
    adapted_kb: int | None = None
    """The read-ahead that its reads use; None where that is the profile's."""


class Superblock(NamedTuple):
    """A device number, its bdi with the read-ahead, and its visible mounts (none after `umount -l`)."""

    device: str
    bdi: int | None
    """The inode of its read_ahead_kb in sysfs; None without a bdi."""
    read_ahead_kb: int | None
    """None where it cannot be read."""
    mounts: tuple[Mount, ...] = ()
    volume: Volume | None = None
    servers: tuple[NfsClient, ...] = ()
    """The nfs_clients of its network namespace: addresses mean nothing across namespaces."""
    record: Record | None = None

    @property
    def key(self) -> tuple[str, int | None]:
        """Its identity: the kernel gives the device number alone to the next superblock at once."""
        return self.device, self.bdi

    @property
    def is_hidden(self) -> bool:
        """Whether it has mounts, all of them in other mount namespaces."""
        return bool(self.mounts) and all(mount.foreign for mount in self.mounts)


class Login(NamedTuple):
    """A file with a login for SMB (mount.cifs(8), "credentials")."""

    mode: int = 0
    """Its permissions."""
    mistakes: tuple[str, ...] = ()
    """Why mount.cifs takes another login from it than it seems to have; none where its text is unknown."""
    has_password: bool = True
    """False where its text is known and has none."""


class Tunnel(NamedTuple):
    """A local TLS proxy: mounts of 127.0.0.1:`port` really go to `host`:`host_port`.

    With `stands_in` there is no proxy: the kernel sends packets for that address, which no host has, to
    `address` of the server `host`, and keeps their port.
    """

    port: int
    """0 where an address stands in for the server."""
    host: str
    host_port: int
    provider: str
    file: str
    stands_in: str | None = None
    address: str | None = None
    pid_file: str = ""
    """The file with the number of its process; "" where the configuration has none."""


class Maker(Enum):
    """Who makes a mount: as a file asks, or a program that has the options in its own records."""

    MOUNT = "mount(8)"
    """From fstab: at boot, as systemd makes a unit of the line, or by hand."""
    UNIT = "systemd"
    """A mount unit, when somebody starts it; also an entry of fstab with options from a drop-in."""
    AUTOMOUNT = "systemd's automount"
    """An .automount unit of the mount unit, at the first use."""
    AUTOFS = "automount(8)"
    TASK = "a task"
    """Of Ansible, or a command of a script, that writes a line of fstab."""
    COMMAND = "a command"
    """mount(8) in a script or a service, with the options on its command line."""
    KUBELET = "the kubelet"
    DOCKER = "Docker"
    PODMAN = "Podman"
    NOMAD = "Nomad"
    PROXMOX = "Proxmox VE"


_AT_FIRST_USE = frozenset({"x-systemd.automount", "comment=systemd.automount"})
"""Both are systemd's (fstab_options_to_flags in src/fstab-generator); the second is the older one."""


class Request(NamedTuple):
    """The options with which a mount was, or will be, asked for, and the line that asks.

    utab, fstab, a mount unit or an autofs map; the options that nfsmount.conf adds to the last three are not
    in it.
    """

    source: str
    point: str
    options: str
    file: str
    line: int = 0
    wildcard: bool = False
    """An autofs entry for any key: `*` in `point` and each `&` in the other fields stand for the key."""
    fstype: str = "nfs"
    maker: Maker = Maker.MOUNT
    named: str | None = None
    """The type as the file has it where `fstype` is another: "", "auto", a list of types, or a misspelt type.

    systemd takes none of these for a network's. None where the file has `fstype`.
    """
    inherited: str = ""
    """`file:line` of an automounter's map with options for all of its entries."""
    field: str = ""
    """The file's own name for its options: "mountOptions", "opts"; "" where a line has them."""
    option_lines: tuple[int, ...] = ()
    """The line of each option; () where all are on `line`."""
    source_line: int = 0
    """The line of its path at the server, or of a unit's misspelt type; 0 where that is `line`."""
    source_file: str = ""
    """The file of that line; "" where that is `file`."""
    group: str = ""
    """Of files without their host: the machine that it is for, or the files of one cluster."""
    provider: str = ""
    """The provider by a driver; "" where the server's name alone shows it."""
    is_conditional: bool = False
    """Its task has a condition, and may be an alternative to another."""
    owner: str = ""
    """The object of Kubernetes that asks for it: "PersistentVolume data"."""
    added: str = ""
    """The end of its options, which a driver writes itself."""
    versions: tuple[str, ...] = ()
    """The versions of NFS of the volumes that its driver makes; () where it leaves them to the server."""

    @property
    def written(self) -> str:
        """Its options without those that its driver adds."""
        return self.options.removesuffix(self.added).removesuffix(",") if self.added else self.options

    @property
    def place(self) -> str:
        """Where its options stand, for people."""
        return f"{self.file}:{self.line}" + (f" or {self.inherited}" if self.inherited else "")

    @property
    def source_place(self) -> str:
        """Where its source stands, or a unit's misspelt type."""
        return f"{self.source_file or self.file}:{self.source_line or self.line}"

    def place_of(self, *names: str) -> str:
        """Return `file:line` of its first option with one of these names; of itself where it has none."""
        lines = (line for (name, _), line in zip(self.pairs, self.lines, strict=True) if name in names)
        return f"{self.file}:{next(lines, self.line)}"

    @property
    def pairs(self) -> tuple[tuple[str, str | None], ...]:
        """Its options: names and values."""
        return parse_options(self.options).pairs

    @property
    def lines(self) -> tuple[int, ...]:
        """The line of each of `pairs`."""
        number = len(self.pairs)
        return self.option_lines if len(self.option_lines) == number else (self.line,) * number

    @property
    def is_mistyped(self) -> bool:
        """Whether nothing mounts the type as the file has it, such as nfs3."""
        types = {"", "auto", *NFS_TYPES, *SMB_TYPES, EFS_TYPE}
        return self.named is not None and types.isdisjoint(self.named.split(","))

    @property
    def at_first_use(self) -> bool:
        """Whether nothing waits for it at boot, because it is mounted when somebody goes there."""
        watched = self.maker in {Maker.AUTOMOUNT, Maker.AUTOFS}
        return watched or not _AT_FIRST_USE.isdisjoint(self.options.split(","))

    @property
    def by_hand(self) -> bool:
        """Whether a line of fstab waits for somebody to mount it."""
        idle = parse_options(self.options).last_of("auto", "noauto") == "noauto"
        return idle and self.maker is Maker.MOUNT and not self.at_first_use

    @property
    def by_fuse(self) -> bool:
        """Whether mount.aznfs hands it to a client of its own: no NFS of the kernel, and no option of nfs(5).

        See check_turbo_option in src/mountscript.sh of Azure/AZNFS-mount.
        """
        return self.fstype == AZNFS and any(name in {"turbo", "fuse"} for name, _ in self.pairs)

    @property
    def wants_watchdog(self) -> bool:
        """Whether mount.aznfs needs its watchdog for it: for version 4.1, also with `notls`."""
        return self.fstype == AZNFS and aznfs_version(parse_options(self.options)) == "4.1"

    @property
    def wants_tunnel(self) -> bool:
        """Whether mount.aznfs makes a tunnel for it: for version 4.1, and not with `notls`."""
        return self.wants_watchdog and "notls" not in parse_options(self.options)


class Unexpanded(NamedTuple):
    """A command, a task or a template that asks for a mount and depends on values that its file lacks."""

    text: str
    """For people: "a command with a variable"."""
    file: str
    line: int


class Misnamed(NamedTuple):
    """A .mount or .automount unit that systemd refuses, because its name does not fit its mount point."""

    request: Request
    name: str
    """The name that the unit would have to have."""
    right_point: str = ""
    """The mount point to write, where the unit's name is right: for an .automount unit the mount unit's, for
    a mount point with a remark the text before the remark."""
    unit: str = ""
    """The unit's file, where another file has its text."""


class Unloaded(NamedTuple):
    """A unit that is not there or masked, where an enabled unit or a mount needs it."""

    file: str
    """The .automount unit, the link to a unit that is not there, or the file and line of `setting`."""
    point: str
    name: str
    """The unit that is not there."""
    mask: str = ""
    """The file that masks it; "" where no file has its name."""
    setting: str = ""
    """The setting of the mount's unit, or option of its line, that names it: "Requires"."""
    near: str = ""
    """The unit that somebody may have meant, the right mount point, or the file with its section; else ""."""


WAIT_ONLINE = "systemd-networkd-wait-online.service"
GRAPHICAL = "graphical.target"
GSSD = "rpc-gssd.service"
"""nfs-client.target starts it: it has no [Install]."""
EARLY = ("/", "/usr")
"""The mount points of the initrd, for which nofail means nothing."""


class Unstarted(NamedTuple):
    """A unit that nothing starts at boot, although a file asks for its mounts."""

    name: str
    file: str
    """Its file; the mask of a masked unit."""
    point: str = ""
    """The mount point of a mount unit."""
    place: str = ""
    """The first line with a mount that needs another unit."""
    masked: bool = False
    target: str = ""
    """The only target that wants it, and that nothing starts."""
    absent: bool = False
    """No file has the name of `target`."""


class Local(NamedTuple):
    """A line of fstab for a local file system on a network's mount, or of an automount after the network."""

    request: Request
    below: Request
    """The line or unit of the network's mount; of an automount its own."""
    network: str = ""
    """An enabled unit that brings up the network and starts after the local file systems; "" for others."""


class EarlyService(NamedTuple):
    """An administrator's enabled service that does not wait for the mount of a path in its command."""

    file: str
    line: int
    """The line of the command."""
    path: str
    request: Request


class Unordered(NamedTuple):
    """A mount through a local tunnel that nothing orders after the tunnel's unit."""

    request: Request
    unit: str
    """The tunnel's unit: "stunnel.service"."""
    place: str
    """The file and line by which it listens at the mount's address and port."""
    enabled: bool
    """Something starts the unit at boot."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A host at one moment.

    `problems` names the files and lines that could not be read or understood; the rest is still right.
    `faults` are those of them on which the values of superblocks depend: with any of these, nothing may be
    decided.
    """

    superblocks: tuple[Superblock, ...] = ()
    tunnels: tuple[Tunnel, ...] = ()
    stats: tuple[MountStats, ...] = ()
    requests: tuple[Request, ...] = ()
    """utab's rows first. Of several others for a mount point the first counts."""
    settings: tuple[Setting, ...] = ()
    """nfsmount.conf and its drop-ins, in the order in which mount.nfs reads them."""
    misnamed: tuple[Misnamed, ...] = ()
    unloaded: tuple[Unloaded, ...] = ()
    unstarted: tuple[Unstarted, ...] = ()
    unordered: tuple[Unordered, ...] = ()
    local: tuple[Local, ...] = ()
    early: tuple[EarlyService, ...] = ()
    misplaced: tuple[ParseError, ...] = ()
    """Lines of nfs.conf that no program reads."""
    maps: tuple[UnreadMap, ...] = ()
    """The automounter's maps that were not read, such as programs and those that a server keeps."""
    automounted: tuple[str, ...] = ()
    """The folders in which the automounter mounts."""
    kernel: KernelRelease | None = None
    """The running kernel; of an image the newest that is installed."""
    distribution: Distribution | None = None
    storages: Mapping[str, str] = field(default_factory=dict)
    """Container engines by the folder that they are configured to keep their storage in."""
    azure: bool = False
    """The machine is an Azure VM, by its chassis asset tag."""
    azfiles: bool = False
    """The package azfiles-nfs is installed: its mount.aznfs mounts an address of its own without TLS, too."""
    vast: bool = False
    """VAST's own NFS client is installed; its modules replace the kernel's."""
    page_kb: int = 4
    problems: tuple[ParseError, ...] = ()
    faults: tuple[ParseError, ...] = ()
    root: str = "/"
    """The folder below which it was seen: "/" for this host."""
    stanzas: Mapping[tuple[str, str], MountStats] = field(init=False, repr=False, compare=False)
    """`stats` by source and mount point, which is all that they name: where stanzas of different ages have
    the same, none of them."""
    stand_ins: Mapping[str, str] = field(init=False, repr=False, compare=False)
    """The addresses of `tunnels` that stand in for servers, by the server's name."""

    def __post_init__(self) -> None:
        stanzas = {(stanza.source, stanza.point): stanza for stanza in self.stats}
        for stanza in self.stats:  # the mounts of a superblock have one age
            shown = stanzas.get((stanza.source, stanza.point))
            if shown is not None and shown.age_s != stanza.age_s:
                del stanzas[stanza.source, stanza.point]
        object.__setattr__(self, "stanzas", stanzas)
        names = {tunnel.host: tunnel.stands_in for tunnel in self.tunnels if tunnel.stands_in is not None}
        object.__setattr__(self, "stand_ins", names)

    def stanza_of(self, mount: Mount, superblock: Superblock | None) -> MountStats | None:
        """Return the stanza of a mount, or of another mount of its superblock, which has the same counters.

        mountstats is of the host's own mount namespace. A mount in another may have the source and the mount
        point of one of the host's, and be another superblock.
        """
        known = (mount, *superblock.mounts) if superblock is not None else (mount,)
        places = ((each.source, each.point) for each in known if not each.foreign)
        return next((self.stanzas[place] for place in places if place in self.stanzas), None)


class Endpoint(NamedTuple):
    """The real server of a mount, behind tunnels and aliases."""

    host: str
    address: str | None
    port: int
    provider: str
    """The name of the built-in profile for the server's kind, such as "azure-files"; "generic" for any."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The read-ahead that a superblock should have, and why."""

    kb: int | None
    """The profile's number; None where the policy has no opinion."""
    profile: str
    provider: str
    lower: bool
    """Whether a larger value may be lowered."""
    why: str
    conflict: bool = False
    """The mounts of the superblock ask for different values."""
    most_kb: int | None = None
    """The bound up to which its reads may move it; None where they may not."""
    by_need: bool = False
    """The profile has no number: its reads may move it up where they wait for the server."""
    adapted_kb: int | None = None
    """The number to which its reads have moved it; None where it is the profile's."""

    @property
    def target_kb(self) -> int | None:
        """The number that the superblock should have now."""
        return self.kb if self.adapted_kb is None else self.adapted_kb


@dataclass(frozen=True, slots=True)
class Action:
    """A change of a superblock's read-ahead; `bdi` makes sure that it is still the same superblock."""

    kind: str
    """Always "read-ahead"."""
    device: str
    bdi: int
    target: str
    """For people: the mount point, or the device number where no mount is visible."""
    old_kb: int
    new_kb: int
    why: str


class Result(str, Enum):
    """The result of an action."""

    PLANNED = "planned"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """An action and its result; `reason` says why it was not done, or has the decision."""

    action: Action
    result: Result
    reason: str


class PodVolume(NamedTuple):
    """A volume that a kubelet mounted for a pod; a name is None where no file of the host has it."""

    namespace: str | None = None
    """The pod's, which is the claim's as well."""
    persistentvolumeclaim: str | None = None
    persistentvolume: str | None = None
    """Of a volume in the pod's own manifest the name there: the kubelet's path is the same."""
    pod: str | None = None


class KubeletNames(NamedTuple):
    """The names that a host's files have for a kubelet's volumes."""

    pods: Mapping[str, str]
    """By the pod's UID: "media/web-0", its namespace and name."""
    handles: Mapping[str, str]
    """By the mount point of a CSI volume: "file.csi.azure.com, volume rg#account#share"."""
