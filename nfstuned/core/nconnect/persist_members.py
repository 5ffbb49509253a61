"""Who will use the sections of nfstuned's own drop-in: every mount, as it will be made the next time.

mount.nfs finds a [ Server ] section by the text of the source up to its first colon. So one server has a
section for each name by which it is mounted, and what two servers have in common by name shares a section.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nfstuned.core.mounts.requests import find, mounted_source, options, requested, wants_stand_in
from nfstuned.core.mounts.targets import stood_in_for, targets
from nfstuned.core.nconnect.fstab import as_target, by_address, ids, shown_providers, with_provider
from nfstuned.core.nconnect.groups import Id, addresses, is_azure_files, is_private, united
from nfstuned.core.policy.endpoint import as_address, is_loopback, section_name
from nfstuned.core.policy.match import matcher
from nfstuned.model.facts import Facts, Target
from nfstuned.model.mounts import Maker, Request, Snapshot
from nfstuned.model.policy import Policy
from nfstuned.model.requests import Asked, Setting
from nfstuned.parse.etc.nfsmount import PERSISTED

MOUNTPOINT = "mountpoint"
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_.])?")
"""What is a host's name or IPv4 address beyond doubt: a section's name is taken as it stands."""
_LOCAL = ("localhost", "localhost.localdomain", "ip6-localhost")
_KEY = "&"
"""In the source of a wildcard of autofs: its key is a part of the server's name."""


@dataclass(frozen=True, slots=True)
class SectionUse:
    """A mount, as it will be made the next time without nfstuned's file."""

    target: Target
    """With a request its options are those that the request asks for now; else those of the live mount."""
    name: str
    """What mount.nfs looks for, in lower case: its case does not matter there."""
    asked: Asked | None
    """Who decides its nconnect; None where nobody does, so that a section of its server would."""
    stood_in: bool = False
    """mount.aznfs mounts an address of its own in the place of its server's name."""

    @property
    def number(self) -> int | None:
        """The nconnect that it will ask for by itself; None for none, or for what is no number."""
        return None if self.asked is None else options([self.asked]).number("nconnect")

    @property
    def unnamed(self) -> str:
        """Why there is no section of its name; "" where there may be one."""
        if not self.stood_in:
            return unnamed(self.name)
        return (
            f"mount.aznfs mounts {self.target.endpoint.host} by an address of its own, for which no section "
            "is: put nconnect into the options of the mount"
        )

    @property
    def subject(self) -> str:
        """What people know it by."""
        return self.target.subject if self.target.live is None else f"the mount at {self.target.point}"


@dataclass(frozen=True, slots=True)
class Uses:
    """All mounts of a host or an image whose server has a name; `facts` are without nfstuned's file."""

    all: tuple[SectionUse, ...]
    facts: Facts


def uses(snapshot: Snapshot, policy: Policy) -> Uses:
    """Return what is mounted, what files ask for, and servers that the policy names one by one."""
    settings = tuple(setting for setting in snapshot.settings if setting.file != PERSISTED)
    known = replace(snapshot, settings=settings)
    facts = Facts(frozenset(), known, policy, targets(known, policy))
    providers = shown_providers(facts)
    mounts = (*facts.nfs, *_configured(known, policy))
    known_uses = (_use(with_provider(target, providers, policy), known) for target in mounts)
    return Uses(tuple(use for use in known_uses if use is not None), facts)


def unsettled(known: Uses) -> tuple[str, ...]:
    """Return the names whose addresses tell which mounts have one server, whether it is private, and more.

    Where the policy goes by addresses, they also tell the profile.
    """
    named = any(use.target.profile.nconnect is not None for use in known.all)
    if not (named or matcher(known.facts.policy).by_address):
        return ()
    names = []
    for target in (use.target for use in known.all):
        # A live mount tells its server's address, but not always whether that is a private endpoint.
        doubtful = is_azure_files(target) and not is_private(target, known.facts)
        if target.endpoint.address is None or doubtful:
            names.append(target.endpoint.host)
    return tuple(dict.fromkeys(name for name in names if name and as_address(name) is None))


def servers(known: Uses, facts: Facts) -> Sequence[tuple[SectionUse, ...]]:
    """Return the uses of each server, whose sections it shares; `facts` have the resolver's answers."""
    users: list[tuple[frozenset[Id], SectionUse]] = []
    for known_use in known.all:
        use = replace(known_use, target=by_address(known_use.target, facts))
        section: set[Id] = set() if use.unnamed else {(use.name, 0, "section")}
        users.append((ids(use.target, facts) | section, use))
    return united(users)


def by_conf(name: str, settings: Sequence[Setting]) -> Asked | None:
    """Return who decides the nconnect of a mount of a server that says none and has no section of its own."""
    others = [setting for setting in settings if setting.section != MOUNTPOINT]
    return find(requested(Request(f"{name}:/", "/", "", ""), others), "nconnect")


def unmatched(use: SectionUse, facts: Facts) -> str:
    """Return why a section of its server's name would not, or should not, count for a mount; "" for none."""
    places, request = addresses(use.target, facts), use.target.request
    by_address = request is not None and request.maker is Maker.AUTOFS and as_address(use.name) is None
    if by_address and len(places) > 1:
        return f"automount(8) mounts {use.name}, which has {len(places)} addresses, by one of them"
    return use.unnamed


def unnamed(name: str) -> str:
    """Return why there is no section of that name; "" where there may be one."""
    if name.startswith("["):
        return "no section is for an IPv6 address: mount.nfs ends a name at its first colon"
    if is_loopback(name) or name in _LOCAL:
        return f"every TLS tunnel of this host begins at {name}, so that a section would be for all of them"
    if _NAME.fullmatch(name) is None:
        return f"{name} is no single name that a section could have"
    return ""


def _use(target: Target, snapshot: Snapshot) -> SectionUse | None:
    """Return a mount as it will be made; None where its server is not known before it is."""
    request = target.request
    likely = request or Request(target.source, target.point, "", "", fstype=target.fstype)
    name = section_name(mounted_source(likely, snapshot.stand_ins))
    if not name or (likely.wildcard and _KEY in name):
        return None
    asked = requested(likely, snapshot.settings, snapshot.stand_ins)
    # A mount that was made by hand has no line that says how it comes back: what it has now stays the guess.
    future = target if request is None else replace(target, asked=asked)
    stood_in = stood_in_for(target) or wants_stand_in(likely, snapshot)
    return SectionUse(future, name, find(asked, "nconnect"), stood_in)


def _configured(snapshot: Snapshot, policy: Policy) -> Iterator[Target]:
    """Yield a mount of each server that a policy names, and not only some of its exports or mount points."""
    for assignment in policy.assignments:
        match = assignment.match
        if match.export or match.mount_point:
            continue
        for pattern in match.server:
            name = pattern.lower().rstrip(".")
            if unnamed(name):
                continue
            request = Request(f"{name}:/", "/", "", assignment.origin)
            target = as_target(request, snapshot, policy)
            if target.profile.nconnect is not None:
                yield replace(target, subject=assignment.origin, request=None)
