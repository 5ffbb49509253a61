"""Ask `findmnt --verify` about an fstab that is to replace another."""

from __future__ import annotations

import shutil
from collections import Counter

from nfstuned.host.command import run_tool, search_path
from nfstuned.parse.etc.fstab import parse_verify

DEADLINE_S = 10.0
"""It asks for the status of every mount point: a dead server would hold it up for ever, killed or not."""


class _NoVerdictError(Exception):
    """findmnt did not check a file."""


def new_errors(old: str, new: str, deadline_s: float = DEADLINE_S) -> str:
    """Return the errors of the file `new` that the file `old` does not have; "" without any.

    A findmnt that is not installed, or gives no answer within the deadline, is an error, too.
    """
    try:
        errors = _errors(new, deadline_s) - _errors(old, deadline_s)
    except _NoVerdictError as error:
        return str(error)
    return f"findmnt --verify refuses the new text: {'; '.join(sorted(errors))}" if errors else ""


def _errors(path: str, deadline_s: float) -> Counter[str]:
    """Return the errors of a file, each as often as it is there. Raises _NoVerdictError."""
    if shutil.which("findmnt", path=search_path()) is None:
        raise _NoVerdictError("findmnt, which would check the new text, is not installed (util-linux)")
    done = run_tool(("findmnt", "--verify", "--tab-file", path), deadline_s)
    if done.late:
        raise _NoVerdictError(
            f"findmnt --verify, which checks the new text, gave no answer within {deadline_s:g} s: "
            "a mount point may hang because its server is dead"
        )
    if done.cut:
        raise _NoVerdictError("findmnt --verify, which checks the new text, prints more than can be read")
    verdict = parse_verify(done.output, done.errors)
    if verdict is None:
        first = (done.errors.strip() or done.output.strip() or done.problem).splitlines()[0]
        raise _NoVerdictError(f"findmnt --verify, which checks the new text, came to no verdict: {first}")
    return verdict
