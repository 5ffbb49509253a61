"""Ask `findmnt --verify` about an fstab that is to replace another."""

from __future__ import annotations

import os
import subprocess
from collections import Counter

from nfstuned.parse.etc.fstab import parse_verify

DEADLINE_S = 10.0
"""It asks for the status of every mount point: a dead server would hold it up for ever."""


class _NoVerdictError(Exception):
    """findmnt did not say whether a file is right."""


def new_errors(old: str, new: str, deadline_s: float = DEADLINE_S) -> str:
    """Return the errors of the file `new` that the file `old` does not have; "" where there is none.

    Not to be asked at all, or not within the deadline, is an error, too.
    """
    try:
        errors = _errors(new, deadline_s) - _errors(old, deadline_s)
    except _NoVerdictError as error:
        return str(error)
    return f"findmnt --verify refuses the new text: {'; '.join(sorted(errors))}" if errors else ""


def _errors(path: str, deadline_s: float) -> Counter[str]:
    """Return the errors of a file, each as often as it is there. Raises _NoVerdictError."""
    command = ["findmnt", "--verify", "--tab-file", path]
    try:
        done = subprocess.run(  # noqa: S603 - the only thing that differs is a path, which no shell sees
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=deadline_s,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError:
        raise _NoVerdictError(
            "findmnt, which would check the new text, is not installed (util-linux)"
        ) from None
    except subprocess.TimeoutExpired:
        raise _NoVerdictError(
            f"findmnt --verify, which checks the new text, gave no answer within {deadline_s:g} s: "
            "a mount point may hang because its server is dead"
        ) from None
    except OSError as error:
        raise _NoVerdictError(f"findmnt, which would check the new text: {error.strerror}") from None
    output, errors = (stream.decode("utf-8", "surrogateescape") for stream in (done.stdout, done.stderr))
    verdict = parse_verify(output, errors)
    if verdict is None:
        said = (errors.strip() or output.strip() or f"exit status {done.returncode}").splitlines()[0]
        raise _NoVerdictError(f"findmnt --verify, which checks the new text, came to no verdict: {said}")
    return verdict
