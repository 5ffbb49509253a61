"""A host to a Snapshot. Nothing here touches a mount: a dead server cannot hang it.

No capability is needed: /proc/PID/mountinfo and /proc/PID/net are for everyone to read, unlike /proc/PID/ns.
Two views differ by their content: mount ids are unique on the machine, so that the first id in mountinfo
names the mount namespace, and the inode of net/nfsfs names the network namespace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from nfstuned.errors import ParseError
from nfstuned.host.read_ahead import BDI_FOLDER, PAGE_KB, State, identities
from nfstuned.host.root import Root, demand_local, is_of_process
from nfstuned.model.kernel import Mount, MountStats, NfsClient, Stanza, Volume, bracketed
from nfstuned.model.mounts import SEEN_READS, Login, Request, Snapshot, Superblock, Tunnel
from nfstuned.model.stalls import STALLED, Stalled, stalled_from_json
from nfstuned.parse.etc.automaps import AutoMaps
from nfstuned.parse.etc.boot import Boot
from nfstuned.parse.etc.mount_units import MountUnits
from nfstuned.parse.etc.requests import Intent, parse_utab
from nfstuned.parse.etc.settings import MountConf, misplaced_lines, read_nfs_utils, read_storages
from nfstuned.parse.etc.tunnel import LOOPBACKS, parse_mountmap, parse_stunnel, unordered_mounts
from nfstuned.parse.etc.units import STRONG_UNIT_FOLDERS, WEAK_UNIT_FOLDERS
from nfstuned.parse.proc.machine import parse_major_faults, parse_nfs_inodes, parse_os_release, parse_release
from nfstuned.parse.proc.mounts import (
    follow_path,
    parse_clients,
    parse_mountinfo,
    parse_read_ahead,
    parse_volumes,
)
from nfstuned.parse.proc.mountstats import parse_mountstats, parse_stanzas

if TYPE_CHECKING:
    from nfstuned.model.effect import Seen

AZURE_TAG = "7783-7084-3265-9085-8269-3286-77"
"""The chassis asset tag of every Azure VM."""
AZFILES = "opt/microsoft/azfiles-nfs/common.sh"
"""A file of the package azfiles-nfs of AZNFS."""
VAST = "usr/bin/vastnfs-ctl"
"""A program of VAST's own NFS client (https://vastnfs.vastdata.com)."""
TUNNELS = (
    ("etc/stunnel/microsoft/aznfs/nfsv4_fileShare", "azure-files"),
    ("etc/stunnel/microsoft/azfiles-nfs/nfsv4_fileShare", "azure-files"),
    ("run/efs", "aws-efs"),
)
"""Where the mount helpers of AZNFS and efs-utils keep their stunnel configurations.

Newer releases of AZNFS have a package azfiles-nfs for Azure Files alone, with folders of its own.
"""
STAND_INS = (
    ("opt/microsoft/aznfs/data/mountmap", "azure-blob"),
    ("opt/microsoft/aznfs/data/mountmapv4notls", "azure-files"),
    ("opt/microsoft/azfiles-nfs/data/mountmapv4notls", "azure-files"),
)
"""Where AZNFS lists the private addresses that it sends to a server by DNAT."""
_PRIVATE = ("10.", "172.", "192.168.")
"""How those addresses begin: the helper takes none that is not private."""

_Stanzas = TypeVar("_Stanzas")


@dataclass(slots=True, eq=False)
class _Known:
    """The mounts and volumes that were read so far, by device number."""

    identities: dict[str, int]
    mounts: dict[str, list[Mount]] = field(default_factory=dict)
    places: set[tuple[str, str, str, str]] = field(default_factory=set)
    """The mounts' devices, points, roots and sources: copies in other namespaces have the same."""
    volumes: dict[str, tuple[Volume, tuple[NfsClient, ...]]] = field(default_factory=dict)
    problems: list[ParseError] = field(default_factory=list)

    def rows(self, parsed: Iterable[object]) -> list[object]:
        """Set the errors aside and return the rest."""
        values = list(parsed)
        self.problems += [value for value in values if isinstance(value, ParseError)]
        return [value for value in values if not isinstance(value, ParseError)]

    @property
    def devices(self) -> list[str]:
        """Return the device numbers of the NFS superblocks, mounted or not, in their order."""
        return sorted(
            {*self.mounts, *self.volumes}, key=lambda device: [int(part) for part in device.split(":")]
        )


def observe_host(root: Root) -> Snapshot:
    """Return all that is known of the NFS mounts of this host, in every namespace that can be seen."""
    with root.faults.block() as faults:
        snapshot = _superblocks(root, deep=True)
        stats, problems = observe_stats(root)
        decisive = deciding(faults.values())
    points = sorted({mount.point for superblock in snapshot.superblocks for mount in superblock.mounts})
    collected = observe_intent(root, points)
    rows = parse_utab(root.read_or_empty("run/mount/utab"))
    actual = [row for row in rows if isinstance(row, Request)]
    errors = [row for row in rows if isinstance(row, ParseError)]
    return replace(
        snapshot,
        stats=stats,
        faults=decisive,
        requests=(*actual, *collected.requests),
        misnamed=tuple(collected.misnamed),
        unloaded=tuple(collected.unloaded),
        unstarted=tuple(collected.unstarted),
        unordered=tuple(collected.unordered),
        local=tuple(collected.local),
        early=tuple(collected.early),
        misplaced=tuple(collected.misplaced),
        storages=collected.storages,
        settings=tuple(collected.settings),
        azfiles=root.exists(AZFILES),
        maps=tuple(collected.maps),
        automounted=tuple(collected.automounted),
        kernel=parse_release(root.read_or_empty("proc/sys/kernel/osrelease").strip()),
        distribution=parse_os_release(root.read_or_empty("etc/os-release")),
        problems=(*snapshot.problems, *problems, *errors, *collected.problems, *root.faults.unreported()),
    )


def do_nothing() -> None:
    """Do nothing between the steps of a look."""


def observe_superblocks(
    root: Root, *, deep: bool, between: Callable[[], None] = do_nothing, implementations: bool = False
) -> Snapshot:
    """Return the snapshot that plan() needs; `deep` looks into the namespaces of other processes, too.

    Servers' names for themselves are only read on an Azure VM, or with `implementations`: they are in
    mountstats, which has megabytes with a thousand mounts.

    The identities are read first: later facts about a device number are then about that bdi, or about another
    that the write will recognise. `between` is called often, for work that cannot wait for the end of a look.
    """
    with root.faults.block() as faults:
        snapshot = _superblocks(root, deep=deep, between=between)
        if snapshot.azure or implementations:
            snapshot = replace(snapshot, stats=observe_stats(root)[0])
        return replace(
            snapshot,
            faults=deciding(faults.values()),
            problems=tuple(dict.fromkeys((*snapshot.problems, *faults.values()))),
        )


def deciding(faults: Iterable[ParseError]) -> tuple[ParseError, ...]:
    """Return those that prevent decisions: a file of one process holds up no other's mount."""
    return tuple(fault for fault in faults if not is_of_process(fault.file.removeprefix("/")))


def _superblocks(root: Root, *, deep: bool, between: Callable[[], None] = do_nothing) -> Snapshot:
    known = _Known(identities(root, between))
    _look(root, known, root.view, between)
    if deep:
        for view in other_views(root, between):
            _look(root, known, view.folder, between)
    state, superblocks = State(root), []
    for device in known.devices:
        inode, record = known.identities.get(device), None
        with suppress(OSError):  # the root knows why
            record = state.get(device)
        volume, servers = known.volumes.get(device, (None, ()))
        superblock = Superblock(
            device=device,
            bdi=inode,
            read_ahead_kb=None if inode is None else _read_ahead(root, known, device),
            mounts=tuple(known.mounts.get(device, ())),
            volume=volume,
            servers=servers,
            record=record if record is not None and record.bdi == inode else None,
        )
        superblocks.append(superblock)
        between()
    azure = root.read_or_empty("sys/class/dmi/id/chassis_asset_tag").strip() == AZURE_TAG
    return Snapshot(
        superblocks=tuple(superblocks),
        tunnels=(*_tunnels(root, tuple(superblocks)), *_stand_ins(root, known, tuple(superblocks))),
        azure=azure,
        vast=root.executable(VAST),
        page_kb=PAGE_KB,
        problems=tuple(known.problems),
        root=root.prefix,
    )


def observe_stats(root: Root) -> tuple[tuple[MountStats, ...], tuple[ParseError, ...]]:
    """Return the NFS stanzas of mountstats, and the lines that could not be understood."""

    def read(name: str) -> tuple[MountStats | ParseError, ...] | None:
        data = root.read_bytes(name)
        return parse_mountstats(data, "/" + name) if data else None

    parsed = _read_mountstats(root, read) or ()
    good = tuple(stanza for stanza in parsed if isinstance(stanza, MountStats))
    return good, tuple(stanza for stanza in parsed if isinstance(stanza, ParseError))


def read_stalls(root: Root) -> Stalled | None:
    """Return the superblocks that wait; None without a daemon that samples."""
    return stalled_from_json(root.read_or_empty(STALLED), time.monotonic())


def read_seen(root: Root) -> Mapping[tuple[str, int | None], Seen]:
    """Return the service's knowledge of each superblock's reads; none without a daemon that sampled."""
    text = root.read_or_empty(SEEN_READS)
    if not text:
        return {}
    from nfstuned.model.effect import seen_from_json  # noqa: PLC0415 - only hosts with samples need it

    return seen_from_json(text)


def observe_entries(root: Root, folder: str) -> int | None:
    """Return how many names a folder has; None where a server may have to be asked, or nobody may look."""
    try:
        demand_local(root, folder, root.view)
        return len(root.listing(folder.lstrip("/")))
    except OSError:
        return None


def observe_stanzas(root: Root, before: tuple[Stanza, ...] = ()) -> tuple[Stanza, ...] | None:
    """Return the NFS stanzas of mountstats as text; those that are as in `before`, the last look, are reused.

    None where a file of them could not be read (`root.faults`): its counters did not begin again. The file is
    read in parts: with a thousand mounts it has megabytes.
    """

    def read(name: str) -> tuple[Stanza, ...] | None:
        parts = root.read_parts(name)
        first = next(parts, b"")
        return parse_stanzas(chain([first], parts), before) if first else None

    with root.faults.block() as faults:
        stanzas = _read_mountstats(root, read)
        return None if faults else stanzas or ()


def observe_major_faults(root: Root) -> int | None:
    """Return the machine's count of page faults that waited; None where it is not known."""
    return parse_major_faults(root.read_or_empty("proc/vmstat"))


def observe_nfs_inodes(root: Root) -> int | None:
    """Return how many inodes of NFS the kernel holds; None where it is not known.

    The kernel counts the objects of every cache for the answer, which may take it 10 ms.
    """
    return parse_nfs_inodes(root.read_or_empty("proc/slabinfo"))


def observe_stanzas_of(root: Root, process: int) -> tuple[Stanza, ...]:
    """Return the NFS stanzas of a process's mountstats; none where it cannot be read."""
    try:
        return parse_stanzas(root.read_parts(f"proc/{process}/mountstats"))
    except OSError:
        return ()


def _read_mountstats(root: Root, read: Callable[[str], _Stanzas | None]) -> _Stanzas | None:
    """Return the result of `read` for the best file with counters that can be read; it gets the file's name.

    `read` returns None for an empty file, and may raise OSError: then the next file is tried.
    """
    for name in (f"{root.view}/mountstats", "proc/self/mountstats"):
        with suppress(OSError):
            if (stanzas := read(name)) is not None:
                return stanzas
    return None


def observe_volumes(root: Root) -> str:
    """Return the text of /proc/fs/nfsfs/volumes as init's network namespace has it, "" without NFS."""
    return root.read_or_empty(f"{root.view}/net/nfsfs/volumes")


def observe_servers(root: Root) -> tuple[NfsClient, ...]:
    """Return the nfs_clients of init's network namespace."""
    rows = parse_clients(root.read_or_empty(f"{root.view}/net/nfsfs/servers"))
    return tuple(row for row in rows if isinstance(row, NfsClient))


def _look(root: Root, known: _Known, view: str, between: Callable[[], None]) -> None:
    """Add the mounts that a process sees; the copies in sandboxed services add nothing.

    Volumes come first: a mount that shows afterwards is then in mountinfo.
    """
    folder = f"{view}/net/nfsfs"
    volumes = known.rows(parse_volumes(root.read_or_empty(f"{folder}/volumes"), f"/{folder}/volumes"))
    servers = known.rows(parse_clients(root.read_or_empty(f"{folder}/servers"), f"/{folder}/servers"))
    names = tuple(server for server in servers if isinstance(server, NfsClient))
    for volume in volumes:
        if isinstance(volume, Volume) and volume.device in known.identities:
            known.volumes.setdefault(volume.device, (volume, names))
    between()
    name = f"{view}/mountinfo"
    with suppress(OSError):
        for mount in known.rows(parse_mountinfo(root.read_parts(name), f"/{name}")):
            if isinstance(mount, Mount):
                place = mount.device, mount.point, mount.root, mount.source
                if view == root.view:
                    known.mounts.setdefault(mount.device, []).append(mount)
                elif place not in known.places:
                    known.mounts.setdefault(mount.device, []).append(replace(mount, foreign=True))
                known.places.add(place)
    between()


def _read_ahead(root: Root, known: _Known, device: str) -> int | None:
    """Return a superblock's read-ahead in KiB; None for a file that is gone or, as a problem, nonsense."""
    name = f"{BDI_FOLDER}/{device}/read_ahead_kb"
    try:
        return parse_read_ahead(root.read(name), "/" + name)
    except ParseError as error:
        known.problems.append(error)
    except OSError:
        pass
    return None


def _tunnels(root: Root, superblocks: tuple[Superblock, ...]) -> tuple[Tunnel, ...]:
    """Return the local TLS proxies; their files are only read where a superblock goes to this machine itself.

    Its address counts as well as its mounts' sources: a mount by another name may share a tunnel's
    connection, and of a mount that is detached or in another namespace a look may show the address alone.
    """
    sources = [mount.source for each in superblocks for mount in each.mounts]
    if not any(source.startswith(LOOPBACKS) for source in (*sources, *_addresses(superblocks))):
        return ()
    return tuple(
        tunnel
        for folder, provider in TUNNELS
        for name in root.names(folder)
        if name.startswith("stunnel")
        for tunnel in parse_stunnel(root.read_or_empty(f"{folder}/{name}"), f"/{folder}/{name}", provider)
    )


def _addresses(superblocks: Iterable[Superblock]) -> tuple[str, ...]:
    """Return the servers' addresses by nfsfs, each as a source begins with it."""
    return tuple(f"{bracketed(each.volume.address)}:" for each in superblocks if each.volume is not None)


def _stand_ins(root: Root, known: _Known, superblocks: tuple[Superblock, ...]) -> tuple[Tunnel, ...]:
    """Return the addresses that stand in for servers; read where a mount goes to a private address."""
    sources = [mount.source for each in superblocks for mount in each.mounts]
    unseen = _addresses(each for each in superblocks if not each.mounts)
    if not any(source.startswith(_PRIVATE) for source in (*sources, *unseen)):
        return ()
    parsed = known.rows(
        chain.from_iterable(
            parse_mountmap(root.read_or_empty(file), f"/{file}", provider) for file, provider in STAND_INS
        )
    )
    return tuple(row for row in parsed if isinstance(row, Tunnel))


class View(NamedTuple):
    """A process through which a namespace can be seen; `folder` is its place in proc ("proc/4711")."""

    folder: str
    mount_namespace: str
    """The first mount id in it, which no other has."""
    network_namespace: int
    """The inode of its net/nfsfs."""


def other_views(root: Root, between: Callable[[], None]) -> Iterator[View]:
    """Yield a view of each pair of namespaces but init's that a process of init's user namespace has.

    Namespaces that belong to another user namespace are left alone: any user can make one with as many bind
    mounts as he likes, and none of them can mount NFS (fs/nfs has no FS_USERNS_MOUNT). `between` is called
    after each process.
    """
    first = _view(root, root.view)
    users = root.read_or_empty(f"{root.view}/uid_map")
    seen = {(first.mount_namespace, first.network_namespace)} if first is not None else set()
    for name in root.names("proc"):
        if not name.isdigit():
            continue
        view = _view(root, f"proc/{name}")
        between()
        if view is None or (view.mount_namespace, view.network_namespace) in seen:
            continue
        if root.read_or_empty(f"{view.folder}/uid_map") == users:
            seen.add((view.mount_namespace, view.network_namespace))
            yield view


def _view(root: Root, folder: str) -> View | None:
    """Return the view of a process; None when it ended meanwhile or is a zombie, which sees nothing."""
    try:
        mount_id = root.read_start(f"{folder}/mountinfo", 64).split(b" ", 1)[0]
    except OSError:
        return None
    network = root.inode(f"{folder}/net/nfsfs") or 0
    return View(folder, mount_id.decode("ascii", "replace"), network) if mount_id else None


def observe_logins(root: Root, paths: Iterable[str], *, image: bool) -> Mapping[str, Login]:
    """Return the files with a login by their paths, without files that may be on a server.

    No word of a file is kept.
    """
    found: dict[str, Login] = {}
    for path in paths:
        name = path.lstrip("/")
        try:
            if not image:
                demand_local(root, path, root.view)
            login = parse_login(root.read(name))
        except PermissionError:
            login = Login()
        except OSError:
            continue
        if (mode := root.mode(name)) is not None:
            found[path] = login._replace(mode=mode)
    return MappingProxyType(found)


_LOGIN = {"user": "username", "pass": "password", "dom": "domain"}


def parse_login(text: str) -> Login:
    """Return the mistakes in a file with a login, without any of its words.

    mount.cifs takes all between the first = and the end of a line that begins, after blanks and in any case,
    with user, pass or dom (open_cred_file in mount.cifs.c).
    """
    mistakes: list[str] = []
    names: set[str] = set()
    for number, line in enumerate(text.split("\n"), 1):
        key, equals, value = line.lstrip(" \t").partition("=")
        name = next((name for start, name in _LOGIN.items() if key.lower().startswith(start)), "")
        if not equals or not name:
            continue
        names.add(name)
        if value.endswith("\r"):
            mistakes.append(f"the carriage return at the end of line {number} is a part of the {name}")
        elif value[:1] in (" ", "\t"):
            mistakes.append(f"the blank behind = in line {number} is a part of the {name}")
        elif len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            mistakes.append(f"the quotes in line {number} are a part of the {name}")
    return Login(0, tuple(mistakes), "password" in names)


def observe_intent(root: Root, mounted: Sequence[str]) -> Intent:
    """Return the requests of fstab, mount units and autofs maps, and the settings of nfsmount.conf.

    Of several requests for a mount point the first counts. `mounted` are the points below which nothing
    may be read: a dead server would hang it.
    """
    collected = Intent()
    MountConf(root, mounted, collected).read()
    collected.misplaced += misplaced_lines(root, mounted)
    collected.storages |= read_storages(root)
    utils = read_nfs_utils(root) if collected.settings else None
    if utils is not None and utils.mixes_sections:
        # This mount.nfs does not keep the sections of different names apart.
        collected.settings = [setting._replace(alone=True) for setting in collected.settings]
    units = MountUnits(root, collected)
    units.read(STRONG_UNIT_FOLDERS)
    units.read_fstab()
    units.read(WEAK_UNIT_FOLDERS)
    units.add_misnamed_automounts()
    boot = Boot(units)
    boot.add_local()
    with suppress(OSError):
        types = root.mount_types(root.view) if mounted else ()
        boot.add_linked(lambda path: follow_path(types, path, lambda link: root.link(link[1:]))[0])
    boot.add_unloaded()
    boot.add_unmet()
    AutoMaps(root, mounted, collected).read()
    boot.add_unstarted()
    boot.add_runlevel()
    boot.add_early_services()
    if any(request.source.startswith(LOOPBACKS) for request in collected.requests):
        collected.unordered += unordered_mounts(units)
    return collected
