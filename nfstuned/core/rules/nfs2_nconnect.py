"""Rules NFS201 to NFS207 and NFS215: the nconnect that mounts ask for, get, and should not combine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from nfstuned.core.mounts.options import has_kerberos, knows_nconnect, security
from nfstuned.core.mounts.requests import is_global, last_asked
from nfstuned.core.mounts.targets import definition
from nfstuned.core.nconnect.first_mount import decider, mount_commands, next_nconnect, overruled
from nfstuned.core.nconnect.server import Line, Member, Server, disagreeing_servers, lines, objection, servers
from nfstuned.core.nconnect.transport import (
    address,
    allowed,
    busy_connections,
    by_namespace,
    effective_nconnect,
    has_private_endpoint,
    is_private,
    replaced,
    rivals,
    share,
    transport_groups,
)
from nfstuned.core.policy.endpoint import has_stand_in, plain, section_name, section_obstacle, split_source
from nfstuned.core.rules.rule import (
    ADVICE,
    ERROR,
    KERNEL,
    WARNING,
    Manual,
    mount_all_again,
    name_others,
    place_of,
    rule,
    source_of,
    where,
)
from nfstuned.model.facts import Facts, Fault, Fix, Identity, Need, Target
from nfstuned.model.mounts import AZURE_FILES, UTAB
from nfstuned.parse.fields import some


@rule("NFS201", "nconnect-below-policy", ADVICE, source=Manual.PERFORMANCE)
def nconnect_below_policy(facts: Facts) -> Iterator[Fault]:
    """Yield servers with mounts that have fewer connections than their profile asks for.

    Silent where the advice would be wrong or a repetition: where a mount of its group has Kerberos (NFS207)
    or a profile that allows no more, where the kernel cannot (NFS203), where the vendor does not support it
    (NFS401), and where another finding's remedy brings as many (NFS204 to NFS206, NFS215).
    """
    coming = _numbers_of_other_remedies(facts)
    for server in servers(facts):
        low = [
            (possible, target)
            for possible, target in mounts_below_policy(server, facts)
            if coming.get(target.identity, 0) < possible
        ]
        if not low:
            continue
        most, chief = max(low, key=lambda pair: pair[0])
        got, others = _present(chief, facts), [target for _, target in low if target is not chief]
        yield Fault(
            place_of(chief, "nconnect"),
            f"{'one connection carries' if got == 1 else f'{got} connections carry'} everything and the "
            f"profile {chief.profile.name} recommends nconnect={chief.profile.nconnect}: one connection is "
            f"one network flow, with the speed of one{name_others(others)}",
            observed=f"nconnect={got}" if "nconnect" in chief.options else "no nconnect",
            expected=f"nconnect={most}",
            remedy=_raise([chief, *others], most, server, facts),
            source=source_of(chief.profile, "nconnect"),
        )


def mounts_below_policy(server: Server[Member], facts: Facts) -> Iterator[tuple[int, Target]]:
    """Yield the mounts of a server that have too few connections, each with the number it should have."""
    for target in server.targets:
        wanted, got = target.profile.nconnect, _present(target, facts)
        if wanted is None or got is None or got >= wanted or not _may_have_more(target, facts):
            continue
        if overruled(target, facts) and (target.asked_nconnect or 0) >= wanted:
            continue
        if got < min(wanted, server.most):
            yield min(wanted, server.most), target


def _present(target: Target, facts: Facts) -> int | None:
    return busy_connections(target) or effective_nconnect(target, facts)


@rule("NFS202", "nconnect-above-policy", WARNING, source=Manual.PERFORMANCE)
def above_policy(facts: Facts) -> Iterator[Fault]:
    """Yield servers with mounts that have more connections than their profile allows.

    Not where NFS204 names the mount that decided.
    """
    replaced_by = transport_groups(facts).after
    for server in servers(facts):
        high = [target for target in server.targets if _is_above(target, facts)]
        # A line that is proposed for a mount stands for both.
        ids = {target.identity for target in high}
        high = [
            target
            for target in high
            if (after := replaced_by.get(target.identity)) is None or after.identity not in ids
        ]
        if not high:
            continue
        chief, *others = high
        most, got = allowed(chief), effective_nconnect(chief, facts)
        wanted = min(chief.profile.nconnect or most, server.most)
        other_version = chief.version in chief.profile.nconnect_not_for
        limit_key = "nconnect_not_for" if other_version else "nconnect_max"
        written = _without(high, facts) if most == 1 else _written(wanted, server.targets, facts)
        yield Fault(
            place_of(chief, "nconnect"),
            f"{_too_many(chief, most, got)}{name_others(others)}",
            observed=f"nconnect={got}",
            expected="no nconnect" if most == 1 else f"at most {most}",
            remedy=_then(written, mount_commands(high, facts, wanted)),
            source=source_of(chief.profile, limit_key) or source_of(chief.profile, "nconnect"),
            fixes=() if most == 1 else tuple(_lowered(high, wanted)),
        )


def _lowered(targets: Iterable[Target], wanted: int) -> Iterator[Fix]:
    """Yield the changes of the mounts' own lines to a number of connections."""
    for target in targets:
        asked = last_asked(target.asked, "nconnect")
        if asked is not None and target.request is not None and asked.file == target.request.file:
            yield Fix(asked.origin, asked.text, f"nconnect={wanted}")


def _too_many(target: Target, most: int, got: int | None) -> str:
    name = target.profile.name
    if target.version in target.profile.nconnect_not_for:
        return f"nconnect={got} with NFS {target.version}, for which {name} does not recommend nconnect"
    if most == 1:
        return (
            f"nconnect={got}, and the server does not support nconnect ({name}): its vendor "
            "promises neither that more connections work nor that they help"
        )
    return (
        f"nconnect={got} is more than the {most} that {name} allows: nothing is gained beyond that, and "
        "the server's own queues may suffer"
    )


def _is_above(target: Target, facts: Facts) -> bool:
    most, got = target.most_connections, effective_nconnect(target, facts)
    if most is None or got is None or got <= most:
        return False
    return not (overruled(target, facts) and (target.asked_nconnect or 0) <= most)


@rule("NFS203", "nconnect-unsupported-kernel", ERROR, source=Manual.NETAPP)
def kernel_without_nconnect(facts: Facts) -> Iterator[Fault | Need]:
    """Yield the mounts that ask for nconnect where the kernel does not know it: the cause is one."""
    release, distribution = facts.snapshot.kernel, facts.snapshot.distribution
    if any(target.live and "nconnect" in target.live.options for target in facts.nfs):
        return
    asking = [
        (target, asked)
        for target in facts.nfs
        if (asked := last_asked(target.asked, "nconnect")) is not None
        and not (release and knows_nconnect(release, distribution))
    ]
    if asking and release is None:
        yield from facts.lacks(KERNEL)
    elif asking and release is not None:
        chief, asked = asking[0]
        places = dict.fromkeys(place for target, _ in asking if (place := _in_file(target)))
        yield Fault(
            place_of(chief, "nconnect"),
            f"Linux {release.text} does not know nconnect={asked.value}{_in(_in_file(chief))}: the "
            "mount fails, or has one connection" + name_others([target for target, _ in asking[1:]]),
            observed=f"Linux {release.text}",
            expected="Linux 5.3, or a distribution's kernel with nconnect",
            remedy=f"update the kernel, or remove nconnect from the options{_in(', '.join(places))}",
        )


@rule("NFS204", "nconnect-inherited", WARNING, source=Manual.NETAPP)
def inherited(facts: Facts) -> Iterator[Fault]:
    """Yield servers with mounts that do not get the nconnect that they ask for: another came first."""
    for server, lost in _overruled(facts):
        chief, *others = lost
        asked, wanted = last_asked(chief.asked, "nconnect"), chief.asked_nconnect
        got = effective_nconnect(chief, facts)
        gets = "has" if chief.live is not None else "would get"
        by_hand = asked is None or asked.file == UTAB
        who = "mount(8) was asked" if asked is None or by_hand else f"{asked.origin} asks"
        yield Fault(
            place_of(chief, "nconnect"),
            f"{who} for nconnect={wanted} and the mount {gets} {got}: all mounts of one server "
            f"({chief.endpoint.address or chief.endpoint.host}) share its connections, and "
            f"{decider(chief, facts)}{name_others(others)}",
            observed=f"nconnect={got}" if got != 1 else "no nconnect",
            expected=f"nconnect={wanted}",
            remedy=_granted(lost, server, facts),
        )


@lru_cache(maxsize=1)
def _overruled(facts: Facts) -> tuple[tuple[Server[Member], list[Target]], ...]:
    """Return the servers of mounts that did not get their nconnect; who asks for the most comes first."""
    found = []
    for server in servers(facts):
        lost = [target for target in server.targets if overruled(target, facts)]
        if lost:
            found.append((server, sorted(lost, key=lambda target: -(target.asked_nconnect or 1))))
    return tuple(found)


def _granted(lost: Sequence[Target], server: Server[Member], facts: Facts) -> str:
    """Return how mounts get the number of the first of them, or as many as their server is good for."""
    wanted, count, strict = lost[0].asked_nconnect or 1, _grantable(lost[0], server), server.strictest
    change = _written(count, server.targets, facts)
    if change and count < wanted:
        profile = f"the profile of {strict.point} allows no more"
        change += f", as {f'{strict.point} asks for Kerberos' if has_kerberos(strict.options) else profile}"
    return _then(change, mount_commands(lost, facts, count))


def _grantable(target: Target, server: Server[Member]) -> int:
    return min(target.asked_nconnect or 1, server.most)


def _numbers_of_other_remedies(facts: Facts) -> dict[Identity, int]:
    """Return the connections that mounts get by the remedies of NFS204 to NFS206 and NFS215."""
    numbers = dict[Identity, int]()
    for server, lost in _overruled(facts):
        numbers.update(dict.fromkeys(_identities(server.targets), _grantable(lost[0], server)))
    for alike in _unsupported(facts):
        numbers.update(dict.fromkeys(_identities(alike), _common_count(alike)))
    for unlike in disagreeing_servers(facts):
        numbers.update(dict.fromkeys((line.mount.identity for line in unlike.members), _agreed(unlike)))
    return numbers


def _identities(targets: Iterable[Target]) -> list[Identity]:
    return [target.identity for target in targets]


def _agreed(server: Server[Line]) -> int:
    """Return the number that all lines of a server should ask for: it is good for each of their mounts."""
    return server.nconnect or server.most


def _may_have_more(target: Target, facts: Facts) -> bool:
    """Whether more connections are possible for a mount, and supported where it is known."""
    release = facts.snapshot.kernel
    possible = release is None or knows_nconnect(release, facts.snapshot.distribution)
    public = target.is_azure_files and has_private_endpoint(target, facts) is False
    return possible and target.protocol == "tcp" and not public


def _raise(low: Sequence[Target], possible: int, server: Server[Member], facts: Facts) -> str:
    """Return how mounts of a server get more connections: with new lines where files ask for too few.

    A mount that was made by hand has no file; nfstuned's own can let the next mount ask for it.
    """
    # A line may be newer than its mount.
    asked = [next_nconnect(target, facts) or 1 for target in low]
    count = max([possible, *(number for number in asked if number <= server.most)])
    by_hand = next((target for target in low if not target.origin and target.asked_nconnect != count), None)
    change = ""
    if by_hand is not None and by_hand.by_program:
        change = f"put nconnect={count} into the options in {where(by_hand)}"
    elif by_hand is not None:
        profiles = count == by_hand.profile.nconnect and not objection(by_hand, facts)
        may = profiles and not _without_section(by_hand)
        change = "sudo nfstuned nconnect persist" if may else f"put nconnect={count} into the options"
    open_ = any(each.is_azure_files and has_private_endpoint(each, facts) is None for each in low)
    only = (
        "; only where the endpoint is private: Azure Files supports nconnect over no other" if open_ else ""
    )
    return _then(change, _written(count, server.targets, facts), mount_commands(low, facts, count)) + only


def _then(*steps: str) -> str:
    return ", then ".join(step for step in steps if step)


def _written(count: int, targets: Iterable[Target], facts: Facts) -> str:
    """Return which files are to be changed so that all mounts of a server ask for a number, "" for none.

    Lines with another number would decide again at the next boot.
    """
    asking, places = lines(facts), dict[str, None]()
    for target in targets:
        line = asking.get(target.identity)
        made = line.target if line is not None else target
        if made.asked_nconnect not in {None, count}:
            places[_place_of(made, facts)] = None
    places.pop("", None)
    return f"set nconnect={count} in {', '.join(places)}" if places else ""


def _place_of(target: Target, facts: Facts) -> str:
    """Return where the number of a mount is to be changed, "" where no file has it.

    A setting of nfsmount.conf for all servers stays, for the others.
    """
    asked = last_asked(target.asked, "nconnect")
    if asked is None or asked.file == UTAB:
        field = target.request.field if target.request else ""
        return f"{field} in {target.origin}" if field else target.origin
    if not is_global(asked, facts.snapshot.settings):
        return asked.origin
    name = section_name(target.source)
    own = "" if _without_section(target) else f'[ Server "{name}" ] of {asked.file}'
    return target.origin or own


def _without_section(target: Target) -> bool:
    """Whether no section of nfsmount.conf is for the server by the name that a mount has."""
    return has_stand_in(target) or bool(section_obstacle(section_name(target.source)))


def _in_file(target: Target) -> str:
    """Return where a mount's nconnect stands, "" where no file has it."""
    asked = last_asked(target.asked, "nconnect")
    return asked.origin if asked and asked.file != UTAB else target.origin


def _in(place: str) -> str:
    return f" in {place}" if place else ""


@rule("NFS205", "nconnect-shared-private-endpoint", WARNING, source=Manual.PERFORMANCE)
def shared_private_endpoint(facts: Facts) -> Iterator[Fault]:
    """Yield private endpoints over which several shares are mounted that ask for different nconnect.

    One finding an endpoint, at the first mount that asks for the most.
    """
    for place, alike in _unlike_shares(facts):
        hosts = " and ".join(sorted({target.endpoint.host for target in alike}))
        yield _unlike_fault(
            alike,
            f"shares of {hosts} ask for different nconnect over one private endpoint ({place}): "
            f"{_list(alike)}; the first mount decides for all, and Azure supports nconnect of one mount "
            "only with a single share in the account",
            "the same nconnect for every share, or an account for each",
        )


@rule("NFS206", "nconnect-public-endpoint", WARNING, source=Manual.PERFORMANCE)
def public_endpoint(facts: Facts) -> Iterator[Fault]:
    """Yield mounts over public endpoints that ask for different nconnect: one finding for all of them.

    The addresses of public endpoints change and are shared by accounts, so that all count as one.
    """
    for alike in _unlike_public(facts):
        yield _unlike_fault(
            alike,
            f"mounts over public endpoints ask for different nconnect: {_list(alike)}; accounts share "
            "public addresses, so Azure does not support nconnect of one mount there",
            "the same nconnect for every mount, or private endpoints",
        )


@lru_cache(maxsize=1)
def _unlike_shares(facts: Facts) -> tuple[tuple[str, Sequence[Target]], ...]:
    """Return the addresses of private endpoints and their mounts that ask for different numbers."""
    endpoints: dict[tuple[str, int], list[Target]] = {}
    for target in _azure_files(facts, private=True):
        place = address(target, facts) or target.endpoint.host
        endpoints.setdefault((place, target.endpoint.port), []).append(target)
    return tuple(
        (place, alike)
        for (place, _), members in endpoints.items()
        for alike in by_namespace(members)
        if len({share(target) for target in alike}) > 1 and _differ(alike)
    )


@lru_cache(maxsize=1)
def _unlike_public(facts: Facts) -> tuple[Sequence[Target], ...]:
    """Return the mounts over public endpoints of a network namespace that ask for different numbers."""
    return tuple(filter(_differ, by_namespace(_azure_files(facts, private=False))))


def _unsupported(facts: Facts) -> Iterator[Sequence[Target]]:
    """Yield the mounts of each finding of NFS205 and NFS206."""
    yield from (alike for _, alike in _unlike_shares(facts))
    yield from _unlike_public(facts)


def _azure_files(facts: Facts, *, private: bool) -> list[Target]:
    """Return the mounts of Azure Files with a known request, and an endpoint of this kind.

    A live mount and the proposed line for it count once, and a mount that another line replaces not at all.
    """
    after, mounted = replaced(facts), {target.request for target in facts.nfs if target.live is not None}
    return [
        target
        for target in facts.nfs
        if target.endpoint.provider == AZURE_FILES
        and (target.live is not None or target.request not in mounted)
        and after.get(target.identity, target).request == target.request
        and target.asked_nconnect is not None
        and is_private(target, facts) is private
    ]


def _differ(members: Sequence[Target]) -> bool:
    return len({target.asked_nconnect for target in members}) > 1


def _common_count(members: Sequence[Target]) -> int:
    """Return the number that mounts of Azure Files should all ask for: the most that any does, if allowed."""
    return min(max(target.asked_nconnect or 1 for target in members), *map(allowed, members))


def _list(members: Sequence[Target]) -> str:
    """Name the mounts by their numbers, the most first: "4 on /mnt/a, none on /mnt/b and 2 more"."""
    points: dict[int, list[str]] = {}
    for target in members:
        points.setdefault(target.asked_nconnect or 1, []).append(target.point)
    parts = []
    for count in sorted(points, reverse=True):
        first, *others = points[count]
        more = f" and {len(others)} more" if others else ""
        parts.append(f"{'none' if count == 1 else count} on {first}{more}")
    return ", ".join(parts)


def _unlike_fault(members: Sequence[Target], message: str, expected: str) -> Fault:
    def place(target: Target) -> tuple[str, int]:
        return (target.request.file, target.request.line) if target.request else (target.point, 0)

    chief, count = max(members, key=lambda target: target.asked_nconnect or 1), _common_count(members)
    live = sorted({member.options.number("nconnect") or 1 for member in members if member.live is not None})
    others = sorted((member for member in members if member.asked_nconnect != count), key=place)
    lines = dict.fromkeys(target.origin or _named_place(target) for target in others)
    too = "also " if count == (chief.asked_nconnect or 1) else ""
    return Fault(
        chief.subject,
        message,
        observed=f"in effect: {', '.join(map(str, live))}" if live else "nothing mounted yet",
        expected=expected,
        remedy=f"put nconnect={count} {too}into {', '.join(lines)}, and "
        + mount_all_again(members, "mount all of them again"),
    )


@rule("NFS215", "nconnect-lines-differ", WARNING, source="fs/nfs/client.c, nfs_match_client")
def lines_differ(facts: Facts) -> Iterator[Fault]:
    """Yield servers with lines that ask for different nconnect: the first mount decides for all of them.

    Silent where NFS204 to NFS206 report the same lines.
    """
    reported = [set(_identities(alike)) for alike in _unsupported(facts)]
    reported += [set(_identities(server.targets)) for server, _ in _overruled(facts)]
    for server in disagreeing_servers(facts):
        mounts = [line.mount for line in server.members]
        if any({mount.identity for mount in mounts} <= members for members in reported):
            continue
        numbers: dict[int, list[str]] = {}
        for line in server.members:
            request = line.target.request
            place = request.place_of("nconnect") if request else ""
            numbers.setdefault(line.asked or 1, []).append(place)
        ordered = sorted(numbers, reverse=True)
        listed = "; ".join(f"{_number(number)} in {some(numbers[number])}" for number in ordered)
        strict, count = server.strictest, _agreed(server)
        host = plain(split_source(server.members[0].target.source)[0])
        change = _written(count, mounts, facts)
        live = [mount for mount in mounts if mount.live and effective_nconnect(mount, facts) != count]
        yield Fault(
            numbers[ordered[0]][0],
            f"lines for {host} ask for different nconnect ({listed}): mounts of one server share its "
            "connections, the first mount decides for all, and at boot the order is chance",
            observed=", ".join(map(_number, ordered)),
            expected="the same nconnect in all lines of a server",
            remedy=_then(
                change + (f", as {strict.origin} asks for Kerberos" if has_kerberos(strict.options) else ""),
                mount_commands(live, facts, count) if live else "",
            ),
        )


def _number(count: int) -> str:
    return "no nconnect" if count == 1 else f"nconnect={count}"


@rule("NFS207", "nconnect-with-kerberos", WARNING, source=Manual.NETAPP)
def with_kerberos(facts: Facts) -> Iterator[Fault]:
    """Yield servers with Kerberos mounts that have several connections.

    Not of Azure Files, which has no Kerberos (NFS302).
    """
    for server in servers(facts):
        mounts = [target for target in server.targets if _shares_kerberos(target, facts)]
        if not mounts:
            continue
        chief, *others = mounts
        flavours, count = security(chief.options), effective_nconnect(chief, facts)
        remount = mount_all_again(
            server.targets, "unmount every mount of this server and mount them again without nconnect"
        )
        asking = some(list(dict.fromkeys(map(_place_of_request, _of_groups(mounts, facts)))))
        yield Fault(
            place_of(chief, "nconnect"),
            f"sec={flavours} and nconnect={count}{f' ({asking})' if asking else ''}: connections that "
            "share one Kerberos context run ahead of its replay window, and the server drops "
            f"requests{name_others(others)}",
            observed=f"sec={flavours}, nconnect={count}",
            expected="nconnect=1, or sec=sys",
            remedy=_then(_without(mounts, facts), remount if facts.running else ""),
        )


def _shares_kerberos(target: Target, facts: Facts) -> bool:
    """Whether a mount has Kerberos, whatever is negotiated, and several connections."""
    flavours, count = security(target.options), effective_nconnect(target, facts) or 1
    certain = all(flavour.startswith("krb5") for flavour in flavours.split(":"))
    return certain and count > 1 and target.endpoint.provider != AZURE_FILES


def _place_of_request(mount: Target) -> str:
    """Return where a mount's nconnect stands, for people; utab is no file to change."""
    asked = last_asked(mount.asked, "nconnect")
    return asked.origin if asked and asked.file != UTAB else _named_place(mount)


def _named_place(mount: Target) -> str:
    """Return the place with the options of a mount that no file asks for, among other mounts' places."""
    return definition(mount) or f"the options of {mount.point}"


def _without(mounts: Iterable[Target], facts: Facts) -> str:
    """Return how lines that ask for several connections ask for one; a setting for all servers stays."""
    taken, written = dict[str, None](), dict[str, None]()
    for mount in _of_groups(mounts, facts):
        asked, place = last_asked(mount.asked, "nconnect"), _place_of(mount, facts)
        if asked is not None and asked.file != UTAB and is_global(asked, facts.snapshot.settings):
            written[place or _named_place(mount)] = None
        else:
            taken[_place_of_request(mount)] = None
    return _then(
        f"remove nconnect from {', '.join(taken)}" if taken else "",
        f"set nconnect=1 in {', '.join(written)}" if written else "",
    )


def _of_groups(mounts: Iterable[Target], facts: Facts) -> list[Target]:
    """Return mounts and all others of their groups that ask for several connections, each once."""
    every = (mount for target in mounts for mount in (target, *rivals(target, facts)))
    return [
        mount
        for mount in {mount.identity: mount for mount in every}.values()
        if (mount.asked_nconnect or 1) > 1
    ]
