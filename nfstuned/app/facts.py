"""The facts of a host or an image: its files, its mounts, and the network's answers about them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from nfstuned.core.mounts.smb import credentials
from nfstuned.core.mounts.targets import is_missing, server_name, targets, unmounted_targets, with_proposal
from nfstuned.core.policy.endpoint import as_address, is_loopback, split_source
from nfstuned.errors import ParseError
from nfstuned.host.network.outside import Outside, Questions
from nfstuned.host.observe import (
    observe_entries,
    observe_host,
    observe_logins,
    observe_major_faults,
    observe_nfs_inodes,
    observe_stanzas,
    read_stalls,
)
from nfstuned.host.root import Root, resolve_links
from nfstuned.host.system import observe_image, observe_system
from nfstuned.model.facts import NO_NAMES, AbsentMount, Facts, Measured, Need, Target
from nfstuned.model.kernel import KernelRelease
from nfstuned.model.mounts import EFS_TYPE, Maker, Snapshot
from nfstuned.model.policy import Policy
from nfstuned.model.system import Network, NfsUtils, System
from nfstuned.parse.deploy.deployment import Deployment, JudgedFile, Kind, add_fstab
from nfstuned.parse.etc.settings import read_writers
from nfstuned.parse.fields import has_placeholder, unit_name
from nfstuned.parse.ignores import parse_ignores
from nfstuned.parse.proc.cifs import (
    added_smb_operations,
    read_smb_mounts,
    read_smb_operations,
    read_smb_sessions,
)
from nfstuned.parse.proc.processes import read_waiters
from nfstuned.parse.tree import FSTAB
from nfstuned.parse.udev_rules import read_ignored_files, read_rule_files

_ELSEWHERE = frozenset({Maker.KUBELET, Maker.DOCKER, Maker.PODMAN, Maker.TASK, Maker.COMMAND})
"""They ask other resolvers than this machine's, for names of a cluster or of another network."""
MISSING_S = 3.0
"""The time for an absent mount to appear, because a program may be about to mount it."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a check."""

    image: bool = False
    """The root is an image: files only, no kernel, no network."""
    offline: bool = False
    sample_s: float = 0.0
    """The seconds between two looks; 0 for a single look."""
    proposal: str = ""
    """The name of the file that replaces /etc/fstab.

    Unless it is the root's own, or for an image, it is judged alone: for no host, and for the kernel and the
    nfs-utils that are given here.
    """
    kernel: KernelRelease | None = None
    nfs_utils: tuple[int, ...] | None = None
    """The version: (2, 6, 4)."""
    files: tuple[str, ...] = ()
    """Files and folders that are judged alone, of any kind that is known."""

    @property
    def has(self) -> frozenset[Need]:
        """The needs of rules that it satisfies for a host or an image."""
        known = {Need.HOST, Need.KERNEL, Need.NFS_UTILS}
        if self.image:
            return frozenset({Need.IMAGE, *known})
        network = () if self.offline else (Need.NETWORK,)
        sample = (Need.SAMPLE,) if self.sample_s > 0 else ()
        return frozenset({Need.LIVE, *network, *sample, *known})

    @property
    def has_of_file(self) -> frozenset[Need]:
        """The needs of rules that it satisfies for a file that is judged alone."""
        network = () if self.offline else (Need.NETWORK,)
        kernel = (Need.KERNEL,) if self.kernel is not None else ()
        nfs_utils = (Need.NFS_UTILS,) if self.nfs_utils is not None else ()
        return frozenset({*network, *kernel, *nfs_utils})


def examine(root: Root, policy: Policy, scope: Scope, outside: Outside) -> Facts:
    """Return the facts for the rules. It touches no mount, and each wait for a server has a limit."""
    if scope.files:
        from nfstuned.app.files import read_deployment  # noqa: PLC0415 - most checks are of a host

        return _examine_files(read_deployment(scope.files), policy, scope, outside)
    if scope.proposal and not scope.image and not root.has_fstab(scope.proposal):
        deployment = Deployment()
        text = root.read(FSTAB)
        add_fstab(deployment, JudgedFile(scope.proposal, text))
        deployment.kinds[scope.proposal] = Kind.FSTAB
        deployment.ignores += parse_ignores(text, scope.proposal)
        return _examine_files(deployment, policy, scope, outside)
    snapshot = observe_image(root) if scope.image else observe_host(root)
    if scope.proposal:
        snapshot = with_proposal(snapshot, scope.proposal)
    smb_mounts, smb_problems = ((), ()) if scope.image else read_smb_mounts(root)
    mounts = targets(snapshot, policy, smb_mounts, scope.proposal)
    points = tuple(target.point for target in mounts if target.live is not None)
    facts = Facts(
        has=scope.has,
        snapshot=snapshot,
        policy=policy,
        targets=mounts,
        udev=read_rule_files(root),
        udev_unread=read_ignored_files(root),
        writers=read_writers(root, points),
        system=observe_system(root, image=scope.image),
        smb=() if scope.image else read_smb_sessions(root),
        proposal=scope.proposal,
        logins=observe_logins(root, credentials(mounts), image=scope.image),
    )
    if not scope.image:
        network, unknown = outside.ask(_questions(snapshot, mounts), offline=scope.offline)
        measured = _measure(root, facts, scope, outside, network) if scope.sample_s > 0 else None
        stalled = read_stalls(root)
        absent = () if scope.proposal else _absent_mounts(root, mounts, outside)
        facts = replace(
            facts,
            network=network,
            unknown=(*unknown, *map(str, facts.system.tls.problems)),
            now_s=outside.now(),
            measured=measured,
            nfs_inodes=observe_nfs_inodes(root) if facts.azure_files else None,
            stalled=stalled,
            # Only root may see the programs that wait.
            waiters=read_waiters(root, frozenset(device for device, _ in stalled.stalls))
            if stalled is not None and stalled.stalls and os.geteuid() == 0
            else NO_NAMES,
            kernel_message=outside.kernel_message() if stalled is not None and stalled.stalls else "",
            absent=absent,
        )
    # The last file has been read by now.
    problems = (*snapshot.problems, *smb_problems, *root.faults.unreported())
    return replace(facts, snapshot=replace(snapshot, problems=problems), faults=tuple(root.faults))


def _examine_files(deployment: Deployment, policy: Policy, scope: Scope, outside: Outside) -> Facts:
    """Return the facts of files of other hosts: their mounts, and the resolver's answers on them.

    Nothing of the running host is read: neither its mounts, programs and settings nor its network's devices.
    """
    intent = deployment.intent
    snapshot = Snapshot(
        requests=tuple(intent.requests),
        misnamed=tuple(intent.misnamed),
        local=tuple(intent.local),
        maps=tuple(intent.maps),
        kernel=scope.kernel,
        problems=tuple(intent.problems),
    )
    mounts = targets(snapshot, policy, (), scope.proposal, apart=True)
    names = Questions(names=_questions(snapshot, mounts).names, links=False)
    network, unknown = (Network(), ()) if scope.offline else outside.ask(names, offline=False)
    return Facts(
        has=scope.has_of_file,
        snapshot=snapshot,
        policy=policy,
        targets=mounts,
        network=Network(answers=network.answers),
        system=System(nfs_utils=None if scope.nfs_utils is None else NfsUtils(scope.nfs_utils)),
        udev=tuple(deployment.udev),
        proposal=scope.proposal,
        ignores=tuple(dict.fromkeys(deployment.ignores)),
        files={name: kind.value for name, kind in deployment.kinds.items()},
        unknown=(*unknown, *deployment.unread),
    )


def _absent_mounts(root: Root, mounts: tuple[Target, ...], outside: Outside) -> tuple[AbsentMount, ...]:
    """Return the mounts that are absent at two looks, `MISSING_S` apart."""
    wanted: dict[str, tuple[Target, str]] = {}
    for target in unmounted_targets(mounts):
        request, place = target.request, target.point
        if request is not None and request.maker is Maker.MOUNT:
            # systemd follows the links of fstab's lines, not of units.
            try:
                place = resolve_links(root, request.point, root.view)
            except OSError:
                place = request.point
        wanted.setdefault(unit_name(place), (target, place))
    states = outside.units(tuple(wanted)) if wanted else {}
    absent = [unit for unit, state in states.items() if is_missing(state)]
    if not absent:
        return ()
    outside.pause(MISSING_S)
    states = outside.units(absent)
    gone = {unit: state for unit, state in states.items() if unit in wanted and is_missing(state)}
    return tuple(
        AbsentMount(wanted[unit][0], unit, state, observe_entries(root, wanted[unit][1]))
        for unit, state in outside.failure_reasons(gone).items()
    )


def denied_files(root: Root, snapshot: Snapshot) -> tuple[ParseError, ...]:
    """Return the files that this user may not read and that `snapshot` lacks."""
    if not root.faults.denied():
        return ()
    # This process's mountstats has the same superblocks as process 1's.
    complete = bool(snapshot.stats or not snapshot.superblocks)
    return root.faults.denied((f"{root.view}/mountstats",) if complete else ())


def _questions(snapshot: Snapshot, mounts: tuple[Target, ...]) -> Questions:
    """Return the questions about mounts: each name and each port once, never a tunnel's own.

    Mounts of other namespaces are left out: they may have another resolver and other routes than this host.
    """
    names: dict[str, None] = {}
    servers: dict[tuple[str, int], None] = {}
    addresses: dict[str, None] = {}
    for target in mounts:
        host = target.endpoint.host
        if target.elsewhere or (target.request is not None and target.request.wildcard):
            continue
        if target.request is not None and target.request.maker in _ELSEWHERE:
            continue
        unknown = host.startswith("/") or has_placeholder(split_source(target.source)[0])
        if not host or unknown or is_loopback(host) or target.fstype == EFS_TYPE:
            continue
        if as_address(name := server_name(target)) is None:
            names[name] = None
        servers[target.endpoint.address or host, target.endpoint.port] = None
        if target.endpoint.address:
            addresses[target.endpoint.address] = None
    return Questions(tuple(names), tuple(servers), tuple(addresses), snapshot.azure)


def _measure(root: Root, facts: Facts, scope: Scope, outside: Outside, network: Network) -> Measured | None:
    """Return the changes between two looks; None where the counters could not be read."""
    # Most checks look once.
    from nfstuned.core.samples.rates import make_look, rates, sends_between, sessions_between  # noqa: PLC0415
    from nfstuned.host.network.links import observe_traffic, traffic_between  # noqa: PLC0415
    from nfstuned.parse.proc.processes import read_tunnels, tunnel_shares  # noqa: PLC0415

    names = tuple(interface.name for interface in network.interfaces)
    tunnels = read_tunnels(root, facts.system.tls.services)
    before, traffic, faults = observe_stanzas(root), observe_traffic(root, names), observe_major_faults(root)
    operations = read_smb_operations(root)
    seconds = outside.pause(scope.sample_s)
    after, later = observe_stanzas(root), observe_traffic(root, names)
    if before is None or after is None:
        return None
    snapshot = facts.snapshot
    tunnels_after = read_tunnels(root, facts.system.tls.services)
    first = make_look(snapshot, before, 0.0, 0.0, faults)
    second = make_look(snapshot, after, seconds, seconds, observe_major_faults(root))
    return Measured(
        seconds=seconds,
        samples=rates(first, second),
        sends=sends_between(first, second),
        sessions=sessions_between(first, second),
        traffic=traffic_between(traffic, later),
        smb=added_smb_operations(operations, read_smb_operations(root)),
        tunnels=tunnel_shares(tunnels, tunnels_after),
    )
