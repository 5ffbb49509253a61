"""What the commands that change transport groups have in common: what they look at, and how they ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from nfstuned.cli import notes
from nfstuned.cli.progress import Patient
from nfstuned.core.remount import cases, members
from nfstuned.core.remountcase import Case
from nfstuned.core.remountservers import names, servers
from nfstuned.core.targets import targets
from nfstuned.host.observe import observe
from nfstuned.host.outside import Outside, Questions
from nfstuned.host.root import Root
from nfstuned.model.facts import Facts, Network
from nfstuned.model.finding import Need
from nfstuned.model.policy import Policy
from nfstuned.model.remount import Node, Sight


class Candidates(NamedTuple):
    """Groups that should have another number of connections, before anybody looks closer at them."""

    facts: Facts
    """They hold whether the servers of the groups answer."""
    sight: Sight
    cases: tuple[Case, ...] = ()


def candidates(
    root: Root, policy: Policy, outside: Outside, nodes: tuple[Node, ...], place: str | None
) -> Candidates | None:
    """Look at the mounts of this host and ask the servers of such groups; `nodes` are all its mounts.

    Of all groups, or of that of the mount at `place` alone; None where no NFS mount is there.
    """
    facts, sight = _facts(root, policy), Sight(nodes=nodes)
    if place is not None and not members(facts, sight, place):
        return None
    found = cases(facts, sight, place)
    if not found:
        return Candidates(facts, sight)
    facts = replace(facts, network=_ask_servers(outside, found))
    return Candidates(facts, sight, cases(facts, sight, place))


def _facts(root: Root, policy: Policy) -> Facts:
    snapshot = observe(root)
    notes.unreadable_lines(snapshot.problems)
    return Facts(frozenset({Need.LIVE}), snapshot, policy, targets(snapshot, policy))


def _ask_servers(outside: Outside, found: Sequence[Case]) -> Network:
    wanted = Questions(
        names=tuple(dict.fromkeys(name for case in found for name in names(case))),
        servers=tuple(dict.fromkeys(server for case in found for server in servers(case))),
    )
    network, unknown = Patient(outside).ask(wanted, offline=False)
    for line in unknown:
        notes.note(line)
    return network
