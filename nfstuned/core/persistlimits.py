"""What the installed mount.nfs makes of several sections: nothing may be written that it does not read.

From 2.5.3 to 2.8.2 nfs-utils keeps one assignment of a name for all [ Server ] sections of all files, the
last one: a second section takes the number of the first away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nfstuned.core.persistverdicts import Fate, Verdict
from nfstuned.model.intent import Setting
from nfstuned.model.system import NfsUtils
from nfstuned.model.work import Result

_INSTALL = "install nfs-common (Debian, Ubuntu), nfs-utils (RHEL) or nfs-client (SUSE) first"


def limited(
    known: Sequence[Verdict], held: Sequence[str], utils: NfsUtils | None, settings: Sequence[Setting]
) -> tuple[Verdict, ...]:
    """Return the verdicts as the installed mount.nfs lets them be.

    `held` are the names that the file has, without those that are to go; `settings` all that others wrote.
    """
    if utils is None:
        return _unknown(known, f"there is no mount.nfs here: {_INSTALL}")
    if not utils.drop_ins and utils.version is None:
        return _unknown(known, "/sbin/mount.nfs does not tell its version, as a script in its place")
    if not utils.drop_ins:
        return _none(known, held, f"{utils.name} does not read /etc/nfsmount.conf.d: nfs-utils 2.5.3 does")
    if utils.keeps_sections_apart:
        return tuple(known)
    return _one(known, held, f"{utils.name} has one nconnect for all [ Server ] sections", settings)


def _unknown(known: Sequence[Verdict], reason: str) -> tuple[Verdict, ...]:
    return tuple(
        replace(one, fate=Fate.KEEP, reason=reason, result=Result.FAILED) if one.fate is Fate.WRITE else one
        for one in known
    )


def _none(known: Sequence[Verdict], held: Sequence[str], reason: str) -> tuple[Verdict, ...]:
    return _but(known, held, "", reason)


def _one(
    known: Sequence[Verdict], held: Sequence[str], why: str, settings: Sequence[Setting]
) -> tuple[Verdict, ...]:
    """Let one section be: one that is there already, else the first that should be."""
    foreign = next((one for one in settings if one.section == "server" and _is_ours(one.name)), None)
    if foreign is not None:
        reason = f"{why}, and {foreign.file}:{foreign.line} has it for {foreign.argument}"
        return _none(known, held, f"{reason}: put nconnect into the options of the mounts instead")
    names = {one.name for one in known}
    there = {one.name for one in known if one.fate is not Fate.DROP and one.names == 1}
    may = [name for name in held if name in there or name not in names]
    may.sort(key=lambda name: name not in names)
    may += [one.name for one in sorted(known, key=_is_spare) if one.fate is Fate.WRITE and one.names == 1]
    if not may:
        two = f"{why}, and this server is mounted by several names"
        return _none(known, held, f"{two}: put nconnect into the options of the mounts instead")
    has = f"{why}, and {may[0]} has it"
    if may[0] not in names:
        return _but(known, held, may[0], f"{has}, which nothing uses here: --prune takes it out")
    return _but(known, held, may[0], f"{has}: put nconnect into the options of the mounts instead")


def _but(known: Sequence[Verdict], held: Sequence[str], kept: str, reason: str) -> tuple[Verdict, ...]:
    """Let there be no section but the one of `kept`."""
    names = {one.name for one in known}
    gone = (Verdict(name, None, Fate.DROP, reason) for name in held if name not in names | {kept})
    return (*(one if one.name == kept else _without(one, held, reason) for one in known), *gone)


def _without(one: Verdict, held: Sequence[str], reason: str) -> Verdict:
    """Return the verdict without a section; what was against it before stays the reason, but for its end."""
    if one.fate is Fate.DROP or (one.fate is Fate.KEEP and one.name not in held):
        return one
    # Where each mount asks for it by itself, nobody lacks the section.
    return replace(one, fate=Fate.DROP, reason=reason, number=one.number if one.needed else None)


def _is_spare(one: Verdict) -> bool:
    return not one.needed


def _is_ours(name: str) -> bool:
    return name.lower() == "nconnect"
