"""The seam between a check and the world beyond files: names, ports, routes, Azure, systemd, the clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from nfstuned.model.facts import Network
from nfstuned.model.requests import UnitState


@dataclass(frozen=True, slots=True)
class Questions:
    """What a check wants to know of the network."""

    names: tuple[str, ...] = ()
    """Host names to resolve, addresses excluded."""
    servers: tuple[tuple[str, int], ...] = ()
    """Host names or addresses, and the TCP port that must open there."""
    addresses: tuple[str, ...] = ()
    """Addresses whose route and interface matter: those of live mounts."""
    azure: bool = False
    """The machine is an Azure VM: its metadata service may be asked for the VM's size."""


class Outside(Protocol):
    """The world beyond files. Tests answer for it; everything else in a check is files."""

    def ask(self, questions: Questions, *, offline: bool) -> tuple[Network, tuple[str, ...]]:
        """Return what was learned, and what could not be, for people; `offline` asks this machine only.

        It returns within a few seconds whatever the network does.
        """

    def pause(self, seconds: float) -> float:
        """Let time pass between two looks; return how many seconds did, with those of a suspended machine."""

    def now(self) -> float:
        """Return the time, in Unix seconds."""

    def units(self, names: Sequence[str]) -> Mapping[str, UnitState]:
        """Return what systemd knows of units; nothing where there is none to ask."""

    def last_words(self, states: Mapping[str, UnitState]) -> Mapping[str, UnitState]:
        """Return the states with what the programs of failed units said, where that is known."""

    def kernel_words(self) -> str:
        """Return what the kernel said last of a server's answers; "" where that cannot be read."""
