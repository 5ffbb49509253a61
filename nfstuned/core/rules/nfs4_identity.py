"""Rules NFS413 and NFS414: the identity of the NFSv4 client, and other clients with the same identity."""

from __future__ import annotations

from collections.abc import Iterator

from nfstuned.core.rules.rule import (
    ADVICE,
    ERROR,
    HOST,
    LIVE,
    SAMPLE,
    WARNING,
    Manual,
    bake,
    mount_all_again,
    name_others,
    out_of_files,
    parameter,
    rule,
)
from nfstuned.model.facts import Facts, Fault
from nfstuned.model.mounts import EFS_TYPE
from nfstuned.model.system import IDENTITY_UNIT, MACHINE_ID
from nfstuned.parse.fields import sudo

_NAMES_OF_IMAGES = frozenset({
    *("localhost", "localhost.localdomain", "localhost-live", "(none)", "debian", "ubuntu", "fedora"),
    *("centos", "rocky", "almalinux", "opensuse", "raspberrypi", "alpine", "archlinux"),
})  # fmt: skip
"""The names that distributions give to a host without a name."""
_PARAMETER = "nfs.nfs4_unique_id"
_OFTEN = 3
"""New sessions of a client between two looks. A server's boot causes a single new session."""
_ENABLE = f"sudo systemctl enable --now {IDENTITY_UNIT}"


@rule("NFS413", "client-identity-generic", WARNING, needs=(HOST,), source=Manual.CLIENT_ID)
def generic(facts: Facts) -> Iterator[Fault]:
    """Yield the name of an NFSv4 client that others are likely to have as well, or will have."""
    v4 = [
        target
        for target in facts.targets
        if target.fstype == EFS_TYPE or (target.is_nfs and not target.is_v3)
    ]
    client = facts.system.client
    if not v4:
        return
    if facts.image:
        yield from _clones(facts, v4[0].subject)
        return
    if client.name is None:
        return
    identified = client.identifier or facts.system.parameters.get(_PARAMETER)
    if client.name.lower() in _NAMES_OF_IMAGES and not identified:
        yield Fault(
            client.name,
            f"this host is {client.name} to every NFSv4 server, like each host without a name: a server "
            "takes them for one client, and each takes the others' sessions, opens and locks away; "
            f"{v4[0].subject} uses NFSv4{name_others(v4[1:])}",
            observed=f"{client.name}, without an identifier",
            expected="a name or an identifier of its own",
            remedy=f"sudo hostnamectl set-hostname NAME, with a name of its own for NAME, or {_ENABLE}; then "
            + mount_all_again(v4, "unmount all NFSv4 mounts and mount them again"),
        )


def one_identifier(facts: Facts) -> tuple[str, str] | None:
    """Return the identifier that a parameter gives to all clones of an image, and its file and line.

    IDENTITY_UNIT does not change it. None where nothing sets it, or the clones have names of their own.
    """
    return _set_identifier(facts) if facts.system.client.named_alike else None


def _set_identifier(facts: Facts) -> tuple[str, str] | None:
    value, place = parameter(facts, _PARAMETER) or ("", "")
    value = value.strip('"')
    return (value, place) if value else None


def without_identifier(facts: Facts) -> str:
    """Return how to take that identifier out of the image."""
    return out_of_files(facts, _PARAMETER)


def _clones(facts: Facts, mount: str) -> Iterator[Fault]:
    """Yield the name, or the name and the identifier, that all clones of an image would share."""
    client = facts.system.client
    if client.name is None:
        one = None if client.renamed else _set_identifier(facts)
        if one is not None:
            value, place = one
            yield Fault(
                place,
                f"every clone of this image has the identifier {value} for NFSv4 servers: clones without "
                "names, or with the same, are one client to a server",
                observed=value,
                expected="an identifier for each clone",
                remedy=f"{without_identifier(facts)}; then {bake(facts)}",
                severity=ADVICE,
            )
        return
    # A system with a machine id is in use, and may never be cloned.
    used = MACHINE_ID in client.machine_ids
    severity = ADVICE if used else None
    # Where the id is empty and not absent, systemd applies no presets at the next boot (machine-id(5)).
    commands = [
        sudo("truncate --size=0" if file == MACHINE_ID else "rm", file, folder=facts.folder)
        for file in client.machine_ids
    ]
    one = one_identifier(facts)
    if one is not None:
        value, place = one
        yield Fault(
            place,
            f"every clone of this image is {client.name} with the identifier {value} to NFSv4 servers, and "
            f"{IDENTITY_UNIT} does not change it: a server takes the clones for one client, and each takes "
            f"the others' sessions, opens and locks away; {mount} uses NFSv4",
            observed=f"{client.name}, with {value}",
            expected="an identifier for each clone",
            remedy=f"where it is cloned, {'; '.join((without_identifier(facts), *commands))}; then "
            f"{bake(facts)}",
            severity=severity,
        )
        return
    if not client.shared_by_clones:
        return
    if client.given:
        yield Fault(
            client.machine_ids[0],
            f"the image has a machine id, in {' and in '.join(client.machine_ids)}, and all of its clones "
            "make the same identity for their NFSv4 client from it: a server takes the clones with the "
            f"name {client.name} for one client",
            observed="a machine id",
            expected="none",
            remedy=f"{'; '.join(commands)}: the first boot makes one",
        )
        return
    yield Fault(
        "/etc/hostname",
        f"every clone of this image is {client.name} to NFSv4 servers, unless something names it before "
        "the mounts: a server takes the clones for one client, and each takes the others' sessions, opens "
        f"and locks away; {mount} uses NFSv4",
        observed=client.name or "",
        expected="a name or an identifier for each clone",
        remedy=f"where it is cloned, {'; '.join((*commands, bake(facts)))}: each clone then makes itself an "
        "identifier from its machine id at boot; or remove /etc/hostname if something such as "
        "cloud-init names each clone",
        severity=severity,
    )


@rule("NFS414", "client-identity-shared", ERROR, needs=(LIVE, SAMPLE), source=Manual.CLIENT_ID)
def shared(facts: Facts) -> Iterator[Fault]:
    """Yield servers with which the client made many new sessions between two looks."""
    if facts.measured is None:
        return
    begun: dict[str, int] = {}
    for target in facts.nfs:
        if target.superblock is not None:
            # Mounts of one client show the same number; those of NFSv3, or of another client, have their own.
            server, sessions = target.source.partition(":/")[0], facts.measured.sessions
            begun[server] = max(begun.get(server, 0), sessions.get(target.superblock.device, 0))
    for server, times in begun.items():
        if times >= _OFTEN:
            yield Fault(
                server,
                f"the client had to make a new session with this server {times} times in "
                f"{facts.measured.seconds:.0f} s: another client probably has the same identity, "
                f"{facts.system.client.name or 'its host name'}, and each takes the other's session, opens "
                "and locks away",
                observed=f"{times} new sessions",
                expected="none",
                remedy="find the other host with this name, give this host another name (sudo hostnamectl "
                f"set-hostname NAME, with the new one for NAME) or an identifier ({_ENABLE}), then "
                + mount_all_again(facts.nfs, "unmount all NFSv4 mounts and mount them again"),
            )
