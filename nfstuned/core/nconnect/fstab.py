"""Which entries of an fstab should ask for how many connections, and which are left alone, and why.

All shares of one server get one number, or none is changed: the first mount of a server decides for all of
them, and Azure Files does not support shares of one account that differ (rule NFS205). Mounts that no edit
of fstab changes count like shares that stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from nfstuned.core.nconnect.against import Refusal, contrary, refusal
from nfstuned.core.nconnect.fstab_members import FstabEntry, Mounts, ServerUsers, servers
from nfstuned.core.nconnect.groups import allowed
from nfstuned.model.change import Change, ChangeKind
from nfstuned.model.facts import Facts, Network, Target
from nfstuned.model.mounts import FSTAB, Result


@dataclass(frozen=True, slots=True)
class FstabPlan:
    """A change for each entry that asks for another number than its server's, planned or not."""

    changes: tuple[Change, ...]
    """In the order of their lines."""
    counts: Mapping[int, int]
    """The numbers that planned changes write, by line."""


def plan_fstab(mounts: Mounts, network: Network) -> FstabPlan:
    """Return what should become of the entries; `network` has the answers about unsettled names."""
    facts = replace(mounts.facts, network=network)
    changes = dict(change for server in servers(mounts, facts) for change in _of_server(server, facts))
    counts = {
        line: change.new
        for line, change in changes.items()
        if change.result is Result.PLANNED and isinstance(change.new, int)
    }
    return FstabPlan(tuple(changes[line] for line in sorted(changes)), counts)


def _of_server(server: ServerUsers, facts: Facts) -> Iterator[tuple[int, Change]]:
    """Yield a change by its line for each entry that asks for another number."""
    if all(entry.target.profile.nconnect is None for entry in server.entries):
        return
    count = _count(server)
    wrong = [entry for entry in server.entries if entry.asked != count]
    refused = {entry.line: refusal(entry, count, facts) for entry in wrong}
    stuck = _stuck(server, refused, count, facts)
    for entry in wrong:
        against = refused[entry.line] or stuck
        yield (
            entry.line,
            Change(
                kind=ChangeKind.FSTAB,
                target=f"{FSTAB}:{entry.line}",
                old=entry.asked,
                new=count,
                result=against.result if against else Result.PLANNED,
                reason=against.reason if against else _why(entry, server, count),
                place=entry.target.point,
            ),
        )


def _stuck(
    server: ServerUsers, refused: Mapping[int, Refusal | None], count: int, facts: Facts
) -> Refusal | None:
    """Return what keeps all entries of a server as they are: the first that stays, or another mount."""
    named = (
        *((f"{FSTAB}:{line}", against) for line, against in refused.items()),
        *((_name(target), contrary(target, count, facts)) for target in server.others),
    )
    name, against = next(((name, against) for name, against in named if against is not None), ("", None))
    if against is None:
        return None
    return replace(against, reason=f"{name} is of the same server and stays as it is: {against.reason}")


def _name(target: Target) -> str:
    return f"the mount at {target.point}" if target.live is not None else target.subject


def _count(server: ServerUsers) -> int:
    """Return the number for all shares of a server."""
    targets = [*(entry.target for entry in server.entries), *server.others]
    wanted = (entry.target.profile.nconnect for entry in server.entries)
    return common(targets, wanted, (target.wanted.number("nconnect") for target in targets))


def common(targets: Iterable[Target], wanted: Iterable[int | None], asked: Iterable[int | None]) -> int:
    """Return the number for all mounts of a server; one of `wanted` must be there.

    It is the most that a profile recommends or that a mount asks for of itself, within what every profile
    allows: more than that is lowered, as NFS202 asks.
    """
    most = min(allowed(target) for target in targets)
    own = (number for number in asked if number is not None and number <= most)
    return min(most, max((*(number for number in wanted if number is not None), *own)))


def _why(entry: FstabEntry, server: ServerUsers, count: int) -> str:
    profile = entry.target.profile
    if entry.asked is not None and profile.nconnect_max is not None and entry.asked > profile.nconnect_max:
        return f"{profile.name} allows at most {profile.nconnect_max}"
    if profile.nconnect == count:
        return f"{profile.name} asks for nconnect={count}"
    lines = (f"{FSTAB}:{other.line}" for other in server.entries if other.asked == count)
    others = (_name(target) for target in server.others if target.wanted.number("nconnect") == count)
    other = next(iter((*lines, *others)), "")
    if other:
        return f"as {other}, which is of the same server"
    return f"the profiles of {entry.host} allow nconnect={count}"
