"""How many requests Azure NetApp Files takes at a time, and the parameters that say how many are sent."""

from __future__ import annotations

from dataclasses import dataclass

from nfstuned.core.groups import is_netapp, version
from nfstuned.core.rules.kernels import Wish, parameter
from nfstuned.model.facts import Facts, Target
from nfstuned.model.kernel import decimal

_MOST = 128
_LEAST = 180


def _at_most(value: str) -> bool:
    number = decimal(value)
    return number is not None and number <= _MOST


def _at_least(value: str) -> bool:
    number = decimal(value)
    return number is not None and number >= _LEAST


SLOT_TABLE = Wish("sunrpc.tcp_max_slot_table_entries", str(_MOST), _at_most, "sunrpc-slots.conf")
SESSION_SLOTS = Wish("nfs.max_session_slots", str(_LEAST), _at_least, "nfs-slots.conf")
_VERSIONS = {SLOT_TABLE.name: "3", SESSION_SLOTS.name: "4.1"}
"""The version of NFS that each is about."""
_DEFAULTS = {SLOT_TABLE.name: 65536, SESSION_SLOTS.name: 64}
"""What kernels have where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """The mounts that a parameter does not suit, and what it is or will be."""

    users: tuple[Target, ...]
    value: int


def crowd(facts: Facts, wish: Wish) -> Crowd | None:
    """Return the mounts of Azure NetApp Files that want another value; None for none, or if nothing tells."""
    wanted = _VERSIONS[wish.name]
    users = tuple(target for target in facts.nfs if is_netapp(target) and version(target) == wanted)
    value = _value(facts, wish.name)
    return Crowd(users, value) if users and value is not None and not wish.fits(str(value)) else None


def _value(facts: Facts, name: str) -> int | None:
    """Return what a module's parameter is, or will be; None where it is loaded and does not tell."""
    found = parameter(facts, name)
    loaded = any(target.live is not None for target in facts.nfs)
    text = found[0] if found else "" if loaded else str(_DEFAULTS[name])
    return decimal(text)
