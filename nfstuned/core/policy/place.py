"""Where a mount leads, and which profiles the policy has for it."""

from __future__ import annotations

from dataclasses import dataclass

from nfstuned.core.policy.endpoint import endpoint, split_source
from nfstuned.core.policy.match import Choice, matcher, subject
from nfstuned.model.kernel import Mount, Options
from nfstuned.model.mounts import Endpoint, Snapshot, Superblock
from nfstuned.model.policy import Policy


@dataclass(frozen=True, slots=True)
class Place:
    """The server that a live mount really leads to, and the profile that applies."""

    endpoint: Endpoint
    choice: Choice


def place(policy: Policy, mount: Mount, superblock: Superblock | None, snapshot: Snapshot) -> Place:
    """Return the place of a live mount; `superblock` is None for what is not NFS."""
    stanza = snapshot.stanzas.get((mount.source, mount.point)) if snapshot.azure else None
    said = stanza.implementation if stanza else None
    server = endpoint(mount, superblock, snapshot.tunnels, snapshot.azure, said)
    return Place(server, choose(policy, mount.source, mount.point, mount.options, server))


def choose(policy: Policy, source: str, point: str, options: Options, server: Endpoint) -> Choice:
    """Return the profile of a mount of which everything is known, by the first [[policy]] entry for it."""
    host, export = split_source(source)
    known = subject(host, options.get("addr"), server, export=export, point=point)
    return matcher(policy).choices(known, server)[0]
