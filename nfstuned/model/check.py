"""The settings of checks, and the findings that a project has accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from nfstuned.model.facts import Severity

NO_SEVERITIES: Mapping[str, Severity] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """A [check] table, or the part of it for some paths."""

    ignore: tuple[str, ...] = ()
    """Ids and names of rules, or starts of ids."""
    severity: Mapping[str, Severity] = field(default_factory=lambda: NO_SEVERITIES)
    """Severities by such words."""
    match: tuple[str, ...] = ()
    """Globs for the paths for which it is; () for all."""
    parts: tuple[CheckSettings, ...] = ()
    """The [[check.path]] tables."""


class Known(NamedTuple):
    """A finding without its line, which changes with every edit above it."""

    rule: str
    file: str
    """The file, or another subject as it is."""
    observed: str
    source: str
    """The source of its mount; "" for another subject."""
