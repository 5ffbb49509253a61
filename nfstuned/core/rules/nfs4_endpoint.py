"""Rules NFS401 to NFS405, NFS408 and NFS410 to NFS412: servers' names, addresses, ports and answers."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address

from nfstuned.core.mounts.targets import definition, server_name
from nfstuned.core.policy.endpoint import (
    Address,
    all_public,
    as_address,
    has_stand_in,
    is_loopback,
    plain,
    same_address,
    split_source,
)
from nfstuned.core.rules.rule import (
    ADVICE,
    ERROR,
    HOST,
    LIVE,
    NETWORK,
    WARNING,
    Manual,
    mount_again,
    mount_all_again,
    name_others,
    names_azure_files,
    rule,
    where,
)
from nfstuned.model.facts import Facts, Fault, Need, Target
from nfstuned.model.mounts import AZURE_FILES, GENERIC, Maker
from nfstuned.model.system import Answer, Reach, Reachable
from nfstuned.parse.fields import count, has_placeholder, quote, some

_LINK = "privatelink"
_NO_ANSWER = "not responding"
_NOTHING = Answer("")
_Reaches = dict[tuple[Address | None, int], Reach]
_NOT_TCP = ("udp", "udp6", "rdma", "rdma6")
_WHY = {
    Reachable.REFUSED: "refuses connections",
    Reachable.TIMEOUT: "does not answer",
    Reachable.UNREACHABLE: "cannot be reached",
}


@rule("NFS401", "public-endpoint", WARNING, needs=(NETWORK,), source=Manual.NETWORKING)
def public(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of Azure Files at a public address; NFS402 has those with a private endpoint."""
    answers = facts.network.by_name
    for target in facts.nfs:
        answer = _answer(answers, target, server_name(target))
        used = _used(target, answer)
        if not _is_azure(facts, target, answer) or not all_public(used) or _link(answer):
            continue
        host = server_name(target)
        # An alias that a customer made may lead to the account of any cloud.
        names = (host, *answer.chain)
        account = next((name for name in names if names_azure_files(facts, name)), "")
        leads = "leads through a tunnel to" if as_address(host) else f"is of {host}, which is"
        # A share of Microsoft.FileShares has a name of its own. For *.file.storage.azure.net the vendor's
        # table has privatelink.file.core.windows.net, and AZNFS takes privatelink.file.storage.azure.net.
        owner = "file share" if plain(account).startswith("fs-") else "storage account's file service"
        own_zone = plain(account).endswith(".storage.azure.net")
        zone = "the DNS zone in its DNS configuration" if own_zone else f"its DNS zone {_zone(account)}"
        yield Fault(
            target.subject,
            f"the mount {leads} the public address {used[0]}: NFS works there only from subnets of the "
            "same region that have a service endpoint, not over peering, and the address may change",
            observed=", ".join(used),
            expected="the address of a private endpoint",
            remedy=f"create a private endpoint for the {owner} in this network, link {zone}, and "
            + mount_all_again([target], "mount again"),
        )


@rule("NFS402", "privatelink-not-linked", ERROR, needs=(NETWORK,), source=Manual.NETWORKING)
def not_linked(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of a name that is in a privatelink zone, or passes it, and ends at a public address."""
    answers = facts.network.by_name
    for target in facts.nfs:
        answer = _answer(answers, target, server_name(target))
        used, link = _used(target, answer), _link(answer)
        if not link or not _is_azure(facts, target, answer) or not all_public(used):
            continue
        linked = f"{link} is a name of the privatelink zone"
        if link != answer.host:
            linked = f"{answer.host} is an alias of {link}, so it has a private endpoint"
        yield Fault(
            target.subject,
            f"{linked}, but this machine resolves it to the public address {used[0]}: the private endpoint "
            "is not used",
            observed=" -> ".join((answer.host, *answer.chain, used[0])),
            expected="the address of the private endpoint",
            remedy=f"link the private DNS zone {_zone(link)} to this virtual network, or forward it to "
            "168.63.129.16 from a DNS server in the network, and "
            f"{mount_all_again([target], 'mount again')}",
        )


@rule(
    "NFS403",
    "mounted-by-address",
    ADVICE,
    source="https://learn.microsoft.com/en-us/azure/storage/files/storage-files-networking-endpoints",
)
def mounted_by_address(facts: Facts) -> Iterator[Fault]:
    """Yield the addresses and privatelink names in sources of Azure Files, each once."""
    mounts: dict[tuple[str, str], list[Target]] = {}
    for target in facts.nfs:
        host = plain(split_source(target.source)[0])
        ordinary = _ordinary(facts, target, host)
        if ordinary:
            mounts.setdefault((host, ordinary), []).append(target)
    for (host, ordinary), (chief, *others) in mounts.items():
        kind = "an address" if as_address(host) is not None else "a name of the privatelink zone"
        alike = (chief, *others)
        remount = ""
        if any(target.live is not None for target in alike):
            remount = ", " + mount_all_again(alike, "unmount and mount again")
        places = dict.fromkeys(target.origin or definition(target) or "the mount command" for target in alike)
        yield Fault(
            chief.subject,
            f"the source {host} is {kind}; the account's ordinary name resolves to its private endpoint by "
            f"itself, and stays right when the endpoint is replaced{name_others(others)}",
            observed=host,
            expected=ordinary,
            remedy=f"use {ordinary} in {', '.join(places)}{remount}"
            + (", with the account's name for ACCOUNT" if ordinary.startswith("ACCOUNT.") else ""),
        )


@rule("NFS404", "address-drift", WARNING, needs=(LIVE, NETWORK), source=Manual.NFS)
def drifted(facts: Facts) -> Iterator[Fault]:
    """Yield live mounts with an address that their name no longer has.

    Other names than Azure's may stand for many machines, and each answer names a few: an old address that
    still serves is no drift there. Nor is an address that another live mount has by its own name: two
    addresses of one NFSv4.1 server are one client to the kernel, and both mounts show the first's.
    """
    answers = facts.network.by_name
    reaches = _by_address(facts)
    # The addresses of live mounts that their sources have too, in writing or by their names now.
    current = set()
    for target in facts.nfs:
        address, host = _shown_address(target), plain(split_source(target.source)[0])
        named = (host, *answers.get(host, _NOTHING).addresses)
        if address is not None and any(same_address(address, place) for place in named):
            current.add(as_address(address))
    for target in facts.nfs:
        address, host = _shown_address(target), plain(split_source(target.source)[0])
        answer = _answer(answers, target, host)
        if address is None or is_loopback(address) or as_address(address) in current:
            continue
        # IPv4 and IPv6 have queries of their own: one without an answer is no change.
        kinds = {type(as_address(place)) for place in answer.addresses}
        if answer.error or type(as_address(address)) not in kinds:
            continue
        if not _is_azure(facts, target, answer) and not _dead(
            _tried(reaches, (address,), target.endpoint.port)
        ):
            continue
        yield Fault(
            target.subject,
            f"the mount goes to {address}, and {host} is {', '.join(answer.addresses)} now: a mount "
            "resolves its name only once, and hangs when the old address no longer answers",
            observed=address,
            expected=", ".join(answer.addresses),
            remedy=mount_again(
                target, f" (sudo umount -l {quote(target.point)} where that hangs), then mount it again"
            ),
        )


@rule(
    "NFS405",
    "port-unreachable",
    ERROR,
    needs=(HOST, NETWORK),
    source="https://learn.microsoft.com/en-us/troubleshoot/azure/azure-storage/files/security/files-troubleshoot-linux-nfs",
)
def unreachable(facts: Facts) -> Iterator[Fault]:
    """Yield mounts without an address that opens the port; a live mount has no replicas."""
    doors = _Doors(facts)
    for target in facts.targets:
        place, tried = target.endpoint, doors.tried(target)
        if _dead(tried) and (target.live is not None or doors.all_shut(target)):
            shown = (f"{reach.address}: {reach.detail or reach.state.value}" for reach in tried)
            why = _WHY[tried[0].state] if len({reach.state for reach in tried}) == 1 else "does not open"
            yield Fault(
                target.subject,
                f"TCP port {place.port} of {place.host} {why}: the share cannot be used",
                observed="; ".join(shown),
                expected=f"TCP port {place.port} open",
                remedy=f"nc -zv {tried[0].address} {place.port}; open the port in the firewalls and network "
                "security groups between this machine and the server",
            )


@rule("NFS408", "name-unresolved", ERROR, needs=(NETWORK,), source=Manual.NFS)
def unresolved(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of servers without an address, by the resolver's own verdict."""
    doors = _Doors(facts)
    for target in facts.targets:
        answer = doors.answer(target)
        if not _is_nameless(target, answer) or not doors.all_shut(target):
            continue
        link = _link(answer)
        who = "it" if link == answer.host else f"its alias {link}"
        known = f"; {who} has no record in the zone that this machine asks" if link else ""
        works = "the mount goes on with its address, and " if target.live is not None else ""
        yield Fault(
            target.subject,
            f"the name {answer.host} does not resolve ({answer.error}){known}: {works}the next mount fails",
            observed=answer.error,
            expected="an address",
            remedy=f"getent hosts {quote(answer.host)} shows the error; correct the name or the DNS record",
        )


@rule("NFS410", "clear-in-public", ADVICE, source=Manual.NFS)
def clear_in_public(facts: Facts) -> Iterator[Fault | Need]:
    """Yield mounts of public IPv4 addresses of no provider with neither Kerberos nor TLS.

    A name needs the network, an address does not. Private networks have public IPv6 addresses too.
    """
    answers = facts.network.by_name
    for target in facts.nfs:
        options, host = target.options, plain(split_source(target.source)[0])
        own = (host,) if as_address(host) is not None else ()
        answer = _answer(answers, target, server_name(target))
        used = _used(target, answer) or own
        if target.endpoint.provider != GENERIC or _is_azure(facts, target, answer):
            continue
        if target.live is None and target.request is not None and target.request.wants_tunnel:
            continue
        if (options.get("sec") or "sys").startswith("krb5") or (options.get("xprtsec") or "none") != "none":
            continue
        if not used and not has_placeholder(host):
            yield from facts.lacks(NETWORK)
        if all_public(used) and all(isinstance(as_address(address), IPv4Address) for address in used):
            yield Fault(
                target.subject,
                f"the mount uses the public address {used[0]}, in the clear and with sec=sys: outside of a "
                "network of your own others on the way can read and change its data",
                observed=used[0],
                expected="a private network, sec=krb5p or xprtsec=mtls",
                remedy=f"use a VPN, or ask for sec=krb5p or xprtsec=mtls (Linux 6.5) in {where(target)}",
            )


def _answer(answers: dict[str, Answer], target: Target, host: str) -> Answer:
    """Return the resolver's answer about a mount's server; none where another namespace has its own."""
    return _NOTHING if target.elsewhere else answers.get(host, _NOTHING)


def _shown_address(target: Target) -> str | None:
    """Return the address that a live mount shows; None where nothing is mounted."""
    if has_stand_in(target):
        return target.endpoint.address
    return target.live.options.get("addr") if target.live is not None else None


def _ordinary(facts: Facts, target: Target, host: str) -> str:
    """Return the name by which Azure Files should be mounted instead of `host`; "" where nothing is wrong."""
    place = target.endpoint
    if as_address(host) is None:
        linked = names_azure_files(facts, host) and f".{_LINK}." in host
        return host.replace(f".{_LINK}.", ".", 1) if linked else ""
    if is_loopback(host) or has_stand_in(target) or not target.is_azure_files:
        return ""
    return place.host if as_address(place.host) is None else "ACCOUNT.file.core.windows.net"


class _Doors:
    """The answers about the names and ports of each mount, and of its replicas in automount(8)'s maps.

    A map's entry may name several servers for one place: automount takes one that answers.
    """

    def __init__(self, facts: Facts) -> None:
        self._answers, self._reaches = facts.network.by_name, _by_address(facts)
        self._replicas: dict[tuple[str, str], list[Target]] = {}
        for target in facts.targets:
            if _may_be_replica(target):
                self._replicas.setdefault((target.origin, target.point), []).append(target)

    def answer(self, target: Target) -> Answer:
        """Return the resolver's answer about a mount's server."""
        return _answer(self._answers, target, server_name(target))

    def tried(self, target: Target) -> tuple[Reach, ...]:
        """Return the attempts that count for a mount: at its address, or at those of its name.

        A mount of another namespace may be in another network, so that none counts.
        """
        place = target.endpoint
        if target.elsewhere or (target.options.get("proto") or "") in _NOT_TCP:
            return ()
        if any(option in target.options for option in _NOT_TCP):
            return ()
        named = self._answers.get(place.host, _NOTHING).addresses or (place.host,)
        return _tried(self._reaches, (place.address,) if place.address is not None else named, place.port)

    def all_shut(self, target: Target) -> bool:
        """Whether neither a mount nor one of its replicas can be mounted."""
        alike = self._replicas[target.origin, target.point] if _may_be_replica(target) else [target]
        return all(_dead(self.tried(mount)) or _is_nameless(mount, self.answer(mount)) for mount in alike)


def _may_be_replica(target: Target) -> bool:
    return target.request is not None and target.request.maker is Maker.AUTOFS


def _is_nameless(target: Target, answer: Answer) -> bool:
    """Whether a mount needs a name that, by the resolver's verdict, has no address.

    A mount by an address needs no name, unless the address is a tunnel's end.
    """
    host, _ = split_source(target.source)
    by_address = as_address(host) is not None and not is_loopback(host)
    return bool(answer.error) and answer.final and not by_address


def _is_azure(facts: Facts, target: Target, answer: Answer) -> bool:
    """Whether the server is Azure Files: by its name, by an alias on the way, or behind a tunnel."""
    return target.endpoint.provider == AZURE_FILES or any(
        names_azure_files(facts, name) for name in answer.chain
    )


def _used(target: Target, answer: Answer) -> tuple[str, ...]:
    """Return the addresses that count: a live mount's own while its name still has it, else the name's."""
    own, places = target.endpoint.address, answer.addresses
    if own is not None and (not places or any(same_address(own, place) for place in places)):
        return (own,)
    return places


def _link(answer: Answer) -> str:
    """Return the first name of a host and its chain of aliases in a privatelink zone; "" without one."""
    return next((name for name in (answer.host, *answer.chain) if f".{_LINK}." in f".{plain(name)}"), "")


def _zone(host: str) -> str:
    """Return the private DNS zone of an endpoint's name: the part behind the account."""
    _, mark, suffix = plain(host).partition(".file.")
    return f"{_LINK}.file.{suffix if mark else 'core.windows.net'}"


def _by_address(facts: Facts) -> _Reaches:
    """Return the attempts to connect by address and port."""
    return {(as_address(attempt.address), attempt.port): attempt for attempt in facts.network.reaches}


def _tried(reaches: _Reaches, addresses: tuple[str, ...], port: int) -> tuple[Reach, ...]:
    """Return the attempts at the addresses; a name has none."""
    keys = ((as_address(address), port) for address in addresses)
    return tuple(reaches[key] for key in keys if key[0] is not None and key in reaches)


def _dead(tried: tuple[Reach, ...]) -> bool:
    """Whether some address was tried, and none opened the port."""
    return bool(tried) and all(reach.state is not Reachable.OPEN for reach in tried)


@rule("NFS411", "mount-stalled", ERROR, needs=(LIVE,), source=Manual.NFS)
def stalled(facts: Facts) -> Iterator[Fault]:
    """Yield superblocks with requests that wait for their server, by the service's state."""
    if facts.stalled is None:
        return
    for superblock in facts.snapshot.superblocks:
        stall = facts.stalled.stalls.get(superblock.key)
        if stall is None or not superblock.mounts:
            continue
        mount = superblock.mounts[0]
        point, source = mount.point, mount.source
        since_s = facts.stalled.now_s - stall.since_s
        operations = f" ({', '.join(stall.operations)})" if stall.operations else ""
        waiters = facts.waiters.get(superblock.device, ())
        who = f"; waiting programs with files there: {some(waiters)}" if waiters else ""
        # The kernel's log names a server as it was mounted, or by its address.
        names = {source.partition(":/")[0], mount.options.get("addr") or ""}
        if _NO_ANSWER in facts.kernel_message and names & set(facts.kernel_message.split()):
            who += f'; the kernel says "{facts.kernel_message}"'
        waited = f"requests to {source}{operations} have waited for an answer for {since_s:.0f} s"
        if stall.recovering:
            waited = (
                f"after {since_s:.0f} s {source} answers again, and serves nobody yet, as in its grace "
                "period after a reboot"
            )
        yield Fault(
            point,
            f"{waited}: programs that use the mount hang, and only kill -9 ends them{who}",
            observed=f"stalled for {since_s:.0f} s",
            expected="answers",
            remedy="nfstuned check --select NFS405,NFS404 tries the server's name and port; see whether it "
            "runs and its disks answer; the journal reports the end: journalctl -u nfstuned "
            f"NFSTUNED_MOUNT_POINT={quote(point)}",
        )


@rule("NFS412", "mount-missing", ERROR, needs=(LIVE,), source=Manual.SYSTEMCTL)
def missing_mounts(facts: Facts) -> Iterator[Fault]:
    """Yield mounts that files ask for and that nobody has made, with systemd's reason."""
    for target, unit, state, entries in facts.absent:
        why = "nobody mounted it"
        if state.active == "failed":
            why = f"its mount failed ({state.result}){f': {state.failure}' if state.failure else ''}"
        names = count(entries or 0, "name")
        below = f"; the folder below it has {names}, which programs may have written" if entries else ""
        yield Fault(
            target.origin,
            f"{target.point} is not mounted: {why}{below}",
            observed=state.active,
            expected="mounted",
            remedy=f"sudo systemctl start {quote(unit)}; its messages are in journalctl -u {quote(unit)}",
        )
