"""stunnel(8) configurations, behind which TLS mounts reach their server, and their helper's environment.

The helpers of Azure Files (mount.aznfs) and Amazon EFS (mount.efs) write such a file for each tunnel. For
Blob storage, and for Azure Files without TLS, mount.aznfs keeps a list of private addresses that it sends to
the server by DNAT: MOUNTMAPv3 and MOUNTMAPv4NOTLS of lib/common.sh in https://github.com/Azure/AZNFS-mount.

environment(5), systemd's Environment= and DefaultEnvironment=, the kernel command line's systemd.setenv=, and
what /etc/default has: all write NAME=value, some with quotes around the value or around both.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Tunnel
from nfstuned.model.system import Refusal, TunnelEntry, TunnelService
from nfstuned.parse.fields import number as read_number
from nfstuned.parse.fields import quoted

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

    The names are those of stunnel(8). `verify` is the older one for both kinds of verification: from 2 on the
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


def parse_refusal(text: str) -> Refusal | None:
    """Return the server that was refused last, from the end of a stunnel's log (src/verify.c, src/client.c).

    None where a connection was made since then, or the configuration was read again: then nobody has tried.
    The reason stands in a line before, of the same thread.
    """
    refusal: Refusal | None = None
    reasons: dict[str, str] = {}
    for line in text.split("\n"):
        match = _LOGGED.match(line)
        if match is None:
            continue
        time, thread, said = match.groups()
        if said.startswith(_GOOD_NEWS):
            refusal = None
        elif said.startswith(_REASONS):
            reasons[thread] = said.removeprefix("CERT: ").removeprefix("Pre-verification error: ").strip()
        elif said.startswith(_REJECTED):
            refusal = Refusal(time, reasons.get(thread, ""), said.partition(": ")[2].strip())
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
            message = f"more than {MOST_PROXIES} mounted accounts: this one and what follows was not read"
            rows.append(ParseError(file, number, message))
            break
        try:
            name, first, second, *_ = fields
            stands_in, address = str(IPv4Address(first)), str(IPv4Address(second))
        except ValueError:
            message = f"not a name, an address that stands in and the server's: {quoted(line)}"
            rows.append(ParseError(file, number, message))
        else:
            rows.append(Tunnel(0, name, 0, provider, file, stands_in, address))
    return tuple(rows)


def parse_tunnel_list(text: str, file: str) -> tuple[TunnelEntry | ParseError, ...]:
    """Return AZNFS's list of tunnels, MOUNTMAPv4 of its lib/common.sh: seven fields with semicolons between.

    These are the server's address, the files of configuration, log and process id, a checksum, the status and
    the moment until which a mount may take. Older releases have no status: their lines are left out.
    """
    rows: list[TunnelEntry | ParseError] = []
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.strip().split(";")
        if len(fields) < _TUNNEL_FIELDS:
            continue
        if len(rows) == MOST_PROXIES:
            message = f"more than {MOST_PROXIES} tunnels: this one and what follows was not read"
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
    """Return the value that counts of an option that can have a single one; "" where it is not given."""
    return options.get(name, _NOT_GIVEN)[-1][1]


def _address(text: str) -> tuple[str, int | None]:
    """Return the host of `HOST:PORT`, "" without, and the port; None where that is no number."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) <= len(str(_HIGHEST))):
        return host, None
    number = int(port)
    return host.removeprefix("[").removesuffix("]"), number if 0 < number <= _HIGHEST else None


def parse_variable(text: str, name: str) -> str | None:
    """Return the value of a variable in its last assignment that is no comment; None without an assignment.

    Values with spaces are not looked for: a suffix of host names has none.
    """
    values = re.findall(
        rf"^(?![ \t]*[#;]).*?(?<![A-Za-z0-9_]){re.escape(name)}=[\"']?([^\s\"']+)", text, re.MULTILINE
    )
    return str(values[-1]) if values else None
