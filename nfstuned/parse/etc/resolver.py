"""Name resolution of this host: hosts(5) and the `hosts` line of nsswitch.conf(5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from types import MappingProxyType

SOURCES = ("files", "dns")
"""The sources that glibc asks where nsswitch.conf names none."""
_HOSTS_LINE = r"(?m)^[ \t]*hosts:([^#\n]*)"
# The actions after a source, "[...]", or the name of a source.
_TOKEN = r"\[[^\]]*\]|[^\s\[\]]+"  # noqa: S105 - no password
_ACTION = r"(!?)\s*(\w+)\s*=\s*(\w+)"


def parse_hosts(text: str) -> Mapping[str, tuple[str, ...]]:
    """Return the addresses of each name, in the file's order; the names are in lower case.

    A line that does not begin with an address, or with one that has a scope, is skipped, as glibc does it.
    """
    hosts: dict[str, list[str]] = {}
    for line in text.split("\n"):
        address, *names = line.partition("#")[0].split() or [""]
        if not is_address(address) or "%" in address:
            continue
        for name in names:
            known = hosts.setdefault(name.lower(), [])
            if address not in known:
                known.append(address)
    return MappingProxyType({name: tuple(addresses) for name, addresses in hosts.items()})


def parse_sources(text: str) -> tuple[str, ...]:
    """Return the sources that are asked for a host name, in order: "files", "dns", and others by their names.

    "resolve" (systemd-resolved) reads /etc/hosts and then asks DNS: "files" and "dns" stand before it. A
    source may end the search for names that it does not know; the sources after it are left out.
    """
    line = re.search(_HOSTS_LINE, text)
    if line is None:
        return SOURCES
    sources: dict[str, None] = {}
    last = ""
    for token in re.findall(_TOKEN, line[1]):
        if token.startswith("["):
            # mdns4_minimal knows .local names only: its NOTFOUND ends the search for no other name.
            if last in (*SOURCES, "resolve") and _ends_search(token):
                break
            continue
        last = token
        sources.update(dict.fromkeys((*SOURCES, token) if token == "resolve" else (token,)))  # noqa: S105 - no password
    return tuple(sources)


def _ends_search(actions: str) -> bool:
    """Return whether a source with these actions ends the search where it does not know the name."""
    ends = False
    for other, status, action in re.findall(_ACTION, actions.upper()):
        # !STATUS stands for every status but that one. glibc takes the actions in turn, so the last counts.
        if (status == "NOTFOUND") != bool(other):
            ends = action == "RETURN"
    return ends


def name_server_lines(text: str) -> str:
    """Return resolv.conf(5) without the `nameserver` lines that hold no address; glibc skips them, too."""
    return "".join(
        line + "\n"
        for line in text.split("\n")
        if line.split()[:1] != ["nameserver"] or is_address("".join(line.split()[1:2]))
    )


def parse_name_servers(text: str) -> tuple[str, ...]:
    """Return the addresses of the `nameserver` lines of resolv.conf(5)."""
    lines = (line.split() for line in name_server_lines(text).split("\n"))
    return tuple(words[1] for words in lines if words[:1] == ["nameserver"])


def is_address(text: str) -> bool:
    """Return whether `text` is an IP address; an IPv6 address may have a scope, one of IPv4 has none."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
