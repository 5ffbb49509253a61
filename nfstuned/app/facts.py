"""A host to Facts: what is seen in its files, what its mounts are, and what the network says of those."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nfstuned.core.mounts.targets import server_name, targets, with_proposal
from nfstuned.core.policy.endpoint import as_address, is_loopback
from nfstuned.core.samples.differences import sends_between
from nfstuned.core.samples.rates import look, rates
from nfstuned.errors import ParseError
from nfstuned.host.look.host import observe, observe_stanzas
from nfstuned.host.look.image import observe_image
from nfstuned.host.look.smb import observe_operations, observe_others, observe_smb, operations_between
from nfstuned.host.look.system import observe_system
from nfstuned.host.look.udev import observe_udev
from nfstuned.host.look.writers import observe_writers
from nfstuned.host.network.ask import Outside, Questions
from nfstuned.host.network.links import observe_traffic, traffic_between
from nfstuned.host.root import Root, WitnessRoot
from nfstuned.model.facts import Facts, Measured, Network, Target
from nfstuned.model.finding import Need
from nfstuned.model.mounts import Snapshot
from nfstuned.model.policy import Policy


@dataclass(frozen=True, slots=True)
class Scope:
    """What a check is to look at."""

    image: bool = False
    """The root is an image: files only, no kernel, no network."""
    offline: bool = False
    sample_s: float = 0.0
    """How far apart two looks are; 0 for a single look."""
    proposal: str = ""
    """The name of the file that stands in the place of /etc/fstab."""

    @property
    def has(self) -> frozenset[Need]:
        """What rules can be judged with it."""
        if self.image:
            return frozenset({Need.IMAGE})
        network = () if self.offline else (Need.NETWORK,)
        sample = (Need.SAMPLE,) if self.sample_s > 0 else ()
        return frozenset({Need.LIVE, *network, *sample})


def examine(root: Root, policy: Policy, scope: Scope, outside: Outside) -> Facts:
    """Return all that the rules judge. It touches no mount, and ends whatever the network does."""
    snapshot = observe_image(root) if scope.image else observe(root)
    if scope.proposal:
        snapshot = with_proposal(snapshot, scope.proposal)
    mounts = targets(snapshot, policy, () if scope.image else observe_others(root), scope.proposal)
    points = tuple(target.point for target in mounts if target.live is not None)
    facts = Facts(
        has=scope.has,
        snapshot=snapshot,
        policy=policy,
        targets=mounts,
        udev=observe_udev(root),
        writers=observe_writers(root, points),
        system=observe_system(root, image=scope.image),
        smb=() if scope.image else observe_smb(root),
        proposal=scope.proposal,
    )
    if isinstance(root, WitnessRoot):
        # What is no text where a text should be: the last file has been read by now.
        facts = replace(facts, snapshot=replace(snapshot, problems=(*snapshot.problems, *root.problems())))
    if scope.image:
        return facts
    network, unknown = outside.ask(_questions(snapshot, mounts, scope), offline=scope.offline)
    measured = _measure(root, snapshot, scope, outside, network) if scope.sample_s > 0 else None
    return replace(facts, network=network, unknown=unknown, measured=measured)


def unread(root: Root, snapshot: Snapshot) -> tuple[ParseError, ...]:
    """Return what this user may not read of all that was wanted for `snapshot`, and what is missed of it."""
    if not isinstance(root, WitnessRoot):
        return ()
    # Where process 1's may not be read, that of this process has the same superblocks.
    complete = bool(snapshot.stats or not snapshot.superblocks)
    return root.missed((f"{root.view}/mountstats",) if complete else ())


def _questions(snapshot: Snapshot, mounts: tuple[Target, ...], scope: Scope) -> Questions:
    """Return what is to be asked: each name and each port once, never a tunnel's own."""
    names: dict[str, None] = {}
    servers: dict[tuple[str, int], None] = {}
    addresses: dict[str, None] = {}
    for target in mounts:
        host = target.endpoint.host
        if target.request is not None and target.request.wildcard:
            continue
        if not host or is_loopback(host):
            continue
        if as_address(name := server_name(target)) is None:
            names[name] = None
        if target.is_nfs:
            servers[target.endpoint.address or host, target.endpoint.port] = None
        if target.endpoint.address:
            addresses[target.endpoint.address] = None
    return Questions(tuple(names), tuple(servers), tuple(addresses), scope.sample_s > 0, snapshot.azure)


def _measure(root: Root, snapshot: Snapshot, scope: Scope, outside: Outside, network: Network) -> Measured:
    """Return what happened between two looks."""
    names = tuple(interface.name for interface in network.interfaces)
    before, traffic = observe_stanzas(root), observe_traffic(root, names)
    operations = observe_operations(root)
    outside.pause(scope.sample_s)
    after, later = observe_stanzas(root), observe_traffic(root, names)
    first, second = look(snapshot, before, 0.0, 0.0), look(snapshot, after, scope.sample_s, scope.sample_s)
    return Measured(
        seconds=scope.sample_s,
        samples=rates(first, second),
        sends=sends_between(first, second),
        traffic=traffic_between(traffic, later),
        smb=operations_between(operations, observe_operations(root)),
    )
