"""Mounts that files ask for and that nobody has made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nfstuned.model.facts import Target
from nfstuned.model.mounts import Maker
from nfstuned.model.requests import UnitState

_STANDS = frozenset({"failed", "inactive"})
"""ActiveState of a unit that nobody starts at the moment."""


def awaited(targets: Iterable[Target]) -> Iterator[Target]:
    """Yield the mounts that lines of fstab and mount units ask for and that the host does not have.

    What is mounted at its first use is not awaited. The copy of a mount in another mount namespace, as a
    container has it, is none of the host's.
    """
    for target in targets:
        request, here = target.request, target.live is not None and not target.live.foreign
        if request is None or here or not (target.is_nfs or target.is_smb):
            continue
        if request.maker in {Maker.MOUNT, Maker.UNIT} and not request.at_first_use:
            yield target


def is_missing(state: UnitState) -> bool:
    """Whether a unit should be active, and neither is nor will be: it has no job, its conditions were met.

    It should be where a target wants it, as at boot; a service that does starts it when it is started itself.
    """
    wanted = state.loaded and any(name.endswith(".target") for name in state.wanted_by)
    return wanted and state.active in _STANDS and not state.job and state.condition
