"""Adding connections to mounted transport groups: which, in which order, and what is against it.

It is only done where it was proven to be safe; what nobody tried is refused, too.

First the connections that are there must carry requests, and the server must answer on as many more: nothing
has been written then. They are added singly, and each must carry requests of our own before the next
comes. What fails takes all of them back: the mount is then as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from nfstuned.core.nconnect.busy import is_tunnel, servers, unfit_part
from nfstuned.core.nconnect.case import Case, Goal, goal
from nfstuned.core.nconnect.groups import Groups, members
from nfstuned.core.policy.endpoint import NFS_PORT
from nfstuned.errors import ParseError
from nfstuned.model.change import Change, ChangeKind
from nfstuned.model.connections import (
    ConnectionHands,
    Left,
    LivePlan,
    Sight,
    Spot,
    Switches,
    SwitchLook,
    SwitchSeen,
    Xprt,
)
from nfstuned.model.facts import Facts, Target
from nfstuned.model.kernel import Transport
from nfstuned.model.mounts import Result
from nfstuned.parse.fields import count, some

SINCE, SINCE_TEXT = (7, 1, 13), "7.1.13"
"""The first kernel that was read in which add_xprt passes on no uninitialised memory: "sunrpc: fix
uninitialized xprt_create_args structure" (net/sunrpc/sysfs.c), merged for 7.2 and taken over into 7.1."""
_SEVERAL = 2
RESERVED = 1023
"""The last port that only root may use; a server whose export is `secure` takes requests from no other."""
_PROVEN = ("3", "4.1", "4.2")
_UNPROVEN = "nobody showed it to be safe"
_UNFIT: tuple[tuple[Callable[[Target], bool], str], ...] = (
    (
        lambda target: (target.options.number("nconnect") or 1) < _SEVERAL,
        "was made without nconnect: a connection that is added to such a mount carries nothing",
    ),
    (
        lambda target: "noresvport" not in target.options,
        (
            "was made without noresvport: a connection that is added comes from a port above "
            f"{RESERVED} all the same, and where the server refuses that, reading and writing begin to fail "
            "(EPERM)"
        ),
    ),
    (
        lambda target: target.options.get("vers") not in _PROVEN,
        f"is not NFS {', '.join(_PROVEN[:-1])} or {_PROVEN[-1]}: {_UNPROVEN} there",
    ),
    (
        lambda target: target.options.get("xprtsec") not in {None, "none"} or is_tunnel(target),
        f"is encrypted on its way: {_UNPROVEN} there",
    ),
    (
        lambda target: (target.options.number("max_connect") or 1) > 1,
        f"has max_connect: {_UNPROVEN} with several addresses",
    ),
)
"""Which mounts get no further connections, and what is told of them behind their mount points."""


def _against_options(case: Case) -> Iterator[str]:
    """Yield what is against it as far as that is known without a look at the connections."""
    release, wanted = case.facts.snapshot.kernel, case.goal
    if wanted.new <= wanted.old:
        yield f"it has more connections than it should ({wanted.reason}): only mounting again takes them away"
    if release is None or release.version < SINCE:
        name = f"Linux {release.text}" if release is not None else "this kernel"
        yield (
            f"{name} cannot do it safely: before Linux 6.15 it is not possible, and before {SINCE_TEXT} it "
            "uses memory that the kernel did not initialise"
        )
    for is_unfit, why in _UNFIT:
        points = [target.point for target in case.group if is_unfit(target)]
        if points:
            yield f"{some(points)} {why}"
    if why := unfit_part(case):
        yield why


def _common_switch(switches: Sequence[SwitchLook]) -> SwitchSeen | str:
    """Return the connections that all superblocks of a group use, or why these are not known."""
    error = next((seen for seen in switches if isinstance(seen, ParseError)), None)
    if error is not None:
        return f"its connections are not understood: {error}"
    by_name = {switch.name: switch for switch in reversed(switches) if isinstance(switch, SwitchSeen)}
    if None in switches or not by_name:
        return "the kernel does not tell which connections it uses (/sys/fs/nfs)"
    if len(by_name) > 1:
        return f"its superblocks use different connections ({', '.join(sorted(by_name))})"
    return next(iter(by_name.values()))


def _against_connections(switch: SwitchSeen, wanted: Goal) -> Iterator[str]:
    """Yield what is against it in the connections that are there."""
    there, addresses = switch.info.active, switch.info.unique_addresses
    if addresses != 1:
        yield f"its connections lead to {addresses} addresses: {_UNPROVEN} there"
    protocols = sorted({xprt.protocol for xprt in switch.xprts} - {"tcp"})
    if protocols:
        yield f"its connections are {some(protocols)}, and not plain TCP: {_UNPROVEN} there"
    if not switch.grows:
        yield f"the kernel has no add_xprt for {switch.name}"
    if there < _SEVERAL:
        yield f"nconnect={wanted.old} is shown and {there} connection exists: what is added may carry nothing"
    if there >= wanted.new:
        yield f"it has {there} connections already, though not all of them carried requests"
    if why := reserved(switch):
        yield why


def reserved(switch: SwitchSeen) -> str:
    """Return which connections come from a reserved port: others were proven nowhere to be taken there."""
    names = [xprt.name for xprt in switch.xprts if xprt.source_port and xprt.source_port <= RESERVED]
    if not names:
        return ""
    return (
        f"{some(names)} comes from a port of at most {RESERVED}, whatever the options say (the first mount "
        "decided it for all): whether the server takes other ports is not known"
    )


def plan_live(case: Case, switches: Switches, unanswered: str = "") -> LivePlan | Left:
    """Return what is added to a group, or why nothing is; `unanswered` is why its server does not answer."""
    points = tuple(sorted(target.point for target in case.group))
    why = next(_against_options(case), "")
    switch = _common_switch([switches.get(device) for device in sorted(case.devices)])
    if isinstance(switch, str):
        return Left(points, case.goal.old, case.goal.new, why or switch)
    why = why or next(_against_connections(switch, case.goal), "") or unanswered
    spot = _spot(case)
    if why or spot is None:
        unknown = "the mount has no superblock or no counters that could be read"
        return Left(points, case.goal.old, case.goal.new, why or unknown)
    return LivePlan(
        points=points,
        old=switch.info.active,
        new=case.goal.new,
        shown=case.group[0].options.number("nconnect") or 1,
        reason=case.goal.reason,
        spot=spot,
        switch=switch,
        place=next(iter(servers(case)), ("", NFS_PORT)),
    )


def promising(target: Target, facts: Facts, known: Groups) -> bool:
    """Return whether nothing in the options of a live mount's group is against it: the rest is tried."""
    group = members(target, facts, known) if target.live is not None else ()
    wanted = goal(group, facts, known) if group else None
    if wanted is None:
        return False
    return next(_against_options(Case(facts, Sight(), group, group, (), wanted)), None) is None


def _spot(case: Case) -> Spot | None:
    """Return the mount over which its connections are tried; one that a file or somebody asked for."""
    for target in (*case.parts, *case.own):
        block, live = target.superblock, target.live
        if block is not None and block.bdi is not None and live is not None and target.stats is not None:
            return Spot(target.point, live.mount_id, target.source, block.device, block.bdi)
    return None


ROUNDS = 8
"""Requests for each connection: the kernel takes them in turn, and other programs take turns, too."""
_OFF = frozenset({"OFFLINE", "REMOVE"})


@dataclass(slots=True, eq=False)
class _Run:
    """A plan under way."""

    plan: LivePlan
    hands: ConnectionHands
    added: list[str] = field(default_factory=list)


def planned(plan: LivePlan) -> tuple[Change, ...]:
    """Return the mounts of a plan before it is carried out."""
    return tuple(
        Change(ChangeKind.LIVE, point, plan.old, plan.new, Result.PLANNED, plan.reason)
        for point in plan.points
    )


def carry_out(plan: LivePlan, hands: ConnectionHands) -> tuple[Change, ...]:
    """Add what is planned, or take it all back; return what came of each mount."""
    run = _Run(plan, hands)
    problem = _refused(run)
    if problem:
        reason = f"{problem}; nothing was changed"
    else:
        problem = _add_all(run)
        reason = f"{problem}; {_take_back(run)}" if problem else plan.reason
    result = Result.FAILED if problem else Result.DONE
    return tuple(replace(change, result=result, reason=reason) for change in planned(plan))


def idle_connections(before: Sequence[Transport], after: Sequence[Transport]) -> tuple[int, ...]:
    """Return which connections, in the kernel's order, carried nothing in between: no request, or no reply.

    `after` may have more of them: the kernel puts a new connection behind all others.
    """
    return tuple(
        number
        for number, transport in enumerate(after)
        if transport.sends <= (before[number].sends if number < len(before) else 0)
        or transport.receives <= (before[number].receives if number < len(before) else 0)
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
    unknown = [xprt.name for xprt in _active(seen) if not xprt.source_port]
    return reserved(seen) or (f"from which port {unknown[0]} comes is not known" if unknown else "")


def _add_all(run: _Run) -> str:
    """Add the connections singly; return what went wrong with which."""
    for number in range(run.plan.old + 1, run.plan.new + 1):
        why = run.hands.interrupted() or _add(run, number)
        if why:
            return f"connection {number}: {why}"
    return ""


def _add(run: _Run, number: int) -> str:
    before, counted = run.hands.switch(), run.hands.counters()
    if before is None or len(counted) != number - 1:
        return "the mount or its connections have changed meanwhile"
    error = run.hands.add()
    seen = run.hands.switch()
    fresh = sorted(seen.names - before.names) if seen is not None else []
    if len(fresh) == 1:
        run.added.extend(fresh)
    if error or len(fresh) != 1:
        return error or f"{len(fresh)} connections appeared where one was added"
    return _carry(run, number, counted)


def _carry(run: _Run, number: int, before: Sequence[Transport]) -> str:
    """Send requests; return why they do not prove that each of so many connections carries some."""
    sent = ROUNDS * number
    error = run.hands.ask(sent)
    if error:
        return f"requests over {run.plan.spot.point} come to nothing ({error})"
    after = run.hands.counters()
    if len(after) != number:
        return f"mountstats shows {count(len(after), 'connection')}, and {number} should be in use"
    idle = idle_connections(before, after)
    return f"{count(len(idle), 'connection')} of {number} carried none of {sent} requests" if idle else ""


def _take_back(run: _Run) -> str:
    """Take away what was added, the last first; return what is there now."""
    errors = [why for name in reversed(run.added) if (why := _back(name, run.hands))]
    seen = run.hands.switch()
    if seen is None:
        return "the mount is gone, and its connections with it"
    active, still = len(_active(seen)), seen.names & set(run.added)
    if errors or active != run.plan.old:
        why = "; ".join(errors) or "another program changes them"
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


def _back(name: str, hands: ConnectionHands) -> str:
    """Take a connection away once its requests have ended: those of NFSv3 move to no other."""
    why = hands.offline(name)
    if why:
        return why
    hands.settle(name)
    return hands.remove(name)


def _active(seen: SwitchSeen) -> list[Xprt]:
    return [xprt for xprt in seen.xprts if not xprt.state & _OFF]
