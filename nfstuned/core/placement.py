"""Which of the files beside the program are to be written or removed, and which must be left alone."""

from __future__ import annotations

from collections.abc import Mapping

from nfstuned.model.files import Installed, Placement, Step

_FOREIGN = "it was not written by install-files: move it away, or remove the package that has it"
_EDITED = "it was changed after install-files had written it: move it away"
_LEFT = "it was changed after install-files had written it: remove it yourself if nobody needs it"


def plan_files(
    wanted: Mapping[str, str], found: Mapping[str, str | None], known: Installed
) -> tuple[Placement, ...]:
    """Return what becomes of each wanted file, and of those that an older version wrote and nobody wants now.

    `wanted` and `found` have the SHA-256 of each file by its path; of what is found it is None where there is
    nothing, and "" for what is no regular file.
    """
    steps = [_wish(path, digest, found.get(path), known) for path, digest in wanted.items()]
    return (*steps, *(one for one in plan_removal(found, known) if one.path not in wanted))


def plan_removal(found: Mapping[str, str | None], known: Installed) -> tuple[Placement, ...]:
    """Return what becomes of each file that was written; of those that are gone there is nothing to say."""
    return tuple(
        Placement(path, Step.REMOVE) if found[path] in digests else Placement(path, Step.KEEP, _LEFT)
        for path, digests in known.digests.items()
        if found.get(path) is not None
    )


def _wish(path: str, digest: str, now: str | None, known: Installed) -> Placement:
    ours = known.digests.get(path, ())
    if now == digest:
        return Placement(path, Step.SAME)
    if now is None or now in ours:
        return Placement(path, Step.WRITE)
    return Placement(path, Step.REFUSE, _EDITED if ours else _FOREIGN)
