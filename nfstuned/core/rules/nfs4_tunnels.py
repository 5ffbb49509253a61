"""Rules NFS415 to NFS422: the stunnels of AZNFS and others, by their configurations and the files of these.

AZNFS's configurations were read in src/nfsv4mountscript.sh of https://github.com/Azure/AZNFS-mount, their
effect was seen with stunnel 5.68.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from nfstuned.core.nconnect.server import servers
from nfstuned.core.nconnect.transport import busy_connections
from nfstuned.core.policy.endpoint import is_loopback, split_source
from nfstuned.core.rules.nfs2_nconnect import mounts_below_policy
from nfstuned.core.rules.rule import (
    ADVICE,
    ERROR,
    HOST,
    LIVE,
    SAMPLE,
    WARNING,
    WATCHDOG,
    Manual,
    enable,
    mount_all_again,
    rule,
    where,
)
from nfstuned.model.facts import Facts, Fault
from nfstuned.model.kernel import Mount, bracketed
from nfstuned.model.mounts import AZNFS, Maker
from nfstuned.model.system import TUNNEL_FULL, CaFile, Refusal, TunnelService
from nfstuned.parse.fields import RELOAD_UNITS, count, quote, quoted, some, then_sudo

_DAY_S = 86_400
_WARNING_S = 30 * _DAY_S
"""NFS416 warns so long before the last certificate of a file expires."""
_NEWEST_CAS = "install the newest ca-certificates of the distribution, "
_OVERDUE_S = 60
"""The time for the watchdog, which looks every five seconds, to remove an overdue entry."""
_WRONG_NAME = "Subject checks failed"
"""stunnel's reason for the refusal of a certificate with another name."""
_SYSTEM_FOLDER = "/etc/ssl/certs/"
_BUNDLE = "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"


@rule("NFS415", "tls-ca-unusable", ERROR, needs=(LIVE,), source=Manual.STUNNEL)
def unusable_ca(facts: Facts) -> Iterator[Fault]:
    """Yield files of CAs without a valid certificate, by which tunnels are to recognise their server."""
    for path, services, file, now_s in _only_ca_files(facts):
        if not file.ends_s:
            yield Fault(
                f"{services[0].file}:{services[0].ca_line}",
                f"{path} {'does not exist' if file.missing else 'has no certificate in PEM'}, and "
                f"{_trust(services)} no other file: a stunnel that ends does not start again, and the "
                "mounts through it wait",
                observed="no file" if file.missing else "no certificate",
                expected="the certificate of the server's CA",
                remedy=_renewal(path),
            )
        elif max(file.ends_s) < now_s:
            yield Fault(
                f"{services[0].file}:{services[0].ca_line}",
                f"{_certificates(file)} in {path} has expired, and {_trust(services)} no other file: "
                "stunnel refuses the server at every new connection, and the mounts through it wait",
                observed=f"valid until {_last_day(file)}",
                expected="a certificate that is valid",
                remedy=_NEWEST_CAS + _renewal(path),
            )


@rule("NFS416", "tls-ca-expires", WARNING, needs=(LIVE,), source=Manual.STUNNEL)
def expiring_ca(facts: Facts) -> Iterator[Fault]:
    """Yield files of CAs where the last certificate expires within a month."""
    for path, services, file, now_s in _only_ca_files(facts):
        left_s = max(file.ends_s, default=-1.0) - now_s
        if 0 <= left_s < _WARNING_S:
            yield Fault(
                f"{services[0].file}:{services[0].ca_line}",
                f"{_certificates(file)} in {path} will have expired after {_last_day(file)}, and "
                f"{_trust(services)} no other file: from then on stunnel refuses the server at every new "
                "connection, and the mounts through it wait",
                observed=f"{count(int(left_s // _DAY_S), 'day')} left",
                expected=f"at least {_WARNING_S // _DAY_S} days",
                remedy=_NEWEST_CAS + _renewal(path),
            )


@rule("NFS417", "tls-unverified", WARNING, needs=(LIVE,), source=Manual.STUNNEL)
def unverified(facts: Facts) -> Iterator[Fault]:
    """Yield tunnels that accept any server's certificate, or every certificate of their CAs."""
    for service in facts.system.tls.services:
        if service.verifies_peer or (service.verifies_chain and service.verifies_name):
            continue
        accepts = "of every server that its CAs sign" if service.verifies_chain else "of any server"
        yield Fault(
            f"{service.file}:{service.line}",
            f"the tunnel to {service.server} accepts the certificate {accepts}: a machine in between can "
            "read and change its mounts' data, although the tunnel is encrypted",
            observed=f"no {'checkHost' if service.verifies_chain else 'verifyChain'}",
            expected="verifyChain = yes and a checkHost, as mount.aznfs writes them",
            remedy=_mount_through(
                facts,
                service.port,
                f"wait until the watchdog has removed {service.file}, and mount again with -t {AZNFS}, which "
                "writes a new one",
            ),
        )


@rule("NFS418", "tls-port-twice", ERROR, needs=(LIVE,), source=Manual.AZNFS)
def port_twice(facts: Facts) -> Iterator[Fault]:
    """Yield tunnels that listen on the address and port of a tunnel to another server."""
    first: dict[str, TunnelService] = {}
    for service in facts.system.tls.services:
        other = first.setdefault(service.accept, service)
        if other.server == service.server:
            continue
        mounts = [target.point for target in facts.nfs if _goes_through(target.live, service.port)]
        reach = f"; {some(mounts)} may reach the other's server" if mounts else ""
        yield Fault(
            f"{service.file}:{service.line}",
            f"the tunnels to {other.server} and to {service.server} both have {service.accept} to listen "
            "on: only one of them can, and mounts of the other's shares go to the wrong server or "
            f"wait{reach}",
            observed=f"accept = {service.accept} in {other.file}:{other.line}, too",
            expected="a port for each",
            remedy=_mount_through(
                facts,
                service.port,
                f"wait until the watchdog has removed both files, and mount again with -t {AZNFS}",
            ),
        )


@rule("NFS419", "tls-entry-waits", WARNING, needs=(LIVE,), source=Manual.AZNFS)
def entry_waits(facts: Facts) -> Iterator[Fault]:
    """Yield tunnels that are kept for an overdue mount, and that no other mount uses."""
    ports = {service.file: service.port for service in facts.system.tls.services}
    watchdog = facts.system.tls.watchdog
    for entry in facts.system.tls.entries:
        port = ports.get(entry.configuration)
        if entry.status != "waiting" or port is None or facts.now_s is None:
            continue
        late_s = int(facts.now_s - entry.until_s)
        if late_s < _OVERDUE_S or _in_use(facts, port):
            continue
        if watchdog.active is False:
            remedy = enable(facts, watchdog, WATCHDOG)
        else:
            remedy = (
                "find the mount that hangs with pgrep -a mount.nfs, end it with sudo kill -9 PID, with its "
                "number for PID, install an AZNFS newer than 2026-02-18, and sudo systemctl restart "
                f"{WATCHDOG}"
            )
        yield Fault(
            f"{entry.file}:{entry.line}",
            f"the tunnel to {entry.server} is kept for a mount that was due {late_s} s ago, and the "
            "watchdog has not removed it: further mounts of that server go through the same tunnel and may "
            "wait too",
            observed=f"waiting, {late_s} s over its time",
            expected="mounted, or no entry",
            remedy=remedy,
        )


@rule("NFS420", "tls-server-refused", ERROR, needs=(LIVE,), source=Manual.STUNNEL)
def server_refused(facts: Facts) -> Iterator[Fault]:
    """Yield tunnels that refused their server's certificate at the last connection."""
    for service in facts.system.tls.services:
        refusal = facts.system.tls.refusals.get(service.file)
        if refusal is None:
            continue
        reason = quoted(refusal.reason) if refusal.reason else "a reason that its log does not name"
        yield Fault(
            f"{service.file}:{service.ca_line or service.line}",
            f"at its last connection, {refusal.time}, the tunnel to {service.server} refused the server "
            f"for {reason}: the port is open, and every mount that needs a new connection waits",
            observed=f"rejected {quoted(refusal.certificate)}",
            expected="a certificate of that name, from a CA of its file",
            remedy=_acceptance(facts, service, refusal),
        )


@rule("NFS421", "tls-tunnel-full", ADVICE, needs=(LIVE, SAMPLE), source=Manual.STUNNEL)
def thread_full(facts: Facts) -> Iterator[Fault]:
    """Yield tunnels with a fully used processor for each connection of their mounts."""
    if facts.measured is None:
        return
    listening = facts.system.tls.listening
    for service in facts.system.tls.services:
        through = [target for target in facts.nfs if _goes_through(target.live, service.port)]
        if not through or (listening is not None and service.port not in listening):
            continue
        threads = [share for share in facts.measured.tunnels.get(service.file, ()) if share >= TUNNEL_FULL]
        connections = max(busy_connections(target) or 1 for target in through)
        if len(threads) < connections:
            continue
        least = threads[connections - 1]
        ids = {target.identity for target in through}
        short = (pair for server in servers(facts) for pair in mounts_below_policy(server, facts))
        nconnect = max((number for number, target in short if target.identity in ids), default=0)
        remedy = (
            "move shares to another storage account, which has a tunnel of its own; nfstuned bench "
            f"{quote(through[0].point)} shows the limit"
        )
        if nconnect:
            remedy = _mount_through(facts, service.port, f"and mount again with nconnect={nconnect}")
            if through[0].by_program:
                remedy = f"put nconnect={nconnect} into the options in {where(through[0])}, then {remedy}"
            remedy += ": each connection has a thread of its own"
        if connections == 1:
            busy = (
                f"a thread of the tunnel had {least:.0%} of a processor, and it carries the only connection: "
                "it is"
            )
        else:
            busy = (
                f"{connections} threads of the tunnel had {least:.0%} of a processor or more, and they carry "
                f"all {connections} connections: they are"
            )
        yield Fault(
            service.file,
            f"in {facts.measured.seconds:.0f} s {busy} the limit for "
            f"{some([target.point for target in through])}{' together' if len(through) > 1 else ''}",
            observed=f"{least:.0%} of a processor",
            expected=f"below {TUNNEL_FULL:.0%}",
            remedy=f"{remedy} (nfstuned explain NFS421)",
        )


@rule("NFS422", "tunnel-unordered", ADVICE, needs=(HOST,), source="systemd.mount(5)")
def unordered(facts: Facts) -> Iterator[Fault]:
    """Yield mounts through a tunnel of this host that systemd does not order after the tunnel."""
    for mount in facts.snapshot.unordered:
        request, unit = mount.request, mount.unit
        place = f"{request.file}:{request.line}"
        of_line = request.maker is Maker.MOUNT
        if of_line:
            option = f"x-systemd.{'after' if mount.enabled else 'requires'}={unit}"
            remedy = f"add {option} to the options in {place}"
        else:
            lines = f"After={unit}" if mount.enabled else f"Requires={unit} and After={unit}"
            remedy = f"write {lines} below [Unit] in {request.file}"
        yield Fault(
            place,
            f"the mount goes through the tunnel of {quoted(unit)} ({mount.place}), and nothing orders it "
            "after that unit: at boot it may be tried before the tunnel is there, and at shutdown the "
            "tunnel may end first: then the unmount waits, and unwritten data are lost",
            observed="no order",
            expected=f"after {unit}",
            remedy=f"{remedy}{then_sudo(RELOAD_UNITS, image=facts.image)}",
        )


def _acceptance(facts: Facts, service: TunnelService, refusal: Refusal) -> str:
    """Return the commands that make a tunnel accept its server, if this is the right server."""
    if refusal.reason == _WRONG_NAME:
        return (
            "set AZURE_ENDPOINT_OVERRIDE to the suffix of the account's cloud for this mount (nfstuned "
            f"explain NFS409), {_mount_through(facts, service.port, f'and mount again with -t {AZNFS}')}"
        )
    address = bracketed(service.server)
    show = f"openssl s_client -connect {address}:{service.server_port} </dev/null shows its certificate"
    if not service.ca_file:
        return show
    return (
        f"{show}; if the system's bundle has its CA, sudo cp --remove-destination "
        f"/etc/ssl/certs/ca-certificates.crt {quote(service.ca_file)} on Debian and Ubuntu (elsewhere "
        f"{_BUNDLE}), then sudo pkill -HUP stunnel"
    )


def _in_use(facts: Facts, port: int) -> bool:
    """Whether a mount uses a tunnel's port, in any mount namespace: superblocks show hidden mounts, too."""
    return any(
        (superblock.volume is not None and superblock.volume.port == port)
        or any(mount.options.number("port") == port for mount in superblock.mounts)
        for superblock in facts.snapshot.superblocks
    )


def _goes_through(mount: Mount | None, port: int) -> bool:
    """Whether a mount's server is the loopback address with a tunnel's port."""
    return (
        mount is not None
        and mount.options.number("port") == port
        and is_loopback(split_source(mount.source)[0])
    )


def _only_ca_files(facts: Facts) -> Iterator[tuple[str, list[TunnelService], CaFile, float]]:
    """Yield each file of CAs with the services that trust only this file: path, services, content, time."""
    groups: dict[str, list[TunnelService]] = {}
    for service in facts.system.tls.services:
        if service.verifies_chain and not service.verifies_peer and service.ca_file and not service.other_ca:
            groups.setdefault(service.ca_file, []).append(service)
    for path, services in groups.items():
        file = facts.system.tls.ca_files.get(path)
        if file is not None and facts.now_s is not None:
            yield path, services, file, facts.now_s


def _trust(services: list[TunnelService]) -> str:
    """Return the beginning of a sentence, "the tunnel to SERVER trusts"."""
    servers = tuple(dict.fromkeys(service.server for service in services))
    if len(servers) == 1:
        return f"the tunnel to {servers[0]} trusts"
    return f"the tunnels to {some(servers)} trust"


def _mount_through(facts: Facts, port: int, then: str) -> str:
    """Return how the mounts through a tunnel come back; `then` follows their unmounting."""
    through = [target for target in facts.nfs if _goes_through(target.live, port)]
    unmounted = f"unmount the mounts through port {port} (findmnt -t nfs4 -O port={port}), {then}"
    return mount_all_again(through, unmounted)


def _certificates(file: CaFile) -> str:
    return "the only certificate" if len(file.ends_s) == 1 else f"each of the {len(file.ends_s)} certificates"


def _renewal(path: str) -> str:
    """Return the commands that write a new file of CAs and make stunnel read it."""
    if path.startswith(_SYSTEM_FOLDER):
        made = (
            "run sudo update-ca-certificates --fresh on Debian, Ubuntu and SLES, elsewhere sudo cp "
            f"{_BUNDLE} {quote(path)}"
        )
    else:
        made = f"write the certificate of the server's CA to {path}"
    return f"{made}; then sudo pkill -HUP stunnel lets the tunnels read it"


def _last_day(file: CaFile) -> str:
    """Return the day (UTC) on which the last certificate of a file expires."""
    return datetime.fromtimestamp(max(file.ends_s), tz=timezone.utc).strftime("%Y-%m-%d")
