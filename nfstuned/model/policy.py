"""The policy: profiles, their assignment to mounts, and its JSON for the daemon."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

LEAST_KB, MOST_KB = 64, 65536
"""The bounds of every read-ahead that nfstuned writes, in KiB: a 64 KiB page, and four times the largest
value that a vendor names. The kernel itself has no upper bound."""
KERNEL_KB = 128
"""The read-ahead of every NFS mount since Linux 5.4, and in some vendors' older kernels."""
SIZE_UNITS = {"G": 1 << 30, "M": 1 << 20, "K": 1 << 10}
"""The bytes of the units of sizes in the configuration."""
SAMPLE_INTERVAL_S = 60.0
"""The default."""
WORKLOAD_MARK = "+"
"""The sign between the names of a profile and of the workload that changed it; no name contains it."""
OBSERVE = "observe"
ADAPT_OFF, ADAPT_DOWN, ADAPT_ON = "off", "down", "on"
"""How far a mount's reads may move its read-ahead: not at all; below the profile's number where they waste
it, and back; or up as well, where the profile has no number and they wait for the server."""
RANDOM = "random"
"""The built-in workload of files that are read here and there (data/workloads)."""
_READ_AHEAD = "read_ahead_kb"


class ConfigError(Exception):
    """The administrator's configuration cannot be used: every problem, each on one line.

    Each problem names the file, the key, the value and the allowed values.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class UnvalidatedError(ConfigError):
    """The configuration could not be read or validated now; it may be right: try again later."""


@dataclass(frozen=True, slots=True)
class Source:
    """A page that recommends some of a profile's numbers, and the date (or the month) of its reading."""

    url: str
    read: str
    keys: tuple[str, ...] = ()
    """The profile's keys, as in the configuration: it recommends their values, or says why they are unset."""
    title: str = ""


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """A read-ahead: either `kb` KiB, or `times_rsize` times the mount's rsize; the other is None."""

    kb: int | None = None
    times_rsize: int | None = None
    own: bool = False
    """It is an administrator's number: the service never moves it."""


class Setter(NamedTuple):
    """A line of an administrator's file that sets a number of a profile."""

    key: str
    """As in the configuration."""
    value: int | str
    place: str
    """`file:line`."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The use that programs make of a mount, and the best read-ahead for it."""

    name: str
    about: str = ""
    """For people: how programs read and write, in a few words."""
    read_ahead_kb: int | None = None
    """None where the profile's own is best."""
    own: bool = False
    """The number is an administrator's."""
    adapt: str = ""
    """"" where the profile's counts."""
    sources: tuple[Source, ...] = ()
    place: str = ""
    """`file:line` of an administrator's number; "" for a built-in one."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The values for a kind of server; `None` means no opinion."""

    name: str
    read_ahead: ReadAhead | None = None
    read_ahead_max_kb: int | None = None
    lower: bool = False
    """Whether a read-ahead above the profile's is lowered; otherwise nfstuned only raises."""
    adapt: str = ADAPT_DOWN
    """An administrator's number stays where it is in spite of it (`moves`)."""
    nconnect: int | None = None
    nconnect_max: int | None = None
    """1 for a server that does not support nconnect."""
    nconnect_depends: str | None = None
    """The condition of the number, for people, where the vendor names several: then `nconnect` is None."""
    nconnect_not_for: tuple[str, ...] = ()
    """The versions of NFS, "3" or "4.0", for which nconnect is not recommended."""
    rsize_max: int | None = None
    """In bytes."""
    actimeo_min: int | None = None
    """The least attribute cache time in seconds."""
    max_channels: int | None = None
    """Of an SMB mount; nfstuned only advises on those."""
    sources: tuple[Source, ...] = ()
    inherits: str = ""
    """The built-in profile from which an administrator's profile inherits, if any."""
    builtin: bool = False
    """It comes with nfstuned, perhaps with an administrator's changes."""
    setters: tuple[Setter, ...] = ()
    """The administrator's lines for read_ahead_kb and nconnect; the last of a key counts."""

    @property
    def base(self) -> str:
        """The profile that vendors' rules mean: the built-in profile that this inherits from, else itself."""
        return self.inherits or self.name

    @property
    def moves(self) -> str:
        """How far reads may move its read-ahead."""
        return ADAPT_OFF if self.read_ahead and self.read_ahead.own else self.adapt

    def most_connections(self, version: str | None) -> int | None:
        """Return the most connections that it allows with a version of NFS, "3" or "4.1"; None: no bound.

        nconnect counts as recommended for an unknown version.
        """
        return 1 if version in self.nconnect_not_for else self.nconnect_max

    def working(self, workload: Workload) -> Profile:
        """Return the profile with a workload's changes, named after both with WORKLOAD_MARK between them.

        Its read-ahead is the workload's, lowered where it must be, and never above the profile's limit. The
        rules of the profile's vendor still count.
        """
        named = replace(
            self,
            name=f"{self.name}{WORKLOAD_MARK}{workload.name}",
            inherits=self.base,
            adapt=workload.adapt or self.adapt,
        )
        kb, most = workload.read_ahead_kb, self.read_ahead_max_kb
        if kb is None:
            return named
        others = (
            replace(source, keys=tuple(key for key in source.keys if key != _READ_AHEAD))
            for source in self.sources
        )
        return replace(
            named,
            read_ahead=ReadAhead(kb=min(kb, most) if most else kb, own=workload.own),
            lower=True,
            sources=(*workload.sources, *(source for source in others if source.keys)),
        )


@dataclass(frozen=True, slots=True)
class Provider:
    """The signs of a provider's servers; the profile of the same name is for them."""

    name: str
    servers: tuple[str, ...] = ()
    """Regular expressions (re.VERBOSE) for whole names in lower case."""
    misnamed: tuple[str, ...] = ()
    """Regular expressions, as of `servers`, for names that people write instead and that no server has.

    A group has the name of the part of `name_form` that it stands for.
    """
    name_form: str = ""
    """The form of its servers' names, for people."""
    client_options: tuple[str, ...] = ()
    """Mount options of the provider's own client that no other client takes."""
    implementation: str = ""
    """A part, in lower case, of the name that its servers give themselves (NFSv4.1's impl_id)."""
    azure: bool = False
    """Whether `implementation` means this provider on VMs of Azure, or elsewhere."""
    title: str = ""
    """Its name for people."""
    versions: tuple[str, ...] = ()
    """The versions of NFS that its servers have, "3" or "4.1"; () where all may be there."""
    flavours: tuple[str, ...] = ()
    """The security flavours of its servers; () where all may be there."""
    absent_dialects: tuple[str, ...] = ()
    """Dialects of SMB that its servers do not have, "1.0" or "2.0.2"."""
    export: str = ""
    """The form of its exports, "/ACCOUNT/SHARE" with the server's own account; "" for any.

    At the end "/" stands for a folder within, which may follow.
    """
    locks: bool = True
    """Whether its servers have the lock service of NFS 3."""
    noresvport: str = ""
    """The page that asks for this mount option; "" where none does."""
    noresvport_before: str = ""
    """The first kernel that the page does not ask it of, "5.18"; "" where it asks on every kernel."""
    noresvport_by_client: bool = False
    """Whether the provider's own client sets the option on every kernel."""
    limits: str = ""
    """The page with the limits of its servers."""


@dataclass(frozen=True, slots=True)
class Match:
    """The mounts of a [[policy]]; an empty field matches all. Globs as in fnmatch; servers may be CIDR."""

    server: tuple[str, ...] = ()
    export: tuple[str, ...] = ()
    mount_point: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """A [[policy]] entry: mounts that match get the profile with the workload's changes."""

    match: Match
    profile: str
    """"" for the profile of the mount's provider."""
    origin: str
    """Position and file, for people: "policy 2 of /etc/nfstuned/nfstuned.toml"."""
    workload: str = ""
    adapt: str = ""
    """"" where the profile's or the workload's counts."""
    place: str = ""
    """`file:line` of its table."""


@dataclass(frozen=True, slots=True)
class Prometheus:
    """The daemon's metrics; the exporter's unit asks for its file by itself."""

    textfile: str = ""
    """The absolute path of a file that is written at each sample; "" for none."""
    max_mounts: int = 200
    """The largest number of superblocks with metrics."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The whole configuration, validated, inheritance resolved.

    It is compared by identity: it is the key of caches that are read for each mount.
    """

    profiles: tuple[Profile, ...]
    assignments: tuple[Assignment, ...] = ()
    sample_interval_s: float = SAMPLE_INTERVAL_S
    """0 means that no samples are taken."""
    restore_on_stop: bool = False
    mode: str = "tune"
    """"observe" for a service that writes no read-ahead and persists no nconnect."""
    mode_place: str = ""
    """`file:line` of `mode`; "" for the default."""
    nconnect_mode: str = "advise"
    sample_file: str = ""
    """The absolute path of a file for samples as JSON lines; "" for the journal alone."""
    sample_file_bytes: int = 16 << 20
    """The size at which the file is rotated; 0 leaves that to another program."""
    sample_files_kept: int = 4
    """The number of rotated files that are not removed."""
    prometheus: Prometheus = Prometheus()
    files: tuple[str, ...] = field(default=())
    """The administrator's files, in order."""
    workloads: tuple[Workload, ...] = ()
    providers: tuple[Provider, ...] = ()

    @property
    def observes(self) -> bool:
        """Whether the service only reports the values that it would write."""
        return self.mode == OBSERVE

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def profile(self, name: str) -> Profile:
        """Return the profile of that name, with the changes of a workload in the name; raises KeyError."""
        plain, _, work = name.partition(WORKLOAD_MARK)
        for profile in self.profiles:
            if profile.name == plain:
                workload = self.workload(work)
                return profile.working(workload) if workload else profile
        raise KeyError(name)

    def workload(self, name: str) -> Workload | None:
        """Return the workload of that name; None for "" and another name."""
        return next((workload for workload in self.workloads if workload.name == name), None)


def policy_to_json(policy: Policy) -> str:
    """Return the policy as a JSON object; its keys are the fields' names."""
    return json.dumps(asdict(policy))


def policy_from_json(text: str) -> Policy:
    """Return the policy that `policy_to_json` wrote; raises ValueError for anything else."""
    try:
        values = json.loads(text, object_hook=_values)
        tables = {
            "profiles": tuple(Profile(**profile) for profile in values["profiles"]),
            "assignments": tuple(
                Assignment(**{**entry, "match": Match(**entry["match"])}) for entry in values["assignments"]
            ),
            "prometheus": Prometheus(**values["prometheus"]),
            "workloads": tuple(Workload(**workload) for workload in values["workloads"]),
            "providers": tuple(Provider(**provider) for provider in values["providers"]),
        }
        return Policy(**{**values, **tables})
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a policy: {error!r}") from None


def _values(table: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a JSON object with tuples for lists, and sources and a read-ahead as values."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        values[key] = tuple(value) if isinstance(value, list) else value
    if "sources" in values:
        values["sources"] = tuple(Source(**source) for source in values["sources"])
    if "setters" in values:
        values["setters"] = tuple(Setter(*setter) for setter in values["setters"])
    if isinstance(values.get("read_ahead"), dict):
        values["read_ahead"] = ReadAhead(**values["read_ahead"])
    return values
