"""What the commands that change transport groups have in common: what they look at, and how they ask."""

from __future__ import annotations

from collections.abc import Sequence

from nfstuned.cli import notes
from nfstuned.cli.progress import Patient
from nfstuned.core.remountcase import Case
from nfstuned.core.remountservers import names, servers
from nfstuned.core.targets import targets
from nfstuned.host.observe import observe
from nfstuned.host.outside import Outside, Questions
from nfstuned.host.root import Root
from nfstuned.model.facts import Facts, Network
from nfstuned.model.finding import Need
from nfstuned.model.policy import Policy


def facts_of(root: Root, policy: Policy) -> Facts:
    """Look at the mounts of this host."""
    snapshot = observe(root)
    notes.unreadable_lines(snapshot.problems)
    return Facts(frozenset({Need.LIVE}), snapshot, policy, targets(snapshot, policy))


def ask_servers(outside: Outside, found: Sequence[Case]) -> Network:
    """Return whether the servers of groups answer."""
    wanted = Questions(
        names=tuple(dict.fromkeys(name for case in found for name in names(case))),
        servers=tuple(dict.fromkeys(server for case in found for server in servers(case))),
    )
    network, unknown = Patient(outside).ask(wanted, offline=False)
    for line in unknown:
        notes.note(line)
    return network
