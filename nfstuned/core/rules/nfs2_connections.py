"""Rules NFS208 to NFS212: connections as they are, what they carry, and the slots for requests on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nfstuned.core.nconnect.groups import groups, is_azure_files, is_netapp, version
from nfstuned.core.rules import sources
from nfstuned.core.rules.remedies import ParameterWish, lasting, parameter
from nfstuned.core.rules.rule import ADVICE, LIVE, SAMPLE, WARNING, rule
from nfstuned.model.facts import Facts, Target
from nfstuned.model.finding import Fault
from nfstuned.model.kernel import decimal
from nfstuned.model.samples import Sample
from nfstuned.parse.fields import count

_MOST = 128
_LEAST = 180


SLOT_TABLE = ParameterWish(
    "sunrpc.tcp_max_slot_table_entries",
    str(_MOST),
    lambda value: (number := decimal(value)) is not None and number <= _MOST,
    "sunrpc-slots.conf",
)
SESSION_SLOTS = ParameterWish(
    "nfs.max_session_slots",
    str(_LEAST),
    lambda value: (number := decimal(value)) is not None and number >= _LEAST,
    "nfs-slots.conf",
)
_VERSIONS = {SLOT_TABLE.name: "3", SESSION_SLOTS.name: "4.1"}
"""The version of NFS that each is about."""
_DEFAULTS = {SLOT_TABLE.name: 65536, SESSION_SLOTS.name: 64}
"""What kernels have where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """The mounts that a parameter does not suit, and what it is or will be."""

    users: tuple[Target, ...]
    value: int


def crowd(facts: Facts, wish: ParameterWish) -> Crowd | None:
    """Return the mounts of Azure NetApp Files that want another value; None for none, or if nothing tells."""
    wanted = _VERSIONS[wish.name]
    users = tuple(target for target in facts.nfs if is_netapp(target) and version(target) == wanted)
    # A module that is loaded and does not tell has no value that anybody knows.
    loaded = any(target.live is not None for target in facts.nfs)
    default = "" if loaded else str(_DEFAULTS[wish.name])
    value = decimal((parameter(facts, wish.name) or (default, ""))[0])
    return Crowd(users, value) if users and value is not None and not wish.fits(str(value)) else None


_BUSY_SENDS = 64
"""A connection that sent nothing meanwhile is left out: the kernel takes them in turn."""
_DEEPEST = 64
_ALONE, _AT_WORK, _BEYOND_ALONE = 1.25, 0.5, 1.5
_ALIKE = 2.0
"""Requests under way by two counts are of one size: bursts find more than there are in the mean."""


@rule(
    "NFS208",
    "connections-missing",
    WARNING,
    needs=(LIVE,),
    source="https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/net/sunrpc/clnt.c",
)
def connections_missing(facts: Facts) -> Iterator[Fault]:
    """Yield one mount of each transport group that has too few connections, or some that carry nothing."""
    for members in groups(facts).live.values():
        shown = next((member for member in members if member.stats and member.stats.transports), None)
        if shown is None or shown.stats is None:
            continue
        wanted, there = shown.options.number("nconnect") or 1, len(shown.stats.transports)
        sent = _sent(facts, shown)
        silent, exist = sent.count(0), count(there, "connection")
        if there < wanted:
            yield Fault(
                shown.subject,
                f"nconnect={wanted} is shown and {exist} exist: the kernel gives up quietly when a "
                f"further one cannot be made{_others(members)}",
                observed=exist,
                expected=count(wanted, "connection"),
                remedy="umount every mount of this server and mount again; see the kernel's log for why",
            )
        elif silent and max(sent) >= _BUSY_SENDS:
            yield Fault(
                shown.subject,
                f"{silent} of {exist} sent nothing while another sent {max(sent)} requests: they are "
                f"blocked on their way, or were added to a mount that was made without nconnect"
                f"{_others(members)}",
                observed=f"requests sent: {', '.join(map(str, sent))}",
                expected="about the same on each",
                remedy="umount every mount of this server and mount again with nconnect; then look at the "
                "firewall's limits of connections",
            )


@rule("NFS209", "queue-depth-high", ADVICE, needs=(SAMPLE,), source=sources.PERFORMANCE)
def queue_deep(facts: Facts) -> Iterator[Fault]:
    """Yield one Azure Files mount of each group with more requests at a time than are of use."""
    for busy in _measured(facts):
        depth = busy.depth
        if is_azure_files(busy.target) and depth is not None and depth > _DEEPEST:
            yield Fault(
                busy.target.subject,
                f"a mean of {depth:.0f} requests are under way or wait for a slot: beyond {_DEEPEST} nothing "
                "is gained, and each one takes longer",
                observed=f"{depth:.0f} requests",
                expected=f"at most {_DEEPEST}",
                remedy="use fewer threads or a smaller I/O depth, or more clients",
            )


@rule("NFS212", "nconnect-latency-bound", ADVICE, needs=(SAMPLE,), source=sources.PERFORMANCE)
def latency_bound(facts: Facts) -> Iterator[Fault]:
    """Yield one mount of each group with nconnect that has one request at a time."""
    for busy in _measured(facts):
        shown = busy.target.options.number("nconnect") or 1
        if shown > 1 and busy.alone:
            yield Fault(
                busy.target.subject,
                f"nconnect={shown} and about one request at a time: a single thread waits for each answer, "
                "and further connections cannot make that faster",
                observed=f"{busy.under_way:.1f} requests under way",
                expected="more than one",
                remedy="work with several threads or files; or try this work without nconnect, which may be "
                "faster",
            )


@rule("NFS210", "slot-table-unbounded", WARNING, source=sources.SLOTS)
def slot_table_unbounded(facts: Facts) -> Iterator[Fault]:
    """Yield the first NetApp mount over NFS 3 where its connections may have too many slots."""
    crowded = crowd(facts, SLOT_TABLE)
    if crowded is not None:
        name, most = SLOT_TABLE.name, SLOT_TABLE.value
        live = f"for now: sudo sysctl {name}={most}, then umount and mount again"
        remedies = [lasting(facts, SLOT_TABLE), live if name in facts.system.parameters else ""]
        yield Fault(
            crowded.users[0].subject,
            f"{name} is {crowded.value}: that many requests may be under way on each connection, and Azure "
            f"NetApp Files stops taking them beyond {most}{_others(crowded.users)}",
            observed=str(crowded.value),
            expected=f"at most {most}",
            remedy="; ".join(filter(None, remedies)),
        )


@rule("NFS211", "session-slots-low", ADVICE, source=sources.SLOTS)
def session_slots_low(facts: Facts) -> Iterator[Fault]:
    """Yield the first NetApp mount over NFS 4.1 where a session has few slots."""
    crowded = crowd(facts, SESSION_SLOTS)
    if crowded is not None:
        yield Fault(
            crowded.users[0].subject,
            f"{SESSION_SLOTS.name} is {crowded.value}: all mounts of one server together can have no more "
            f"requests under way{_others(crowded.users)}",
            observed=str(crowded.value),
            expected=SESSION_SLOTS.value,
            remedy=", then ".join(filter(None, (lasting(facts, SESSION_SLOTS), "reboot"))),
        )


@dataclass(frozen=True, slots=True)
class _Busy:
    """A transport group over the interval, at one of its mounts."""

    target: Target
    samples: tuple[Sample, ...]
    carrying: int
    """Connections that sent something; 1 where that is not known, so that nothing is overstated."""

    @property
    def depth(self) -> float | None:
        """The mean number of requests sent and waiting; the kernel counts those of one connection.

        None where it is not known: without the count of those that wait for replies (RDMA, old kernels) only
        the time that requests took tells whether `in_flight` has some that broken connections lost.
        """
        rate, seen = self.samples[0].transport, self.in_flight
        if seen is None or rate.backlog is None:
            return None
        if rate.pending is None and seen * self.carrying > _ALIKE * self.under_way:
            return None
        return (seen + rate.backlog) * self.carrying

    @property
    def in_flight(self) -> float | None:
        """The mean number of requests under way on the connection on which one is sent, itself included.

        What a broken connection lost stays in the kernel's sends less receives until the mount goes, and is
        in no queue of requests that wait for their replies.
        """
        rate = self.samples[0].transport
        if rate.in_flight is None or rate.pending is None:
            return rate.in_flight
        return min(rate.in_flight, rate.pending + 1)

    @property
    def under_way(self) -> float:
        """The mean number of requests that were with the server, over the whole time (Little's law)."""
        rates = (rate for sample in self.samples for rate in sample.ops.values())
        return sum(rate.per_s * (rate.rtt_ms or 0) / 1000 for rate in rates)

    @property
    def alone(self) -> bool:
        """Whether requests follow each other one by one, nearly all of the time."""
        seen = self.in_flight
        return seen is not None and seen <= _ALONE and _AT_WORK <= self.under_way <= _BEYOND_ALONE


def _measured(facts: Facts) -> Iterator[_Busy]:
    """Yield each transport group that was measured, once."""
    samples = {sample.device: sample for sample in facts.measured.samples} if facts.measured else {}
    for members in groups(facts).live.values():
        devices = dict.fromkeys(member.superblock.device for member in members if member.superblock)
        mine = tuple(samples[device] for device in devices if device in samples)
        if mine:
            sent = next((sent for member in members if (sent := _sent(facts, member))), ())
            yield _Busy(members[0], mine, sum(map(bool, sent)) or 1)


def _sent(facts: Facts, target: Target) -> tuple[int, ...]:
    if facts.measured is None or target.superblock is None:
        return ()
    return facts.measured.sends.get(target.superblock.device, ())


def _others(members: tuple[Target, ...] | list[Target]) -> str:
    """Say for how many more mounts the same holds."""
    others = len(members) - 1
    return f"; the same holds for {others} more {'mount' if others == 1 else 'mounts'}" if others else ""
