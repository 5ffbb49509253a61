"""What is against adding connections to a transport group that is mounted: asked before anything is written.

It is only done where it was proven to be safe; what nobody tried is refused, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nfstuned.core.inherited import some
from nfstuned.core.remountcase import Case
from nfstuned.core.remountchecks import is_tunnel, unfit_part
from nfstuned.errors import ParseError
from nfstuned.model.facts import Target
from nfstuned.model.live import SwitchSeen

SINCE, SINCE_TEXT = (7, 1, 13), "7.1.13"
"""The first kernel that was read in which add_xprt passes on no uninitialised memory: "sunrpc: fix
uninitialized xprt_create_args structure" (net/sunrpc/sysfs.c), merged for 7.2 and taken over into 7.1."""
_SEVERAL = 2
RESERVED = 1023
"""The last port that only root may use; a server whose export is `secure` takes requests from no other."""
_PROVEN = ("3", "4.1", "4.2")


@dataclass(frozen=True, slots=True)
class Sought:
    """A group, and the connections that its superblocks lead to."""

    case: Case
    switches: tuple[SwitchSeen | ParseError | None, ...]

    @property
    def switch(self) -> SwitchSeen:
        """The connections, once _unseen found nothing. Raises LookupError where there are none."""
        found = next((one for one in self.switches if isinstance(one, SwitchSeen)), None)
        if found is None:
            raise LookupError("no switch")
        return found


def _fewer(sought: Sought) -> str:
    goal = sought.case.goal
    if goal.new > goal.old:
        return ""
    return f"it has more connections than it should ({goal.reason}): only mounting again takes them away"


def _kernel(sought: Sought) -> str:
    release = sought.case.facts.snapshot.kernel
    if release is not None and release.version >= SINCE:
        return ""
    name = f"Linux {release.text}" if release is not None else "this kernel"
    return (
        f"{name} cannot do it safely: before Linux 6.15 it is not possible, and before {SINCE_TEXT} it uses "
        "memory that the kernel did not initialise"
    )


def _single(sought: Sought) -> str:
    found = _those(sought, lambda one: (one.options.number("nconnect") or 1) < _SEVERAL)
    if not found:
        return ""
    return f"{found} was made without nconnect: a connection that is added to such a mount carries nothing"


def _resvport(sought: Sought) -> str:
    found = _those(sought, lambda one: "noresvport" not in one.options)
    if not found:
        return ""
    return (
        f"{found} was made without noresvport: a connection that is added comes from a port above {RESERVED} "
        "all the same, and where the server refuses that, reading and writing begin to fail (EPERM)"
    )


def _version(sought: Sought) -> str:
    found = _those(sought, lambda one: one.options.get("vers") not in _PROVEN)
    known = f"NFS {', '.join(_PROVEN[:-1])} or {_PROVEN[-1]}"
    return f"{found} is not {known}: nobody showed it to be safe there" if found else ""


def _tls(sought: Sought) -> str:
    found = _those(sought, lambda one: one.options.get("xprtsec") not in {None, "none"} or is_tunnel(one))
    return f"{found} is encrypted on its way: nobody showed it to be safe there" if found else ""


def _unseen(sought: Sought) -> str:
    error = next((one for one in sought.switches if isinstance(one, ParseError)), None)
    if error is not None:
        return f"its connections are not understood: {error}"
    names = {one.name for one in sought.switches if isinstance(one, SwitchSeen)}
    if None in sought.switches or not names:
        return "the kernel does not tell which connections it uses (/sys/fs/nfs)"
    return f"its superblocks use different connections ({', '.join(sorted(names))})" if len(names) > 1 else ""


def _trunkable(sought: Sought) -> str:
    found = _those(sought, lambda one: (one.options.number("max_connect") or 1) > 1)
    return f"{found} has max_connect: nobody showed it to be safe with several addresses" if found else ""


def _trunked(sought: Sought) -> str:
    found = sought.switch.info.unique_addresses
    if found == 1:
        return ""
    return f"its connections lead to {found} addresses: nobody showed it to be safe there"


def _other(sought: Sought) -> str:
    found = sorted({one.protocol for one in sought.switch.xprts} - {"tcp"})
    if not found:
        return ""
    return f"its connections are {some(found)}, and not plain TCP: nobody showed it to be safe there"


def _fixed(sought: Sought) -> str:
    return "" if sought.switch.grows else f"the kernel has no add_xprt for {sought.switch.name}"


def _few(sought: Sought) -> str:
    there, shown = sought.switch.info.active, sought.case.goal.old
    if there >= _SEVERAL:
        return ""
    return f"nconnect={shown} is shown and {there} connection exists: what is added may carry nothing"


def _many(sought: Sought) -> str:
    there, new = sought.switch.info.active, sought.case.goal.new
    if there < new:
        return ""
    return f"it has {there} connections already, though not all of them carried requests"


def reserved(switch: SwitchSeen) -> str:
    """Return which connections come from a reserved port: others were proven nowhere to be taken there."""
    found = [one.name for one in switch.xprts if one.source_port and one.source_port <= RESERVED]
    if not found:
        return ""
    return (
        f"{some(found)} comes from a port of at most {RESERVED}, whatever the options say (the first mount "
        "decided it for all): whether the server takes other ports is not known"
    )


def _reserved(sought: Sought) -> str:
    return reserved(sought.switch)


def _unfit(sought: Sought) -> str:
    return unfit_part(sought.case)


def _those(sought: Sought, wrong: Callable[[Target], bool]) -> str:
    return some([one.point for one in sought.case.group if wrong(one)])


_Check = Callable[[Sought], str]

BY_OPTIONS: tuple[_Check, ...] = (*(_fewer, _kernel, _single, _resvport, _version, _tls, _trunkable, _unfit),)
"""These need not see the connections."""
AGAINST: tuple[_Check, ...] = (
    *BY_OPTIONS,
    *(_unseen, _trunked, _other, _fixed, _few, _many, _reserved),
)
