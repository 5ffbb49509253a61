"""stunnel(8) configurations, behind which TLS mounts reach their server, and their helper's environment.

The helpers of Azure Files (mount.aznfs) and Amazon EFS (mount.efs) write such a file for each tunnel. For
Blob storage, and for Azure Files without TLS, mount.aznfs keeps a list of private addresses that it sends to
the server by DNAT: MOUNTMAPv3 and MOUNTMAPv4NOTLS of lib/common.sh in https://github.com/Azure/AZNFS-mount.

environment(5), systemd's Environment= and DefaultEnvironment=, the kernel command line's systemd.setenv=, and
files of /etc/default: all write NAME=value, some with quotes around the value or around both.
"""

from __future__ import annotations

import errno
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from ipaddress import IPv4Address
from itertools import islice
from typing import NamedTuple

from nfstuned.errors import ParseError
from nfstuned.model.kernel import parse_options
from nfstuned.model.mounts import Maker, Tunnel, UnitSetting, Unordered
from nfstuned.model.system import AUTOFS, LOGINS, CaFile, Override, Refusal, Tls, TunnelEntry, TunnelService
from nfstuned.parse.etc.mount_units import MountUnits
from nfstuned.parse.etc.units import UNIT_FOLDERS, conf_files, parse_unit, read_unit
from nfstuned.parse.fields import clean_path, quoted, unit_name
from nfstuned.parse.fields import parse_number as read_number
from nfstuned.parse.tree import FSTAB, FileTree

_HIGHEST = 65535
_TUNNEL_FIELDS = 7
_LOGGED = re.compile(r"([0-9]{4}\.[0-9]{2}\.[0-9]{2} [0-9:]{8}) LOG[0-7]\[([^]]{1,40})\]: (.*)")
_GOOD_NEWS = ("TLS connected", "SSL connected", "Configuration successful")
_REASONS = (
    "CERT: Pre-verification error: ",
    "CERT: Subject checks failed",
    "CERT: Certificate not found in local repository",
)
_REJECTED = "Rejected by CERT at depth="
MOST_PROXIES = 1000
"""Lines of a list of AZNFS: one for each account that is mounted."""


def parse_stunnel(text: str, file: str, provider: str) -> tuple[Tunnel, ...]:
    """Return the services that lead from a numbered port to a numbered port, in the file's order.

    Services without (a socket's path, a port by name, a program to run) cannot carry an NFS mount and are
    left out. Where several servers take turns, the first counts.
    """
    return tuple(
        Tunnel(service.port, service.server, service.server_port, provider, file, pid_file=service.pid_file)
        for service in parse_services(text, file)
    )


def parse_services(text: str, file: str) -> tuple[TunnelService, ...]:
    """Return the services of parse_stunnel, with whom each one trusts, in the file's order.

    The names are those of stunnel(8). `verify` is the older one for both kinds of verification: from 1 on the
    chain, from 3 on the server's own certificate, with 4 only that.
    """
    services: list[TunnelService] = []
    for options in _services(text):
        line, accept = options.get("accept", _NOT_GIVEN)[0]
        _, port = _address(accept)
        server, server_port = _address(options.get("connect", _NOT_GIVEN)[0][1])
        if port is None or server_port is None:
            continue
        ca_line, ca_file = options.get("cafile", _NOT_GIVEN)[-1]
        level = _last(options, "verify")
        services.append(
            TunnelService(
                file=file,
                line=line,
                accept=accept,
                port=port,
                server=server or "localhost",
                ca_file=ca_file,
                ca_line=ca_line,
                other_ca=not options.keys().isdisjoint({"capath", "caengine"}),
                verifies_chain=_last(options, "verifychain").lower() == "yes" or level in {"1", "2", "3"},
                verifies_peer=_last(options, "verifypeer").lower() == "yes"
                or level in {"3", "4"}
                or "psksecrets" in options,
                verifies_name=not options.keys().isdisjoint({"checkhost", "checkip", "checkemail"}),
                server_port=server_port,
                log=_last(options, "output"),
                pid_file=_last(options, "pid"),
            )
        )
    return tuple(services)


LOOPBACKS = ("127.", "localhost:", "[::1]:")
"""The starts of sources that this host serves itself."""
_LOOPBACK = re.compile(r"(127(?:\.[0-9]{1,3}){3}|localhost|\[::1\]):")
_EVERY_ADDRESS = ("", "*", "0.0.0.0", "::")  # noqa: S104 - read, not listened at
_LOCAL = {"localhost": "127.0.0.1"}
_STUNNEL = re.compile(r"stunnel[345]?")
_FORWARD = re.compile(r"\s-[A-Za-z0-9]*L\s*(?:(\S+):)?([0-9]{1,5}):[^\s:]+:[0-9]{1,5}(?=\s|$)")
"""-L of ssh(1): the address, where none is given this host's own, and the port at which it listens."""
_CONFIGURATION = "/etc/stunnel/stunnel.conf"
_SCRIPT, _CONFIGURATIONS = "etc/init.d/stunnel4", "etc/stunnel"
"""Debian's script, for which systemd has a service, and the folder with a configuration for each stunnel."""
_BEFORE_MOUNTS = frozenset({"network.target", "network-online.target", "remote-fs-pre.target"})
"""Mounts of a network are ordered after these (systemd.mount(5))."""
_ORDERING = ("After", "x-systemd.after", "x-systemd.requires")


class _Listener(NamedTuple):
    """A tunnel of a unit that listens at an address of this host."""

    unit: str
    address: str
    port: int | None
    place: str
    """The file and line that say so."""
    before: frozenset[str]
    """The units before which its unit is started."""


def unordered_mounts(units: MountUnits) -> Iterator[Unordered]:
    """Yield the mounts from a port of this host where a unit's tunnel listens, not ordered after that unit.

    A mount ordered after any other unit is left out: that unit may be ordered itself.
    """
    listeners: list[_Listener] | None = None
    for request in units.collected.requests:
        match, options = _LOOPBACK.match(request.source), parse_options(request.options)
        by_systemd = request.maker in {Maker.UNIT, Maker.AUTOMOUNT} or request.file == f"/{FSTAB}"
        port = options.number("port")
        if match is None or port is None or not by_systemd or "noauto" in options:
            continue
        if listeners is None:
            listeners = [*_listeners(units.root, units.services)]
        after = [setting.value for setting in units.dependencies(request) if setting.name in _ORDERING]
        if set(" ".join(after).split()) - _BEFORE_MOUNTS:
            continue
        address = match[1].strip("[]")
        addresses = (*_EVERY_ADDRESS, _LOCAL.get(address, address))
        for listener in listeners:
            if listener.port == port and _LOCAL.get(listener.address, listener.address) in addresses:
                if not listener.before & {*_BEFORE_MOUNTS, unit_name(request.point)}:
                    yield Unordered(request, listener.unit, listener.place, listener.unit in units.services)
                break


def _listeners(root: FileTree, enabled: Collection[str]) -> Iterator[_Listener]:
    """Yield the tunnels of stunnel and ssh that a service starts, with enabled instances of templates."""
    names = {name: folder for folder in reversed(UNIT_FOLDERS) for name in root.names(folder)}
    for name, folder in names.items():
        text = root.read_or_empty(f"{folder}/{name}") if name.endswith(".service") else ""
        if "stunnel" not in text and "ssh" not in text:
            continue
        folders = [f"{place}/{name}.d" for place in UNIT_FOLDERS]
        files = [f"{folder}/{name}", *(f"{drops}/{drop}" for drops in folders for drop in root.names(drops))]
        items = [item for file in files for item in parse_unit(root.read_or_empty(file), f"/{file}")]
        settings = [item for item in items if isinstance(item, UnitSetting)]
        before = frozenset(word for item in settings if item.name == "Before" for word in item.value.split())
        stem = name.removesuffix(".service")
        units = enabled if stem.endswith("@") else {name}
        for unit in sorted(each for each in units if each.startswith(stem)):
            instance = unit.removeprefix(stem).removesuffix(".service")
            for item in settings:
                command = item.value.replace("%i", instance).replace("%I", instance)
                program, *words = (command.split() if item.name == "ExecStart" else []) or [""]
                kind = posixpath.basename(program.lstrip("@-:+!"))
                if _STUNNEL.fullmatch(kind):
                    file = next((word for word in words if word.startswith("/")), _CONFIGURATION)
                    yield from _configured(root, clean_path(file), unit, before)
                elif kind in {"ssh", "autossh"}:
                    for address, port in _FORWARD.findall(command):
                        place = f"{item.file}:{item.line}"
                        yield _Listener(unit, address.strip("[]") or "127.0.0.1", int(port), place, before)
    for name in root.names(_CONFIGURATIONS) if root.exists(_SCRIPT) else ():
        if name.endswith(".conf"):
            yield from _configured(root, f"/{_CONFIGURATIONS}/{name}", "stunnel4.service", frozenset())


def _configured(root: FileTree, file: str, unit: str, before: frozenset[str]) -> Iterator[_Listener]:
    for service in parse_services(root.read_or_empty(file[1:]), file):
        yield _Listener(unit, _address(service.accept)[0], service.port, f"{file}:{service.line}", before)


def parse_refusal(text: str) -> Refusal | None:
    """Return the server that was refused last, from the end of a stunnel's log (src/verify.c, src/client.c).

    None where a connection was made since then, or the configuration was read again: nobody tried since.
    The reason stands in a line before, of the same thread.
    """
    refusal: Refusal | None = None
    reasons: dict[str, str] = {}
    for line in text.split("\n"):
        match = _LOGGED.match(line)
        if match is None:
            continue
        time, thread, message = match.groups()
        if message.startswith(_GOOD_NEWS):
            refusal = None
        elif message.startswith(_REASONS):
            reasons[thread] = message.removeprefix("CERT: ").removeprefix("Pre-verification error: ").strip()
        elif message.startswith(_REJECTED):
            refusal = Refusal(time, reasons.get(thread, ""), message.partition(": ")[2].strip())
    return refusal


def parse_mountmap(text: str, file: str, provider: str) -> tuple[Tunnel | ParseError, ...]:
    """Return the addresses that stand in for servers: a name, such an address and the server's on each line.

    Newer releases put the name of a control file of the share behind the three (AZNFSCtrl.txt, a checksum).
    Lines that are empty are left over from a deleted entry.
    """
    rows: list[Tunnel | ParseError] = []
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.split()
        if not fields:
            continue
        if len(rows) == MOST_PROXIES:
            message = f"more than {MOST_PROXIES} mounted accounts: this and all later ones were not read"
            rows.append(ParseError(file, number, message))
            break
        try:
            name, first, second, *_ = fields
            stands_in, address = str(IPv4Address(first)), str(IPv4Address(second))
        except ValueError:
            message = f"not a name, its stand-in address and the server's address: {quoted(line)}"
            rows.append(ParseError(file, number, message))
        else:
            rows.append(Tunnel(0, name, 0, provider, file, stands_in, address))
    return tuple(rows)


def parse_tunnel_list(text: str, file: str) -> tuple[TunnelEntry | ParseError, ...]:
    """Return AZNFS's list of tunnels, MOUNTMAPv4 of its lib/common.sh: seven fields with semicolons between.

    These are the server's address, the files of configuration, log and process id, a checksum, the status and
    the latest time for its mount. Older releases have no status: their lines are left out.
    """
    rows: list[TunnelEntry | ParseError] = []
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.strip().split(";")
        if len(fields) < _TUNNEL_FIELDS:
            continue
        if len(rows) == MOST_TUNNELS:
            message = f"more than {MOST_TUNNELS} tunnels: this and all later ones were not read"
            rows.append(ParseError(file, number, message))
            break
        server, configuration, _, _, _, status, until = fields[:_TUNNEL_FIELDS]
        try:
            until_s = read_number("the end of the time for a mount", until)
        except ValueError as error:
            rows.append(ParseError(file, number, str(error)))
        else:
            rows.append(TunnelEntry(file, number, server, configuration, status, until_s))
    return tuple(rows)


_Options = dict[str, list[tuple[int, str]]]
"""By name in lower case: the line and the value of each time that an option is given."""
_NOT_GIVEN = [(0, "")]


def _services(text: str) -> list[_Options]:
    """Return the options of each service, with those that stand before the first section."""
    defaults: _Options = {}
    services: list[_Options] = []
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip()
        if content.startswith("[") and content.endswith("]"):
            services.append({})
            continue
        name, separator, value = content.partition("=")
        if separator and not content.startswith((";", "#")):
            service = services[-1] if services else defaults
            service.setdefault(name.strip().lower(), []).append((number, value.strip()))
    return [defaults | service for service in services] or [defaults]


def _last(options: _Options, name: str) -> str:
    """Return the last value of an option, which is the one that counts; "" where it is not given."""
    return options.get(name, _NOT_GIVEN)[-1][1]


def _address(text: str) -> tuple[str, int | None]:
    """Return the host of `HOST:PORT`, "" without, and the port; None where that is no number."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) <= len(str(_HIGHEST))):
        return host, None
    number = int(port)
    return host.removeprefix("[").removesuffix("]"), number if 0 < number <= _HIGHEST else None


def parse_variable(text: str, name: str) -> str | None:
    """Return the value of a variable in its last assignment that is no comment; None without a value.

    Values with spaces are not looked for: a suffix of host names has none.
    """
    values = re.findall(
        rf"^(?![ \t]*[#;]).*(?<![A-Za-z0-9_]){re.escape(name)}=[\"']?([^\s\"']*)", text, re.MULTILINE
    )
    return str(values[-1]) or None if values else None


_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
WATCHDOG = "aznfswatchdogv4.service"
"""The service for NFSv4.1. `aznfswatchdog.service`, which the vendor's page names, is for Blob storage."""
STUNNELS = (
    "etc/stunnel/microsoft/aznfs/nfsv4_fileShare",
    "etc/stunnel/microsoft/azfiles-nfs/nfsv4_fileShare",
)
_LISTS = ("opt/microsoft/aznfs/data/mountmapv4", "opt/microsoft/azfiles-nfs/data/mountmapv4")
"""Where the helper lists its tunnels."""
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


def read_tls(root: FileTree, *, image: bool) -> Tls:
    """Return the state of the helper; of an image only its units and overrides.

    No process is looked at: reading a command line may wait for a program that waits for a dead server. A
    stunnel that lives listens on its port, which is all that a mount needs.
    """
    watchdog = read_unit(root, WATCHDOG, image=image)
    helped = watchdog.installed or any(root.names(folder) for folder in STUNNELS)
    listening: frozenset[int] | None = None
    if helped and not image:
        # A busy server has a hundred thousand sockets: they are only read where a tunnel may be, and in the
        # network namespace of init's mounts.
        listening = parse_listening(root.read_or_empty(f"{root.view}/net/tcp"))
        if listening is not None:
            listening |= parse_listening(root.read_or_empty(f"{root.view}/net/tcp6")) or frozenset()
    services: tuple[TunnelService, ...] = ()
    entries: list[TunnelEntry | ParseError] = []
    if not image:
        named = ((folder, name) for folder in STUNNELS for name in root.names(folder))
        files = (f"{folder}/{name}" for folder, name in named if name.startswith("stunnel"))
        services = tuple(
            service
            for file in islice(files, MOST_TUNNELS)
            for service in parse_services(root.read_or_empty(file), f"/{file}")
        )
        for name in _LISTS:
            entries += parse_tunnel_list(root.read_or_empty(name), f"/{name}")
    ca_files, problems = _ca_files(root, services)
    return Tls(
        watchdog=watchdog,
        listening=listening,
        overrides=_overrides(root, image=image),
        services=services,
        ca_files=ca_files,
        refusals=_refusals(root, services),
        entries=tuple(entry for entry in entries if isinstance(entry, TunnelEntry)),
        problems=(*problems, *(entry for entry in entries if isinstance(entry, ParseError))),
    )


def _refusals(root: FileTree, services: tuple[TunnelService, ...]) -> dict[str, Refusal]:
    """Return the last refusal of each tunnel, by the file of its configuration.

    The lines of a log do not name their service: a configuration with several services is left out.
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


def _ca_files(
    root: FileTree, services: Iterable[TunnelService]
) -> tuple[dict[str, CaFile], tuple[ParseError, ...]]:
    """Return the files with the certificates that these trust, by path, and the problems in them.

    An unreadable file, or one with a certificate that is not understood, is left out.
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


def _overrides(root: FileTree, *, image: bool) -> tuple[Override, ...]:
    """Return every place that sets the endpoint's override, the strongest last.

    mount.aznfs takes it from its environment only: a login's for a mount by hand, the service manager's at
    boot with the variables of the mount's own unit, automount's otherwise. A drop-in without the variable is
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


def _drop_ins(root: FileTree, folders: Sequence[str]) -> list[tuple[str, str]]:
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


_LISTENING = r"(?m)^ *[0-9]+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A "
"""The state 0A is TCP_LISTEN of the kernel's include/net/tcp_states.h."""


def parse_listening(text: str) -> frozenset[int] | None:
    """Return the ports on which something listens, at whichever address; None where the file is not there."""
    if not re.match(r" *sl +local_address ", text):
        return None
    return frozenset(int(port, 16) for port in re.findall(_LISTENING, text))
