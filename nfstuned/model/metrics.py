"""Metrics as values: a family is one name, what it means, and its series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple


class Kind(str, Enum):
    """What a family's numbers are, in the words of the exposition format."""

    COUNTER = "counter"
    GAUGE = "gauge"


class Point(NamedTuple):
    """One series: the values of the family's labels, in their order, and its number now."""

    labels: tuple[str, ...]
    value: float


@dataclass(frozen=True, slots=True)
class Family:
    """All series of one name. A counter's name ends with `_total`; units are seconds and bytes."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Service:
    """What the daemon says of itself; times are Unix seconds."""

    version: str
    started: float
    sampled: float
    interval_s: float
    sampling_cpu_s: float
    """CPU time that sampling has taken since the start, for all mounts together."""
    policy_valid: bool
    """The newest configuration is the one in use."""
    messages: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """How many entries of each message went to the journal."""
    textfile_failures: int = 0
    left: frozenset[str] = frozenset()
    """The devices whose read-ahead is left to another writer."""
