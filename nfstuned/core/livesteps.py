"""The order in which connections are added, and what is done when one carries nothing: `hands` do it.

First the connections that are there must carry requests, and the server must answer on as many more: nothing
has been written then. They are added one by one, and each must carry requests of our own before the next one
comes. What fails takes all of them back: the mount is then as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nfstuned.core.livechecks import reserved
from nfstuned.core.render import count
from nfstuned.model.kernel import Transport
from nfstuned.model.live import LiveHands, LivePlan, SwitchSeen, Xprt
from nfstuned.model.remount import Ended
from nfstuned.model.work import Result

ROUNDS = 8
"""Requests for each connection: the kernel takes them in turn, and other programs take turns, too."""
_OFF = frozenset({"OFFLINE", "REMOVE"})


@dataclass
class _Run:
    """A plan under way."""

    plan: LivePlan
    hands: LiveHands
    added: list[str] = field(default_factory=list)


def carry_out(plan: LivePlan, hands: LiveHands) -> tuple[Ended, ...]:
    """Add what is planned, or take it all back; return what came of each mount."""
    run = _Run(plan, hands)
    problem = _refused(run)
    if problem:
        reason = f"{problem}; nothing was changed"
    else:
        problem = _add_all(run)
        reason = f"{problem}; {_take_back(run)}" if problem else plan.reason
    result = Result.FAILED if problem else Result.DONE
    return tuple(Ended(point, plan.old, plan.new, result, reason) for point in plan.points)


def silent(before: Sequence[Transport], after: Sequence[Transport]) -> tuple[int, ...]:
    """Return which connections, in the kernel's order, carried nothing in between: no request, or no reply.

    `after` may have more of them: the kernel puts a new one behind all others.
    """
    return tuple(
        number
        for number, one in enumerate(after)
        if one.sends <= (before[number].sends if number < len(before) else 0)
        or one.receives <= (before[number].receives if number < len(before) else 0)
    )


def _refused(run: _Run) -> str:
    """Return why nothing is written: what is there must be as it was, carry requests, and be taken."""
    plan, hands = run.plan, run.hands
    seen = hands.switch()
    if seen is None or seen.names != plan.switch.names:
        return "its connections have changed since this was shown"
    why = hands.answers(plan.adding)
    if why:
        return f"the server does not answer on {count(plan.adding, 'further connection')} ({why})"
    why = _carry(run, plan.old, hands.counters())
    if why:
        return why
    # A connection that was idle for five minutes is closed and has no port; now all are open.
    seen = hands.switch()
    if seen is None:
        return "its connections have changed since this was shown"
    unknown = [one.name for one in _active(seen) if not one.source_port]
    return reserved(seen) or (f"from which port {unknown[0]} comes is not known" if unknown else "")


def _add_all(run: _Run) -> str:
    """Add one after the other; return what went wrong with which."""
    for number in range(run.plan.old + 1, run.plan.new + 1):
        why = run.hands.interrupted() or _add(run, number)
        if why:
            return f"connection {number}: {why}"
    return ""


def _add(run: _Run, number: int) -> str:
    before, counted = run.hands.switch(), run.hands.counters()
    if before is None or len(counted) != number - 1:
        return "the mount or its connections have changed meanwhile"
    said = run.hands.add()
    seen = run.hands.switch()
    fresh = sorted(seen.names - before.names) if seen is not None else []
    if len(fresh) == 1:
        run.added.extend(fresh)
    if said or len(fresh) != 1:
        return said or f"{len(fresh)} connections appeared where one was added"
    return _carry(run, number, counted)


def _carry(run: _Run, number: int, before: Sequence[Transport]) -> str:
    """Send requests; return why they do not prove that each of so many connections carries some."""
    sent = ROUNDS * number
    said = run.hands.ask(sent)
    if said:
        return f"requests over {run.plan.spot.point} come to nothing ({said})"
    after = run.hands.counters()
    if len(after) != number:
        return f"mountstats shows {count(len(after), 'connection')}, and {number} should be in use"
    idle = silent(before, after)
    return f"{count(len(idle), 'connection')} of {number} carried none of {sent} requests" if idle else ""


def _take_back(run: _Run) -> str:
    """Take away what was added, the last one first; return what is there now."""
    said = [why for name in reversed(run.added) if (why := _back(name, run.hands))]
    seen = run.hands.switch()
    if seen is None:
        return "the mount is gone, and its connections with it"
    active, still = len(_active(seen)), seen.names & set(run.added)
    if said or active != run.plan.old:
        why = "; ".join(said) or "another program changes them"
        return (
            f"it has {count(active, 'connection')} now, which could not all be taken back ({why}): "
            f"unmount all mounts of the server, then mount again"
        )
    kept = (
        f"; {', '.join(sorted(still))} stays listed, switched off, until they are unmounted" if still else ""
    )
    why = run.hands.ask(ROUNDS * active)
    if why:
        return f"what was added was taken back, and requests still come to nothing ({why}){kept}"
    added = "what was added was taken back" if run.added else "nothing was added"
    return f"{added}, and {count(active, 'connection')} carry requests as before{kept}"


def _back(name: str, hands: LiveHands) -> str:
    """Take one away; requests that it was given end first: those of NFSv3 do not move to another one."""
    why = hands.offline(name)
    if why:
        return why
    hands.settle(name)
    return hands.remove(name)


def _active(seen: SwitchSeen) -> list[Xprt]:
    return [one for one in seen.xprts if not one.state & _OFF]
