"""The facts about a host or an image, the rules that judge them, and the report of a check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from nfstuned.errors import MapError, ParseError
from nfstuned.model.kernel import Mount, MountStats, Options, is_v3, nfs_protocol, nfs_version, version_text
from nfstuned.model.mounts import (
    AZURE_FILES,
    FSTAB,
    NETAPP,
    NFS_TYPES,
    SMB_TYPES,
    Asked,
    Decision,
    Endpoint,
    Login,
    Maker,
    Request,
    Setting,
    Snapshot,
    Superblock,
    UnitState,
)
from nfstuned.model.policy import Policy, Profile
from nfstuned.model.stalls import Stalled
from nfstuned.model.system import Answer, Interface, Network, SmbOps, SmbSession, System
from nfstuned.model.udev import UdevFile

if TYPE_CHECKING:
    from nfstuned.model.samples import Sample


class Severity(str, Enum):
    """The severities of findings, the worst first."""

    ERROR = "error"
    """It will not work, or the vendor does not support it."""
    WARNING = "warning"
    """It loses performance, or is not guaranteed."""
    ADVICE = "advice"
    """Better for most."""
    INFO = "info"
    """Worth knowing."""

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


class Need(Enum):
    """The conditions of rules. A rule without them is skipped and counted."""

    HOST = "a host or an image"
    LIVE = "a running kernel"
    NETWORK = "the network"
    SAMPLE = "two looks: --sample SECONDS"
    IMAGE = "an image: --root"
    KERNEL = "a kernel's release"
    """A host or an image has it, known or not; for a file alone it has to be given. So has NFS_UTILS."""
    NFS_UTILS = "the version of nfs-utils"


class Fix(NamedTuple):
    """A change of a text that is right whatever else the file has."""

    place: str
    """`file:line`."""
    old: str
    """An option, or several with commas, which the line has once."""
    new: str


class Fault(NamedTuple):
    """A mistake that a rule sees; the runner adds the rule's own fields."""

    subject: str
    """The mount point of a live mount, `/etc/fstab:7` of a mount only asked for, or an interface."""
    message: str
    """A sentence with the mistake and its consequence."""
    observed: str = ""
    expected: str = ""
    remedy: str = ""
    """A command, or a change to a named file."""
    source: str = ""
    """The source, where it is not the rule's own."""
    severity: Severity | None = None
    """The severity, where it is not the rule's own."""
    fixes: tuple[Fix, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the catalogue; its id and name never change their meaning."""

    id: str
    name: str
    severity: Severity
    results: Callable[[Facts], Iterator[Fault | Need | str]]
    """It yields faults, a need that some of them depend on and that the facts lack, and doubts for people."""
    source: str
    """The page, kernel file or manual on which it is based."""
    needs: frozenset[Need] = frozenset()
    default: bool = True
    """False where it describes and finds no fault: it is judged for those who ask for it."""

    def judge(self, facts: Facts) -> Iterator[Fault]:
        """Yield the faults of a host, an image or a file."""
        return (result for result in self.results(facts) if isinstance(result, Fault))

    @property
    def family(self) -> str:
        """The ids' common start: "NFS1" for read-ahead."""
        return self.id[:4]


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding, with the fields of `nfstuned.check/1` in docs/json.md."""

    rule: str
    name: str
    severity: Severity
    subject: str
    message: str
    observed: str
    expected: str
    remedy: str
    source: str
    fixes: tuple[Fix, ...] = ()


class Ignore(NamedTuple):
    """A comment in a file that accepts the findings of rules about a line."""

    file: str
    line: int
    """The line of the comment."""
    meant: int
    """The line for which it is: its own, or the next line that is no comment."""
    words: tuple[str, ...]
    """Ids and names of rules, or starts of ids; () where it names no rule, and then accepts nothing."""


NO_NEEDS: Mapping[str, frozenset[Need]] = MappingProxyType({})
NO_LOGINS: Mapping[str, Login] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The results of all rules."""

    findings: tuple[Finding, ...]
    skipped: tuple[str, ...]
    """The ids of the rules that were skipped, because the facts lack their needs."""
    lacking: Mapping[str, frozenset[Need]] = field(default_factory=lambda: NO_NEEDS)
    """By the id of a skipped rule: the needs that the facts lack."""
    crashed: bool = False
    """A rule raised: the verdict is not complete."""
    doubts: tuple[str, ...] = ()
    """Unanswered questions and texts that were not understood, for people, each once."""
    ignored: int = 0
    """The number of findings that comments in the files accept."""
    accepted: int = 0
    """The number of findings that [check] or a baseline accepts."""


NO_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType({})
NO_FILES: Mapping[str, str] = MappingProxyType({})


Identity = tuple[str, int, str, str]
"""The identity of a mount among the mounts of its Facts."""


@dataclass(frozen=True, slots=True)
class Target:
    """A network mount: live, asked for by a file, or both (a live mount and its fstab line are joined)."""

    subject: str
    """The mount point of a live mount; `file:line` of a mount that is only asked for."""
    point: str
    source: str
    fstype: str
    endpoint: Endpoint
    profile: Profile
    live: Mount | None = None
    superblock: Superblock | None = None
    decision: Decision | None = None
    stats: MountStats | None = None
    asked: tuple[Asked, ...] = ()
    """The options that were or will be asked for, and those that nfsmount.conf adds, each with its origin."""
    request: Request | None = None
    """The line of fstab, a unit or an autofs map that asks for it; None for a mount made by hand."""
    program: Maker | None = None
    """The program that made it, where no line asks for it; None for a mount made by hand."""
    # These are read often, so they are made once.
    wanted: Options = field(init=False, repr=False, compare=False)
    """The options that are asked for."""
    options: Options = field(init=False, repr=False, compare=False)
    """The options in effect where it is mounted, else those that are asked for."""
    asked_nconnect: int | None = field(init=False, repr=False, compare=False)
    """The nconnect that was or will be asked for, 1 where the option is absent; None if unknown."""
    version: str | None = field(init=False, repr=False, compare=False)
    """The NFS version, "3" or "4.1"; "4" where the minor one is negotiated, None where all is.

    Azure Files has 4.1 only, so that negotiation ends there.
    """
    most_connections: int | None = field(init=False, repr=False, compare=False)
    """The most connections that its profile allows with its version; None: no bound."""
    protocol: str = field(init=False, repr=False, compare=False)
    """"tcp", "udp" or "rdma", for IPv6 as for IPv4."""
    is_azure_files: bool = field(init=False, repr=False, compare=False)
    """Whether it is of Azure Files, by its server or by the administrator's policy."""
    is_netapp: bool = field(init=False, repr=False, compare=False)
    """Whether it is of Azure NetApp Files, by the administrator's policy or else by its server.

    No server's name shows it. A server that calls itself NetApp on an Azure VM may be another ONTAP: a policy
    then gives it the profile of another provider. A profile of the administrator's own leaves it open.
    """
    identity: Identity = field(init=False, repr=False, compare=False)
    """The mount's key in dictionaries: its place in the mount table, or the line that asks for it."""

    def __post_init__(self) -> None:
        wanted = Options(tuple((option.name, option.value) for option in self.asked))
        object.__setattr__(self, "wanted", wanted)
        object.__setattr__(self, "options", wanted if self.live is None else self.live.options)
        self._set_requested_values()
        base, provider = self.profile.base, self.endpoint.provider
        own = not self.profile.builtin and not self.profile.inherits
        object.__setattr__(self, "is_azure_files", AZURE_FILES in {provider, base})
        object.__setattr__(self, "is_netapp", base == NETAPP or (provider == NETAPP and own))
        if self.live is not None:
            place: tuple[str, int] = (self.live.device, self.live.mount_id)
        else:
            place = (self.request.file, self.request.line) if self.request else (self.subject, 0)
        object.__setattr__(self, "identity", (*place, self.point, self.source))

    def _set_requested_values(self) -> None:
        asked = None if not self.asked and self.request is None else 1
        if "nconnect" in self.wanted:
            asked = self.wanted.number("nconnect")
        named = nfs_version(self.fstype, self.options)
        if named in {None, (4, None)} and self.endpoint.provider == AZURE_FILES:
            named = (4, 1)
        object.__setattr__(self, "asked_nconnect", asked)
        version = version_text(named) if named is not None else None
        object.__setattr__(self, "version", version)
        object.__setattr__(self, "most_connections", self.profile.most_connections(version))
        object.__setattr__(self, "protocol", nfs_protocol(self.options))

    @property
    def is_v3(self) -> bool:
        """Whether its options name version 3."""
        return is_v3(self.fstype, self.options)

    @property
    def foreign(self) -> bool:
        """Whether another mount namespace has the mount: its mount point is a path of that namespace."""
        return self.live is not None and self.live.foreign

    @property
    def elsewhere(self) -> bool:
        """Whether it is another namespace's alone: no file of this host asks for it.

        Its resolver, network and programs may not be this host's.
        """
        return self.foreign and self.request is None

    @property
    def is_nfs(self) -> bool:
        """Whether it is NFS, also through a helper's own type such as aznfs."""
        return self.fstype in NFS_TYPES

    @property
    def is_smb(self) -> bool:
        """Whether it is SMB through the kernel's cifs."""
        return self.fstype in SMB_TYPES

    @property
    def places(self) -> frozenset[str]:
        """Its subject, and the lines with its options where a file has several."""
        request = self.request
        lines = request.lines if request is not None and self.live is None else ()
        return frozenset({self.subject, *(f"{request.file}:{line}" for line in lines if request)})

    @property
    def origin(self) -> str:
        """The line that asks for it, "" for a mount made by hand."""
        return f"{self.request.file}:{self.request.line}" if self.request else ""

    @property
    def maker(self) -> Maker | None:
        """Who makes it; None for a mount made by hand."""
        return self.request.maker if self.request else self.program

    @property
    def by_program(self) -> bool:
        """Whether a program made it, and must also mount it again; an automounter lets people unmount."""
        return self.request is None and not self.foreign and self.program not in {None, Maker.AUTOFS}


class AbsentMount(NamedTuple):
    """A mount that a file asks for and that nobody has made, at two moments some seconds apart."""

    target: Target
    unit: str
    state: UnitState
    entries: int | None = None
    """The number of names in the folder of its mount point; None where the folder must not be read."""


class Traffic(NamedTuple):
    """The bytes that an interface carried between two looks."""

    interface: str
    received: int
    sent: int


@dataclass(frozen=True, slots=True)
class Measured:
    """The difference of two looks at the counters, some seconds apart."""

    seconds: float
    samples: tuple[Sample, ...] = ()
    sends: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Per device: the requests that each connection sent between the looks, in the kernel's order."""
    sessions: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Per device: the new sessions of the NFSv4 client of its server between the looks."""
    traffic: tuple[Traffic, ...] = ()
    smb: tuple[SmbOps, ...] = ()
    tunnels: Mapping[str, tuple[float, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """By a tunnel's configuration: each thread's part of a processor between the looks, the largest first."""


@dataclass(frozen=True, slots=True)
class Facts:
    """A host or an image at one moment, for the rules; equal to itself alone.

    So results can be cached by facts, without comparing each value.
    """

    has: frozenset[Need]
    snapshot: Snapshot
    policy: Policy
    targets: tuple[Target, ...] = ()
    udev: tuple[UdevFile, ...] = ()
    """In udev's order."""
    udev_unread: tuple[UdevFile, ...] = ()
    """Files in its folders that udev does not read, because of their names."""
    writers: tuple[Setting, ...] = ()
    """Settings of other programs that write a read-ahead; their section is the program.

    nfsrahead's are all settings of nfs.conf, in the order of its reading: the last of a name counts. TuneD's
    name is the path in sysfs, which may be a pattern.
    """
    network: Network = field(default_factory=Network)
    system: System = field(default_factory=System)
    smb: tuple[SmbSession, ...] = ()
    logins: Mapping[str, Login] = field(default_factory=lambda: NO_LOGINS)
    """The files with credentials that lines name, by their paths: those that could be looked at."""
    measured: Measured | None = None
    stalled: Stalled | None = None
    """The service's last state; None where it does not run or does not sample."""
    nfs_inodes: int | None = None
    """How many inodes of NFS the kernel holds; None without Azure Files, or where only root may ask."""
    waiters: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: NO_NAMES)
    """By the device of a stalled superblock: waiting programs with files of it, which only root can see."""
    now_s: float | None = None
    """The time of the check in Unix time; None for an image."""
    kernel_message: str = ""
    """The kernel's last message about a server's answers, where superblocks are stalled."""
    absent: tuple[AbsentMount, ...] = ()
    proposal: str = ""
    """The name of the file that is judged instead of /etc/fstab."""
    files: Mapping[str, str] = field(default_factory=lambda: NO_FILES)
    """The files that are judged without a host, each with its kind for people."""
    ignores: tuple[Ignore, ...] = ()
    """The comments in the files that accept findings."""
    unknown: tuple[str, ...] = ()
    """The questions without an answer, for people: "sa1.file.core.windows.net: no answer within 3 s"."""
    faults: tuple[ParseError, ...] = ()
    """The existing files and folders that could not be read: their content is not known."""
    nfs: tuple[Target, ...] = field(init=False, repr=False)
    """The NFS mounts."""
    azure_files: tuple[Target, ...] = field(init=False, repr=False)
    """The NFS mounts of Azure Files."""
    smb_mounts: tuple[Target, ...] = field(init=False, repr=False)
    """The SMB mounts."""
    answers: Mapping[str, Answer] = field(init=False, repr=False)
    """The resolver's answers by host name."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __post_init__(self) -> None:
        nfs = tuple(target for target in self.targets if target.is_nfs)
        object.__setattr__(self, "nfs", nfs)
        object.__setattr__(self, "azure_files", tuple(target for target in nfs if target.is_azure_files))
        object.__setattr__(self, "answers", self.network.by_name)
        object.__setattr__(self, "smb_mounts", tuple(target for target in self.targets if target.is_smb))

    @property
    def has_files(self) -> bool:
        """Whether they are facts of files alone, without a host or an image."""
        return Need.HOST not in self.has

    @property
    def image(self) -> bool:
        """Whether they are facts of an image, in which nothing runs, instead of the running host."""
        return Need.IMAGE in self.has

    @property
    def folder(self) -> str:
        """The folder with the files of the image, in the user's words; "" for a host."""
        return self.snapshot.root.rstrip("/") if self.image else ""

    @property
    def running(self) -> bool:
        """Whether they are facts of the running host, which a command can make read a change."""
        return Need.LIVE in self.has

    def lacks(self, need: Need) -> Iterator[Need]:
        """Yield a need where they lack it: for a rule with faults that depend on it."""
        if need not in self.has:
            yield need

    def interface(self, name: str) -> Interface | None:
        """Return an interface by name."""
        return next((interface for interface in self.network.interfaces if interface.name == name), None)


CLEAN, FINDINGS, BROKEN = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Report:
    """The source of every format of the output."""

    root: str
    """The host's root in the user's words: "/" for the live host."""
    facts: Facts
    rules: tuple[Rule, ...]
    """The rules that were chosen, also those that were skipped."""
    diagnosis: Diagnosis
    fail_on: Severity = Severity.WARNING
    host: str = "localhost"
    """The host on which the check ran, also the check of an image or a file."""
    time_s: float = 0.0
    """When it began, in Unix time."""

    @property
    def sources(self) -> Mapping[str, str]:
        """The sources of mounts by the places of findings, where all mounts of a place have the same."""
        sources: dict[str, set[str]] = {}
        for target in self.facts.targets:
            for place in target.places:
                sources.setdefault(place, set()).add(target.source)
        return {place: next(iter(those)) for place, those in sources.items() if len(those) == 1}

    @property
    def exit_code(self) -> int:
        """0 where no finding is as bad as `fail_on`, else 1; 2 after a crash or with an unread file."""
        if self.diagnosis.crashed or self.unjudged:
            return BROKEN
        return FINDINGS if any(self.fails(finding) for finding in self.diagnosis.findings) else CLEAN

    @property
    def unjudged(self) -> tuple[ParseError, ...]:
        """The problems of fstab and the automounter's maps, or of the proposal, and the unread files."""
        proposal, problems = self.facts.proposal, self.facts.snapshot.problems
        bad = [
            problem
            for problem in problems
            if problem.file == (proposal or FSTAB)
            or (not proposal and isinstance(problem, MapError))
            or self.facts.has_files
        ]
        return tuple({str(problem): problem for problem in (*bad, *self.facts.faults)}.values())

    def fails(self, finding: Finding) -> bool:
        """Whether a finding is as bad as `fail_on`, or worse."""
        return finding.severity.rank <= self.fail_on.rank

    def number(self, severity: Severity) -> int:
        """Return the number of findings with this severity."""
        return sum(1 for finding in self.diagnosis.findings if finding.severity is severity)

    @property
    def skipped(self) -> tuple[Rule, ...]:
        """The rules that were skipped, because the facts lack something that they need."""
        return tuple(rule for rule in self.rules if rule.id in self.diagnosis.skipped)

    @property
    def doubts(self) -> tuple[str, ...]:
        """The unanswered questions and the problems, for people, each once."""
        return self.diagnosis.doubts
