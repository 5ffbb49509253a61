"""Whether the server of a transport group answers: what to ask the network for, and what it said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nfstuned.core.endpoint import NFS_PORT, as_address, is_loopback
from nfstuned.core.groups import is_azure_files
from nfstuned.core.remountcase import Case
from nfstuned.model.facts import Network, Reachable, Target

Server = tuple[str, int]
"""A host name or an address, and a port."""


def servers(case: Case) -> tuple[Server, ...]:
    """Return what must answer: the server, and where a tunnel leads there both of its ends."""
    return tuple(dict.fromkeys(server for target in case.group for server in _servers(target)))


def names(case: Case) -> tuple[str, ...]:
    """Return the host names whose addresses matter: to reach it, or to tell a private endpoint."""
    hosts = [host for host, _ in servers(case)]
    hosts += [target.endpoint.host for target in case.parts if is_azure_files(target)]
    return tuple(dict.fromkeys(host for host in hosts if host and as_address(host) is None))


def silent(case: Case, network: Network) -> str:
    """Return which server does not answer and how; "" where all do."""
    why = unanswered(case, network)
    return f"{why}: a mount could not be made again" if why else ""


def unanswered(case: Case, network: Network) -> str:
    """Return the same, and not what follows from it."""
    for host, port in servers(case):
        tried = _tried(host, port, network)
        if not any(state is Reachable.OPEN for _, state, _ in tried):
            place = tried[0][0] if tried else host
            why = (tried[0][2] or tried[0][1].value) if tried else "no attempt came to an end"
            return f"its server does not answer ({place} port {port}: {why})"
    return ""


def places(case: Case, network: Network) -> tuple[Server, ...]:
    """Return the addresses and ports that opened."""
    return tuple(
        (address, port)
        for host, port in servers(case)
        for address, state, _ in _tried(host, port, network)[:1]
        if state is Reachable.OPEN
    )


def _servers(target: Target) -> Iterator[Server]:
    if target.live is None:
        return
    volume = target.superblock.volume if target.superblock else None
    # nfsfs has no scope of a link-local address, which the options have.
    address = target.live.options.get("addr") or (volume.address if volume else target.endpoint.address)
    port = (volume.port if volume else 0) or target.live.options.number("port") or NFS_PORT
    if address:
        yield address, port
    behind = target.endpoint.address or target.endpoint.host
    if is_loopback(address) and not is_loopback(behind):
        yield target.endpoint.host, target.endpoint.port


def _tried(host: str, port: int, network: Network) -> Sequence[tuple[str, Reachable, str]]:
    """Return the attempts to reach a server, those first that came to something."""
    answer = network.by_name.get(host)
    addresses = (host,) if as_address(host) else answer.addresses if answer is not None else ()
    found = [
        (one.address, one.state, one.detail)
        for one in network.reaches
        if one.port == port and one.address in addresses
    ]
    return sorted(found, key=lambda one: one[1] is not Reachable.OPEN)
