"""The changes that commands make, the files of an installation, and the steps of a remount."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Protocol

from nfstuned.model.kernel import Mount, MountNode
from nfstuned.model.mounts import Result, UnitState

_COMMANDS = (
    "apply", "bake", "bench", "check", "completion", "config", "daemon", "explain", "exporter",
    "install-files", "merge", "nconnect", "nconnect-fstab", "nconnect-persist", "nconnect-remount", "report",
    "rules", "samples", "status", "top", "udev", "undo", "wait", "why",
)  # fmt: skip
_MANUAL = ("nfstuned.1", *(f"nfstuned-{name}.1" for name in _COMMANDS), "nfstuned.toml.5", "nfstuned.8")
FILES = MappingProxyType(
    {
        "systemd/nfstuned.service": "lib/systemd/system/nfstuned.service",
        "systemd/nfstuned-persist.path": "lib/systemd/system/nfstuned-persist.path",
        "systemd/nfstuned-persist.service": "lib/systemd/system/nfstuned-persist.service",
        "systemd/nfstuned-check.service": "lib/systemd/system/nfstuned-check.service",
        "systemd/nfstuned-check.timer": "lib/systemd/system/nfstuned-check.timer",
        "systemd/nfstuned-identity.service": "lib/systemd/system/nfstuned-identity.service",
        "systemd/nfstuned-exporter.service": "lib/systemd/system/nfstuned-exporter.service",
        "docs/prometheus/nfstuned.rules.yml": "share/nfstuned/nfstuned.rules.yml",
        "docs/prometheus/nfstuned.dashboard.json": "share/nfstuned/nfstuned.dashboard.json",
        "docs/prometheus/nfstuned.fleet.dashboard.json": "share/nfstuned/nfstuned.fleet.dashboard.json",
        "systemd/90-nfstuned.preset": "lib/systemd/system-preset/90-nfstuned.preset",
        "systemd/nfstuned.catalog": "lib/systemd/catalog/nfstuned.catalog",
        **{f"docs/man/{page}": f"share/man/man{page[-1]}/{page}" for page in _MANUAL},
        "docs/completion/nfstuned.bash": "share/bash-completion/completions/nfstuned",
        "docs/completion/_nfstuned": "share/zsh/site-functions/_nfstuned",
        "docs/completion/nfstuned.fish": "share/fish/vendor_completions.d/nfstuned.fish",
    }
)
"""By the name in the repository: the place below /usr or /usr/local; systemd and man read both."""
RULE, IDENTITY = "udev/99-nfstuned.rules", "systemd/nfstuned-identity.service"
"""Files that an image may have without the program: the udev rule that does without the service, and the unit
that gives the NFSv4 client its identity."""
SERVICES = tuple(name for name in FILES if name.endswith(".service") and name != IDENTITY)
"""The units that start the program."""


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link, which stands where another file would have its bytes."""

    target: str


Content = bytes | Link
LINK = "-> "
"""How the digest of a link begins."""


def digest(content: Content) -> str:
    """Return a file's fingerprint: the SHA-256 of its bytes; of a link "-> " and its target."""
    if isinstance(content, Link):
        return f"{LINK}{content.target}"
    import hashlib  # noqa: PLC0415 - the daemon does without

    return hashlib.sha256(content).hexdigest()


def is_file(fingerprint: str | None) -> bool:
    """Return whether a digest belongs to a regular file; None is the digest of no file."""
    return bool(fingerprint) and not str(fingerprint).startswith(LINK)


def encoded(text: str) -> bytes:
    """Return the bytes of a text that was read; surrogate escapes become the bytes that were not UTF-8."""
    return text.encode("utf-8", "surrogateescape")


class FileStep(Enum):
    """The step for a file; the values are for people."""

    WRITE = "write"
    SAME = "unchanged"
    REMOVE = "remove"
    REFUSE = "refused"
    """The file was not written by nfstuned: nothing at all is changed."""
    KEEP = "kept"
    """It was written by nfstuned, but somebody has changed it since."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A file, and the step for it."""

    path: str
    """Below the root, without a leading slash."""
    step: FileStep
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Installed:
    """The files that were written, so that exactly these can be taken back."""

    digests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By path: the SHA-256 of the written text, or "-> " and where a link leads; two of them when a change of
    the file was cut short."""
    folders: tuple[str, ...] = ()
    """The folders that had to be made, each before those in it."""
    before: Mapping[str, str] = field(default_factory=dict)
    """By path: the text that a written file replaced, and that goes back there."""


@dataclass(frozen=True, slots=True)
class Work:
    """The planned steps for files; without `contents` all that was written is taken back."""

    steps: tuple[Placement, ...]
    contents: Mapping[str, Content]
    """The wanted content of each file."""
    found: Mapping[str, str | None]
    """The digest of each of these files, and of those written before, as they are now; None for no file."""
    replaced: Mapping[str, str] = field(default_factory=dict)
    """By path: the text of another command that a written file replaces, and that a removal puts back."""


class ChangeKind(str, Enum):
    """The subject of a change, by its name in JSON."""

    READ_AHEAD = "read-ahead"
    FSTAB = "fstab"
    """An entry of /etc/fstab."""
    PERSIST = "persist"
    """A [ Server ] section of nfstuned's own drop-in of nfsmount.conf."""
    REMOUNT = "remount"
    SERVICE = "service"
    RULE = "udev-rule"
    """A udev rule of an image, written or masked."""
    SECTION = "nconnect"
    """A [ Server ] section of that drop-in, in an image."""
    PARAMETER = "parameter"
    """A module parameter of an image."""
    IDENTITY = "identity"
    """The unit that gives the NFSv4 client of each clone of an image an identity of its own."""
    FILE = "file"
    """A file of an earlier bake that nothing asks for any more, or that is taken back."""


IMAGE_KINDS = frozenset({
    ChangeKind.SERVICE,
    ChangeKind.RULE,
    ChangeKind.SECTION,
    ChangeKind.PARAMETER,
    ChangeKind.IDENTITY,
    ChangeKind.FILE,
})  # fmt: skip
"""The kinds of changes of an image."""


Argv = tuple[str, ...]
"""A command, and its arguments, as root runs it."""


@dataclass(frozen=True, slots=True)
class Change:
    """A value that a command changes, or leaves as it is, and why."""

    kind: ChangeKind
    target: str
    """For people: a mount point, a server, a unit, a module's parameter, or a file or its line."""
    old: str | int | None
    """A read-ahead in KiB, a number of connections, or a state in words.

    None where there is no value: nobody set a number, or a section is not there.
    """
    new: str | int | None
    """The same; None where the value is removed."""
    result: Result
    reason: str
    place: str = ""
    """Of an entry of fstab its mount point; of an image the file, with a leading slash, if there is one."""
    mounted: bool = True
    """Of a mount, whether it is mounted now."""
    command: Argv | None = None
    """The command that is left to run for a mount that is not mounted now."""


def settled(changes: Iterable[Change], result: Result, reason: str = "") -> tuple[Change, ...]:
    """Return the changes with this result of those that were planned, and the reason unless it is ""."""
    return tuple(
        replace(change, result=result, reason=reason or change.reason)
        if change.result is Result.PLANNED
        else change
        for change in changes
    )


@dataclass(frozen=True, slots=True)
class Space:
    """Another mount namespace, seen through a process in it."""

    process: str
    """For people: "containerd-shim (4711)"."""
    nodes: tuple[MountNode, ...]


@dataclass(frozen=True, slots=True)
class BusyUse:
    """A process that keeps a superblock busy: `text` names it and its file there, for people."""

    device: str
    text: str


@dataclass(frozen=True, slots=True)
class PathUse:
    """A use that keeps a mount busy, known by a path of this mount namespace only."""

    path: str
    text: str


NO_UNITS: Mapping[str, UnitState] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Sight:
    """The observations of a host for remounts only; `nodes` are the mounts of this mount namespace.

    `spaces` are the other mount namespaces, `uses` those of processes, `paths` those of the kernel.
    """

    nodes: tuple[MountNode, ...] = ()
    spaces: tuple[Space, ...] = ()
    uses: tuple[BusyUse, ...] = ()
    paths: tuple[PathUse, ...] = ()
    volumes: frozenset[str] = frozenset()
    """Device numbers of the superblocks of this network namespace: only these can be mounted again here."""
    systemd: bool = False
    units: Mapping[str, UnitState] = field(default_factory=lambda: NO_UNITS)

    def node(self, mount: Mount | None) -> MountNode | None:
        """Return a live mount's line in the tree; None for a mount of another mount namespace."""
        identity = (mount.mount_id, mount.point) if mount is not None else None
        return next((node for node in self.nodes if (node.mount_id, node.point) == identity), None)


@dataclass(frozen=True, slots=True)
class NconnectStep:
    """The next step to another number of connections for mounts that share them."""

    points: tuple[str, ...]
    file: ChangeKind | None
    """FSTAB or PERSIST, the file that has to ask for the number first; None where none has to, or can."""
    obstacle: str
    """Why they cannot be mounted again now; "" where they can."""


@dataclass(frozen=True, slots=True)
class Part:
    """A mount of the group, and the commands that unmount it and make it again."""

    point: str
    mount_id: int
    leave: Argv
    make: Argv
    before: Argv | None
    """Makes the mount with its old options, where `make` fails or is not used; None: they are not known."""
    unit: str = ""
    """The mount unit that does it; "" for mount(8)."""
    from_file: bool = False
    """A unit or fstab has the options of the mount."""

    @property
    def back(self) -> tuple[Argv, ...]:
        """The commands that bring it back when the remount is given up, in the order of trying.

        A mount of a file is made as the file asks; a mount made by hand gets the options that it had.
        """
        if self.before is None:
            return (self.make,)
        return (self.make, self.before) if self.from_file else (self.before,)


@dataclass(frozen=True, slots=True)
class Connections:
    """The signs, after the unmounting, that a group's nfs_client is gone from the kernel."""

    version: int
    address: str
    port: int
    clients: int
    """Rows of /proc/fs/nfsfs/servers with this version, address and port.

    A group of another minor version of NFSv4 has a row of its own with the same three values.
    """
    superblocks: tuple[tuple[str, int], ...]
    """Device numbers, and the inodes of their bdi's read_ahead_kb, which differ for a new superblock.

    The superblocks that the kernel mounts and unmounts by itself are among them.
    """


@dataclass(frozen=True, slots=True)
class RemountPlan:
    """How a transport group is mounted again; `old` and `new` are numbers of connections."""

    old: int
    new: int
    reason: str
    going: tuple[Part, ...]
    """In the order of unmounting."""
    coming: tuple[Part, ...]
    """The same mounts in the order of mounting: the first decides about the connections."""
    connections: Connections
    reload: bool = False
    """systemd has not read its files since they were changed."""

    @property
    def commands(self) -> tuple[Argv, ...]:
        """All commands in their order."""
        reload = (RELOAD,) if self.reload else ()
        return (*reload, *(part.leave for part in self.going), *(part.make for part in self.coming))


RELOAD: Argv = ("systemctl", "daemon-reload")


@dataclass(frozen=True, slots=True)
class LeftGroup:
    """A group that is left as it is, and why; `old` and `new` are numbers of connections."""

    points: tuple[str, ...]
    old: int
    new: int
    reason: str
    result: Result = Result.FAILED


class Hands(Protocol):
    """The calls that carry out a remount.

    Each call ends within a deadline. `reload`, `unmount` and `mount` return "" or why they failed. A ""
    proves nothing: the caller asks `mounted` afterwards.
    """

    def reload(self, plan: RemountPlan) -> str:
        """Let systemd read its files, and look at the units of the plan afterwards."""

    def unmount(self, part: Part) -> str:
        """Unmount the part: not lazily, not by force, and no other mount that took its place since."""

    def mount(self, command: Argv) -> str:
        """Mount something by a command; not where the server does not answer."""

    def mounted(self, point: str) -> bool:
        """Return whether an NFS mount is at `point`."""

    def held(self, plan: RemountPlan) -> str:
        """Return the use that still keeps the connections; "" where they are gone."""

    def nconnect(self, point: str) -> int | None:
        """Return the number of connections in effect; None where nothing is mounted."""
