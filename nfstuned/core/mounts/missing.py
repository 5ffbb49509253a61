"""Mounts that files ask for and that nobody has made."""

from __future__ import annotations

from collections.abc import Iterable

from nfstuned.core.mounts.options import last_of
from nfstuned.model.facts import Target
from nfstuned.model.mounts import Maker
from nfstuned.model.requests import UnitState
from nfstuned.parse.etc.units import unit_name
from nfstuned.parse.options import parse_options

_STANDS = frozenset({"failed", "inactive"})
"""ActiveState of a unit that nobody starts at the moment."""
_STARTED_AT_BOOT = frozenset({"enabled", "enabled-runtime", "generated", "static", "linked", "alias"})


def awaited(targets: Iterable[Target]) -> dict[str, Target]:
    """Return the mounts that lines of fstab and mount units ask for and that are not there, by their units.

    What is mounted at its first use or by hand alone is not awaited.
    """
    found: dict[str, Target] = {}
    for target in targets:
        request = target.request
        if target.live is not None or request is None or not (target.is_nfs or target.is_smb):
            continue
        at_boot = last_of(parse_options(request.options), "auto", "noauto") != "noauto"
        if request.maker in {Maker.MOUNT, Maker.UNIT} and not request.at_first_use and at_boot:
            found.setdefault(unit_name(request.point), target)
    return found


def is_missing(state: UnitState) -> bool:
    """Whether a unit should be active, and neither is nor will be: it has no job, its conditions were met."""
    wanted = state.loaded and state.file_state in _STARTED_AT_BOOT
    return wanted and state.active in _STANDS and not state.job and state.condition
