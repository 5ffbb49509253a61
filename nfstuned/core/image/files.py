"""The step for each of the program's files in system folders: write, remove or leave alone."""

from __future__ import annotations

from collections.abc import Mapping

from nfstuned.model.change import Content, FileStep, Installed, Placement
from nfstuned.parse.etc.installed import digest, encoded

_FOREIGN = "it was not written by {}: move it away, or remove the package that has it"
_EDITED = "it was changed after {} had written it: move it away"
_LEFT = "it was changed after {} had written it: remove it yourself if nobody needs it"


def plan_files(
    wanted: Mapping[str, Content], digests: Mapping[str, str | None], known: Installed, command: str
) -> tuple[Placement, ...]:
    """Return the step for each wanted file, and for each file of an earlier `command` that is not wanted now.

    `digests` are by path: None where there is no file, "" for anything but a regular file or a link.
    """
    steps = []
    for path, content in wanted.items():
        now, ours = digests.get(path), known.digests.get(path, ())
        if now == digest(content):
            steps.append(Placement(path, FileStep.SAME))
        elif now is None or now in ours:
            steps.append(Placement(path, FileStep.WRITE))
        else:
            reason = _EDITED if ours else _FOREIGN
            steps.append(Placement(path, FileStep.REFUSE, reason.format(command)))
    return (
        *steps,
        *(placement for placement in plan_removal(digests, known, command) if placement.path not in wanted),
    )


def plan_removal(present: Mapping[str, str | None], known: Installed, command: str) -> tuple[Placement, ...]:
    """Return the step for each file that was written.

    A file that is gone has no step, nor has a file with its earlier text, because a kill came before the
    write. `present` are the digests by path.
    """
    before = {path: digest(encoded(text)) for path, text in known.before.items()}
    left = _LEFT.format(command)
    return tuple(
        Placement(path, FileStep.REMOVE) if present[path] in digests else Placement(path, FileStep.KEEP, left)
        for path, digests in known.digests.items()
        if present.get(path) not in {None, before.get(path)}
    )
