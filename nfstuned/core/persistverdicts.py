"""Whether a server's name should have a section in nfstuned's own drop-in, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from nfstuned.core.fstabchecks import Refusal, against
from nfstuned.core.fstabplan import common
from nfstuned.core.intent import options
from nfstuned.core.persistmembers import Use, Uses, by_conf, servers, unmatched, unnamed
from nfstuned.model.facts import Facts
from nfstuned.model.intent import Asked
from nfstuned.model.work import Result


class Fate(Enum):
    """What should become of a section."""

    WRITE = "it should be there"
    KEEP = "none is written, and one that is there stays"
    DROP = "there should be none"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What should become of the section of one name."""

    name: str
    number: int | None
    """What its mounts should ask for; None where nothing has to be said of a section that is not there."""
    fate: Fate
    reason: str
    result: Result = Result.SKIPPED
    """What comes of a section that is not written: FAILED where nothing tells whether it should be."""
    names: int = 1
    """How many names of its server need a section."""
    needed: bool = True
    """A mount of its server would ask for nothing without it."""


def verdicts(found: Uses, facts: Facts) -> tuple[Verdict, ...]:
    """Return one for each name under which a server is mounted; `facts` have the resolver's answers."""
    return tuple(one for server in servers(found, facts) for one in _of_server(server, facts))


def _of_server(server: tuple[Use, ...], facts: Facts) -> Iterator[Verdict]:
    names = sorted({use.name for use in server if not unnamed(use.name)})
    if all(use.target.profile.nconnect is None for use in server):
        profile = server[0].target.profile.name
        for name in names:
            yield Verdict(name, None, Fate.DROP, f"its profile {profile} names no nconnect")
        return
    targets = [use.target for use in server]
    count = common(targets, (one.profile.nconnect for one in targets), (use.number for use in server))
    said = {name: by_conf(name, facts.snapshot.settings) for name in names}
    refused = _refused(server, count, said, facts)
    if refused is not None:
        for name in names or [server[0].target.endpoint.host]:
            yield _as_others_decide(replace(refused, name=name), said.get(name))
        return
    missing = sum(1 for one in said.values() if one is None)
    needed = any(use.asked is None for use in server)
    for name, asked in said.items():
        if asked is None:
            yield Verdict(name, count, Fate.WRITE, _why(server, count), names=missing, needed=needed)
        else:
            yield Verdict(name, None, Fate.DROP, f"{asked.origin} says it already")


def _refused(
    server: tuple[Use, ...], count: int, said: Mapping[str, Asked | None], facts: Facts
) -> Verdict | None:
    """Return why no name of a server gets a section, as a verdict about any of them; None where each may."""
    for use in server:
        found = _against(use, facts)
        if found is not None:
            fate = Fate.DROP if found.result is Result.SKIPPED else Fate.KEEP
            return Verdict("", count, fate, _of_one(use, found.reason, server), found.result)
    for asked in said.values():
        if asked is not None and _number(asked) != count:
            return Verdict("", count, Fate.DROP, f"{asked.origin} says {asked.text}: that counts")
    for use in server:
        reason = _contrary(use, count) if use.asked is not None else unmatched(use, facts)
        if reason:
            return Verdict("", count, Fate.KEEP, _of_one(use, reason, server))
    return None


def _as_others_decide(refused: Verdict, asked: Asked | None) -> Verdict:
    """Let no section stay that would count before what another file says to mounts without a number."""
    if refused.fate is not Fate.KEEP or asked is None:
        return refused
    reason = f"{refused.reason}; {asked.origin} decides for mounts that ask for none"
    return replace(refused, fate=Fate.DROP, reason=reason)


def _against(use: Use, facts: Facts) -> Refusal | None:
    """Return what is against several connections, as the mount is and as it will be made again."""
    found = against(use.target, facts)
    if found is None and use.target.live is not None and use.target.request is not None:
        return against(replace(use.target, live=None), facts)
    return found


def _contrary(use: Use, count: int) -> str:
    if use.asked is None or use.number == count:
        return ""
    asks = f"{use.asked.origin} asks for {use.asked.text}"
    return f"{asks}, and all mounts of a server should ask for one number, here {count}"


def _of_one(use: Use, reason: str, server: Sequence[Use]) -> str:
    """Say which mount it is where there are several."""
    alone = len(server) == 1 or reason.startswith(use.subject)
    return reason if alone else f"{use.subject}: {reason}"


def _number(asked: Asked) -> int | None:
    return options([asked]).number("nconnect")


def _why(server: Sequence[Use], count: int) -> str:
    named = (use.target.profile for use in server if use.target.profile.nconnect == count)
    profile = next(named, None)
    if profile is not None:
        return f"{profile.name} asks for nconnect={count}"
    other = next((use for use in server if use.number == count), None)
    if other is not None:
        return f"as {other.subject}, which is of the same server"
    return f"its profiles allow nconnect={count}"
