"""Rules NFS208 to NFS214: connections and their slots for requests, and lines that cannot take effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nfstuned.core.mounts.options import NO_VALUE, option_names, wanted, wanted_though_sloppy
from nfstuned.core.mounts.requests import GLOBAL, as_option, effective, is_version
from nfstuned.core.nconnect.transport import transport_groups
from nfstuned.core.rules.rule import (
    ADVICE,
    ERROR,
    HOST,
    INFO,
    LIVE,
    SAMPLE,
    WARNING,
    Manual,
    ParameterWish,
    mount_all_again,
    parameter,
    permanent_setting,
    rule,
)
from nfstuned.model.facts import Facts, Fault, Target
from nfstuned.model.kernel import decimal, parse_options
from nfstuned.model.mounts import NFS_TYPES, NFSRAHEAD, UTAB, Setting
from nfstuned.parse.etc.settings import FILE, OUTSIDE, VENDOR_FILE
from nfstuned.parse.fields import clean_path, count, quote

if TYPE_CHECKING:
    from nfstuned.model.samples import Sample

_MOST_TCP_SLOTS, _LEAST_SESSION_SLOTS = 128, 180
SLOT_TABLE = ParameterWish(
    "sunrpc.tcp_max_slot_table_entries",
    str(_MOST_TCP_SLOTS),
    lambda value: (number := decimal(value)) is not None and number <= _MOST_TCP_SLOTS,
    "sunrpc-slots.conf",
)
SESSION_SLOTS = ParameterWish(
    "nfs.max_session_slots",
    str(_LEAST_SESSION_SLOTS),
    lambda value: (number := decimal(value)) is not None and number >= _LEAST_SESSION_SLOTS,
    "nfs-slots.conf",
)
_VERSIONS = {SLOT_TABLE.name: "3", SESSION_SLOTS.name: "4.1"}
"""The version of NFS that each is about."""
_KERNEL_DEFAULTS = {SLOT_TABLE.name: 65536, SESSION_SLOTS.name: 64}
"""The values of kernels without a setting."""


class Crowd(NamedTuple):
    """The mounts that a parameter does not suit, and its present or future value."""

    users: tuple[Target, ...]
    value: int


def crowd(facts: Facts, wish: ParameterWish) -> Crowd | None:
    """Return the mounts of Azure NetApp Files that need another value; None for none, or an unknown value."""
    version = _VERSIONS[wish.name]
    users = tuple(target for target in facts.nfs if target.is_netapp and target.version == version)
    # A loaded module that does not show its parameter has an unknown value.
    loaded = any(target.live is not None for target in facts.nfs)
    default = "" if loaded else str(_KERNEL_DEFAULTS[wish.name])
    value = decimal((parameter(facts, wish.name) or (default, ""))[0])
    return Crowd(users, value) if users and value is not None and not wish.fits(str(value)) else None


_BUSY_SENDS = 64
"""A connection that sent nothing while another sent so many is left out: the kernel takes them in turn."""
_DEEPEST = 64
_ALONE, _AT_WORK, _BEYOND_ALONE = 1.25, 0.5, 1.5
"""Requests follow each other one by one where the kernel's count of those under way is at most the first
number, and Little's law gives one from the second to the third."""
_ALIKE = 2.0
"""The kernel's count, made at each send, may be so many times the number by Little's law: bursts raise it."""


@rule(
    "NFS208",
    "connections-missing",
    WARNING,
    needs=(LIVE,),
    source="https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/net/sunrpc/clnt.c",
)
def connections_missing(facts: Facts) -> Iterator[Fault]:
    """Yield one mount of each transport group that has too few connections, or some that carry nothing."""
    for members in transport_groups(facts).live.values():
        shown = next((member for member in members if member.stats and member.stats.transports), None)
        if shown is None or shown.stats is None:
            continue
        wanted_count, there = shown.options.number("nconnect") or 1, len(shown.stats.transports)
        sent = _sent(facts, shown)
        silent, exist = sent.count(0), count(there, "connection")
        if there < wanted_count:
            yield Fault(
                shown.subject,
                f"nconnect={wanted_count} is shown and {exist} exist: the kernel reports no error when it "
                f"cannot make a further connection{_others(members)}",
                observed=exist,
                expected=count(wanted_count, "connection"),
                remedy=mount_all_again(members, "unmount every mount of this server and mount again")
                + "; then look for a limit of connections on the way: the firewall, free ports below 1024",
            )
        elif silent and max(sent) >= _BUSY_SENDS:
            yield Fault(
                shown.subject,
                f"{silent} of {exist} sent nothing while another sent {max(sent)} requests: they are "
                "blocked on their way, or were added to a mount that was made without "
                f"nconnect{_others(members)}",
                observed=f"requests sent: {', '.join(map(str, sent))}",
                expected="about the same on each",
                remedy=mount_all_again(
                    members, "unmount every mount of this server and mount again with nconnect"
                )
                + "; then look at the firewall's limits of connections",
            )


@rule("NFS209", "queue-depth-high", ADVICE, needs=(LIVE, SAMPLE), source=Manual.PERFORMANCE)
def queue_deep(facts: Facts) -> Iterator[Fault]:
    """Yield one Azure Files mount of each group with more requests at a time than are of use."""
    for group in _measured(facts):
        depth = group.depth
        if group.target.is_azure_files and depth is not None and depth > _DEEPEST:
            yield Fault(
                group.target.subject,
                f"on average {depth:.0f} requests are under way or wait for a slot: beyond {_DEEPEST} "
                "nothing is gained, and each request takes longer",
                observed=f"{depth:.0f} requests",
                expected=f"at most {_DEEPEST}",
                remedy="use fewer threads or a smaller I/O depth, or more clients",
            )


@rule("NFS212", "nconnect-latency-bound", ADVICE, needs=(LIVE, SAMPLE), source=Manual.PERFORMANCE)
def latency_bound(facts: Facts) -> Iterator[Fault]:
    """Yield one mount of each group with nconnect that has one request at a time."""
    for group in _measured(facts):
        shown = group.target.options.number("nconnect") or 1
        if shown > 1 and group.alone:
            yield Fault(
                group.target.subject,
                f"nconnect={shown} and about one request at a time: a single thread waits for each answer, "
                "and more connections cannot make that faster",
                observed=f"{group.under_way:.1f} requests under way",
                expected="more than one",
                remedy="work with several threads or files; or try without nconnect, which may be faster",
            )


@rule("NFS210", "slot-table-unbounded", WARNING, needs=(HOST,), source=Manual.SLOTS)
def slot_table_unbounded(facts: Facts) -> Iterator[Fault]:
    """Yield the first NetApp mount over NFS 3 where its connections may have too many slots."""
    crowded = crowd(facts, SLOT_TABLE)
    if crowded is not None:
        name, most = SLOT_TABLE.name, SLOT_TABLE.value
        remount = mount_all_again(crowded.users, "unmount and mount again")
        live = f"for now: sudo sysctl {name}={most}, then {remount}"
        remedies = [permanent_setting(facts, SLOT_TABLE), live if name in facts.system.parameters else ""]
        yield Fault(
            crowded.users[0].subject,
            f"{name} is {crowded.value}: so many requests may be under way on each connection, and Azure "
            f"NetApp Files stops taking them beyond {most}{_others(crowded.users)}",
            observed=str(crowded.value),
            expected=f"at most {most}",
            remedy="; ".join(filter(None, remedies)),
        )


@rule("NFS211", "session-slots-low", ADVICE, needs=(HOST,), source=Manual.SLOTS)
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
            remedy=", then ".join(
                filter(None, (permanent_setting(facts, SESSION_SLOTS), "reboot" if facts.running else ""))
            ),
        )


class _Busy(NamedTuple):
    """A transport group over the interval, at one of its mounts."""

    target: Target
    samples: tuple[Sample, ...]
    busy: int
    """Connections that sent something; 1 where that is not known, so that nothing is overstated."""

    @property
    def depth(self) -> float | None:
        """The mean number of requests under way or waiting for a slot, on all busy connections.

        The kernel's means are those of one connection. None where they are not known. Without `pending`
        (RDMA, old kernels) also where they are far above Little's law: then `in_flight` has requests that a
        broken connection lost.
        """
        rate, seen = self.samples[0].transport, self.in_flight
        if seen is None or rate.backlog is None:
            return None
        if rate.pending is None and seen * self.busy > _ALIKE * self.under_way:
            return None
        return (seen + rate.backlog) * self.busy

    @property
    def in_flight(self) -> float | None:
        """The mean number of requests under way on the connection on which one is sent, itself included.

        The requests that a broken connection lost stay in the kernel's sends less receives until the mount
        goes, and are in no queue of requests that wait for their replies.
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
    for members in transport_groups(facts).live.values():
        devices = dict.fromkeys(member.superblock.device for member in members if member.superblock)
        mine = tuple(samples[device] for device in devices if device in samples)
        if mine:
            sent = next((sent for member in members if (sent := _sent(facts, member))), ())
            yield _Busy(members[0], mine, sum(map(bool, sent)) or 1)


def _sent(facts: Facts, target: Target) -> tuple[int, ...]:
    if facts.measured is None or target.superblock is None:
        return ()
    return facts.measured.sends.get(target.superblock.device, ())


def _others(members: Sequence[Target]) -> str:
    """Return the end of a message: for how many more mounts it holds; "" for a single mount."""
    others = len(members) - 1
    return f"; the same for {others} more {'mount' if others == 1 else 'mounts'}" if others else ""


_FIXED = ("nconnect", "rsize", "wsize")
_DEFAULT, _DEFAULTS = "default", ("vers", "proto")
"""mount.nfs takes names with this beginning out, and reads two of them (default_value in configfile.c)."""
_VARIABLES = "environment"
_NAMED = {"server": "Server", "mountpoint": "MountPoint"}
_KNOWN = (*_NAMED, _VARIABLES, GLOBAL)
_SECTIONS = '[ NFSMount_Global_Options ], [ Server "name" ] or [ MountPoint "/path" ]'


@rule("NFS213", "remount-cannot-change", INFO, source=Manual.NFS)
def remount_cannot_change(facts: Facts) -> Iterator[Fault]:
    """Yield lines of fstab and of units that remount with an option that a mount keeps for its life."""
    for request in facts.snapshot.requests:
        options = parse_options(request.options)
        if request.file == UTAB or request.fstype not in NFS_TYPES or "remount" not in options:
            continue
        fixed = list(dict.fromkeys(name for name, _ in options.pairs if name in _FIXED or is_version(name)))
        if not fixed:
            continue
        yield Fault(
            f"{request.file}:{request.line}",
            f"remount cannot change {' and '.join(fixed)} of {request.point}: the kernel accepts a new "
            "nconnect and keeps the old number, and refuses the others",
            observed="remount," + ",".join(fixed),
            expected="umount and mount",
            remedy=f"remove remount from {request.file}:{request.line}"
            + (f", sudo umount {quote(request.point)} and mount it" if facts.running else ""),
        )


@rule(
    "NFS214",
    "nfsmount-conf-ineffective",
    ERROR,
    needs=(HOST,),
    source="https://man7.org/linux/man-pages/man5/nfsmount.conf.5.html",
)
def ineffective(facts: Facts) -> Iterator[Fault]:
    """Yield lines of nfsmount.conf and nfs.conf that count for nothing, or make their mounts fail.

    A section that no mount can be in is reported once, at its first line.
    """
    places = (FILE + ".d/", VENDOR_FILE + ".d/")
    for problem in facts.snapshot.problems:
        # A file that could not be read has no line, and counts as not known.
        if problem.line and (problem.file in {FILE, VENDOR_FILE} or problem.file.startswith(places)):
            outside = problem.message.startswith(OUTSIDE)
            written = "write NAME=VALUE, for a flag NAME=True or NAME=False; see nfsmount.conf(5)"
            remedy = f"put it below {_SECTIONS}" if outside else written
            yield _fault(problem.file, problem.line, problem.message, remedy)
    for problem in facts.snapshot.misplaced:
        remedy = "put it below the section of its program, such as [nfsrahead] or [lockd]"
        if problem.message.startswith(NFSRAHEAD):
            remedy = "write nfs4 for NFSv4, nfs for NFSv3, or default for both"
        yield _fault(problem.file, problem.line, problem.message, remedy)._replace(severity=WARNING)
    settings = facts.snapshot.settings
    sloppy = any(as_option(setting.name, setting.value) == "sloppy" for setting in settings)
    counting = set(effective(settings))
    reported: set[tuple[str, str, str | None]] = set()
    for setting in settings:
        section = (setting.file, setting.section, setting.argument)
        unmatched = _unmatched(setting)
        why = unmatched or (_refused_setting(setting, sloppy=sloppy) if setting in counting else None)
        if why is not None and section not in reported:
            yield _fault(setting.file, setting.line, *why)
        if unmatched is not None:
            reported.add(section)
    yield from _overtaken(facts)


def _overtaken(facts: Facts) -> Iterator[Fault]:
    """Yield options that an older mount.nfs drops for the sake of another section's; see NfsUtils."""
    utils = facts.system.nfs_utils
    if utils is None or not utils.mixes_sections:
        return
    settings = [setting._replace(alone=False) for setting in facts.snapshot.settings]
    elsewhere = set(effective(settings))
    last = {(setting.section, setting.name.lower()): setting for setting in settings}
    for setting in settings:
        winner = last[setting.section, setting.name.lower()]
        if setting.section in _NAMED and setting.argument and setting in elsewhere and setting != winner:
            general = last.get((GLOBAL, setting.name.lower()))
            yield _fault(
                setting.file,
                setting.line,
                f"{setting.name} for {setting.argument} has no effect: {utils.name} uses one "
                f"{setting.name} for all [ {_NAMED[setting.section]} ] sections, from "
                f"{winner.file}:{winner.line}"
                + (f", so that {general.value} of {general.file}:{general.line} counts" if general else ""),
                "put it into the options of the mounts, or update nfs-utils to 2.8.3 or later",
            )


def _unmatched(setting: Setting) -> tuple[str, str] | None:
    """Return why no mount can be in a setting's section, and a remedy; None where one can."""
    section, argument = setting.section, setting.argument
    if section not in _KNOWN:
        return (
            f"{setting.name} stands in [ {section} ], which mount.nfs does not read",
            f"use {_SECTIONS}",
        )
    if section == GLOBAL and argument is not None:
        return (
            f'{setting.name} stands in a global section named "{argument}", which has no effect',
            "write [ NFSMount_Global_Options ]",
        )
    if section == "server" and ":" in (argument or ""):
        return (
            f'{setting.name} is for the server "{argument}": mount.nfs ends a name at its first colon',
            "use the server's name, or the section of the mount point",
        )
    if section == "mountpoint" and argument is not None and argument != (clean := clean_path(argument)):
        why = "is not an absolute path"
        if argument.startswith("/"):
            why = f"mount(8) hands on as {clean}: mount.nfs compares the texts"
        return f'{setting.name} is for the mount point "{argument}", which {why}', (
            f'write [ MountPoint "{clean}" ]'
        )
    return None


def _refused_setting(setting: Setting, *, sloppy: bool) -> tuple[str, str] | None:
    """Return why the kernel refuses a setting, and a remedy; None where it does not, or may not."""
    # The value of a variable depends on the section of each mount.
    if setting.section == _VARIABLES or setting.value.startswith("$"):
        return None
    name, separator, text = as_option(setting.name, setting.value).partition("=")
    shown = f"{setting.name}={setting.value}"
    if name.startswith(_DEFAULT):
        return _no_default(setting, name.removeprefix(_DEFAULT), text)
    known = (
        name.startswith("x-") or name in option_names().common | option_names().nfs | option_names().rare_nfs
    )
    if not sloppy and name and not known:
        option = f"{name}, made of {shown}" if name == f"no{setting.name.lower()}" else setting.name
        return (
            f"neither the kernel nor mount(8) knows {option}: every mount with it is refused",
            f"remove {setting.name}",
        )
    judge = wanted_though_sloppy if sloppy else wanted
    # As mount.nfs hands it on; case matters to both, although nfsmount.conf(5) writes Proto=Tcp.
    takes = judge(name, text if separator else None)
    if not takes:
        return None
    if separator and not judge(name, setting.value):
        why = (
            "mount.nfs reads a value with k, m or g at its end as a number, and every mount with it is "
            "refused"
        )
        remedy = f"put {name}={setting.value} into the options of the mounts instead"
        return f"{shown} becomes {name}={text}: {why}", remedy
    takes = "True or False" if takes == NO_VALUE else takes
    lower = setting.value.lower()
    return (
        f"{shown}: {name} takes {takes}, and every mount with this value is refused",
        f"set {setting.name} to {takes if judge(name, lower) else f'{lower}, in lower case'}",
    )


def _no_default(setting: Setting, name: str, value: str) -> tuple[str, str] | None:
    """Return why a default for mount.nfs's own negotiation sets nothing, and a remedy; None where it may."""
    if name not in _DEFAULTS:
        # "defaults"; Defaultversion and Defaultprotocol.
        if name == "s" or name.startswith(_DEFAULTS):
            return None
        return f"{setting.name} has no effect: mount.nfs has defaults of version and protocol only", (
            f"use {setting.name[len(_DEFAULT) :]}, or remove {setting.name}"
        )
    takes = wanted(name, value)
    if not takes:
        return None
    return f"{setting.name}={setting.value} has no effect: it takes {takes}", f"set {setting.name} to {takes}"


def _fault(file: str, line: int, message: str, remedy: str) -> Fault:
    return Fault(f"{file}:{line}", message, remedy=remedy)
