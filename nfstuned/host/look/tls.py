"""The TLS helper of Azure Files: its watchdog, its tunnels, and what tells it a cloud's suffix.

What is said here of AZNFS was read in https://github.com/Azure/AZNFS-mount: src/nfsv4mountscript.sh,
src/aznfswatchdogv4, src/aznfswatchdogv4.service and lib/common.sh.
"""

from __future__ import annotations

import errno
import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from nfstuned.errors import ParseError
from nfstuned.host.look.folders import UNIT_FOLDERS, conf_files
from nfstuned.host.look.services import observe_unit
from nfstuned.host.root import Root
from nfstuned.model.system import AUTOFS, LOGINS, CaFile, Override, Refusal, Tls, TunnelEntry, TunnelService
from nfstuned.parse.etc.tunnel import parse_refusal, parse_services, parse_tunnel_list, parse_variable
from nfstuned.parse.fields import clean_path
from nfstuned.parse.proc.processes import parse_listening

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
WATCHDOG = "aznfswatchdogv4.service"
"""The service for NFSv4.1. `aznfswatchdog.service`, which the vendor's page names, is for Blob storage."""
STUNNELS = (
    "etc/stunnel/microsoft/aznfs/nfsv4_fileShare",
    "etc/stunnel/microsoft/azfiles-nfs/nfsv4_fileShare",
)
_LISTS = ("opt/microsoft/aznfs/data/mountmapv4", "opt/microsoft/azfiles-nfs/data/mountmapv4")
"""Where the helper keeps what it knows of each tunnel."""
MOST_TUNNELS = 1001
"""Configurations of tunnels: mount.aznfs has as many ports for them."""
LOG_END = 65_536
"""Bytes at the end of a tunnel's log: about forty connections; the last counts."""
MOST_CA_FILES = 16
"""Certificate files that the configurations name: mount.aznfs writes the same into each."""
OVERRIDE = "AZURE_ENDPOINT_OVERRIDE"
_LOGIN_ENVIRONMENT = "etc/environment"
_MANAGER, _MANAGER_DROP_INS = "etc/systemd/system.conf", "systemd/system.conf.d"
_COMMAND_LINE = "proc/cmdline"
_AUTOFS_ENVIRONMENTS = ("etc/default/autofs", "etc/sysconfig/autofs")
_EVERY_MOUNT = "mount.d"


def observe_tls(root: Root, *, image: bool) -> Tls:
    """Return what is known of the helper; of an image only what its files say.

    No process is looked at: reading a command line may wait for a program that waits for a dead server. A
    stunnel that lives listens on its port, which is what a mount needs of it.
    """
    watchdog = observe_unit(root, WATCHDOG, image=image)
    helped = watchdog.installed or any(root.names(folder) for folder in STUNNELS)
    listening: frozenset[int] | None = None
    if helped and not image:
        # A busy server has a hundred thousand sockets: they are only read where a tunnel may be, and in the
        # network namespace of init's mounts.
        listening = parse_listening(root.read_or_empty(f"{root.view}/net/tcp"))
        if listening is not None:
            listening |= parse_listening(root.read_or_empty(f"{root.view}/net/tcp6")) or frozenset()
    services = () if image else _services(root)
    ca_files, unread = _ca_files(root, services)
    entries = () if image else _entries(root)
    return Tls(
        watchdog=watchdog,
        listening=listening,
        overrides=_overrides(root, image=image),
        services=services,
        ca_files=ca_files,
        refusals=_refusals(root, services),
        entries=tuple(entry for entry in entries if isinstance(entry, TunnelEntry)),
        unread=(*unread, *(entry for entry in entries if isinstance(entry, ParseError))),
    )


def _services(root: Root) -> tuple[TunnelService, ...]:
    """Return what the tunnels' configurations say of whom they trust."""
    names = (
        f"{folder}/{name}" for folder in STUNNELS for name in root.names(folder) if name.startswith("stunnel")
    )
    return tuple(
        service
        for name in islice(names, MOST_TUNNELS)
        for service in parse_services(root.read_or_empty(name), f"/{name}")
    )


def _refusals(root: Root, services: tuple[TunnelService, ...]) -> dict[str, Refusal]:
    """Return the last refusal of each tunnel, by the file of its configuration.

    A log does not say of which service a line is: a configuration with several is left out.
    """
    number = Counter(service.file for service in services)
    refusals: dict[str, Refusal] = {}
    for service in services:
        if number[service.file] > 1 or not service.log.startswith("/"):
            continue
        try:
            end = root.read_end(clean_path(service.log).lstrip("/"), LOG_END)
        except OSError:
            continue
        refusal = parse_refusal(end.decode("utf-8", "surrogateescape"))
        if refusal is not None:
            refusals[service.file] = refusal
    return refusals


def _entries(root: Root) -> tuple[TunnelEntry | ParseError, ...]:
    """Return the helper's own lists of its tunnels."""
    return tuple(
        entry for name in _LISTS for entry in parse_tunnel_list(root.read_or_empty(name), f"/{name}")
    )


def _ca_files(
    root: Root, services: Iterable[TunnelService]
) -> tuple[dict[str, CaFile], tuple[ParseError, ...]]:
    """Return the files with the certificates that these trust, by path, and what in them is not understood.

    A file that cannot be read, or of which a certificate is not understood, is left out.
    """
    paths = dict.fromkeys(service.ca_file for service in services if service.ca_file.startswith("/"))
    if not paths:
        return {}, ()
    # Few hosts have a tunnel.
    from nfstuned.parse.etc.certificate import parse_certificates  # noqa: PLC0415

    files: dict[str, CaFile] = {}
    unread: list[ParseError] = []
    for path in islice(paths, MOST_CA_FILES):
        try:
            text = root.read(clean_path(path).lstrip("/"))
        except OSError as error:
            if error.errno in _ABSENT:
                files[path] = CaFile(missing=True)
            continue
        rows = parse_certificates(text, path)
        problems = [row for row in rows if isinstance(row, ParseError)]
        if problems:
            unread += problems
        else:
            files[path] = CaFile(tuple(row for row in rows if not isinstance(row, ParseError)))
    return files, tuple(unread)


def _overrides(root: Root, *, image: bool) -> tuple[Override, ...]:
    """Return every place that sets the endpoint's override, the strongest last.

    mount.aznfs takes it from its environment only: a login's for a mount by hand, the service manager's at
    boot with what the mount's own unit adds, automount's otherwise. A drop-in without the variable is
    returned, with an empty value, where another of its name has it: the stronger hides the weaker.
    """
    # Where /usr is merged, the last folder is the one before it once more.
    folders = UNIT_FOLDERS[:-1] if root.same(*UNIT_FOLDERS[-2:]) else UNIT_FOLDERS
    manager = [_MANAGER, *conf_files(root, _MANAGER_DROP_INS)]
    if not image:
        # systemd reads it after all files (parse_configuration in src/core/main.c).
        manager.append(_COMMAND_LINE)
    units = {
        name: f"{folder}/{name}"
        for folder in reversed(folders)
        for name in root.names(folder)
        if name.endswith(".mount")
    }
    drop_ins = _drop_ins(root, folders)
    places = (
        (_LOGIN_ENVIRONMENT, LOGINS),
        *((file, "") for file in manager),
        *((file, name) for name, file in units.items()),
        *drop_ins,
        # The service has these by EnvironmentFile=, which counts before every Environment=.
        *((file, AUTOFS) for file in _AUTOFS_ENVIRONMENTS),
    )
    values = {file: parse_variable(root.read_or_empty(file), OVERRIDE) for file, _ in places}
    named = {posixpath.basename(file) for file, value in values.items() if value}
    hiding = {file for file, _ in drop_ins if posixpath.basename(file) in named}
    return tuple(
        Override((values[file] or "").removeprefix("."), f"/{file}", scope)
        for file, scope in places
        if values[file] or file in hiding
    )


def _drop_ins(root: Root, folders: Sequence[str]) -> list[tuple[str, str]]:
    """Return the drop-ins of mount units and of autofs; systemd sorts them by their own names.

    Of a name the drop-in of all mounts is the weakest, then the folder counts, then how much of the path is
    named.
    """
    drop_ins = [
        (drop, scope != _EVERY_MOUNT, strength, len(scope), f"{folder}/{scope}/{drop}", scope)
        for strength, folder in enumerate(reversed(folders))
        for scope in root.names(folder)
        if scope in {AUTOFS, _EVERY_MOUNT} or scope.endswith(".mount.d")
        for drop in root.names(f"{folder}/{scope}")
        if drop.endswith(".conf")
    ]
    return [(file, scope) for *_, file, scope in sorted(drop_ins)]
