"""Tools of the system, run as children: any tool, and calls of systemctl, journalctl and findmnt."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nfstuned.model.mounts import UnitState
from nfstuned.parse.etc.requests import parse_verify
from nfstuned.parse.etc.units import PROPERTIES, parse_units

GRACE_S = 2.0
"""The wait for a killed child: one that waits in the kernel for a server ends at once, or not at all."""
_LARGEST = 1_000_000
"""In bytes: no tool prints more that anybody wants to read."""


class ToolResult(NamedTuple):
    """The result of a command: its output, and why it failed, "" where it did not."""

    output: str = ""
    problem: str = ""
    """In one line, after its standard error."""
    errors: str = ""
    """Its standard error, also where it did not fail."""
    late: bool = False
    """Its time was over before it ended."""
    cut: bool = False
    """Its output was longer than is kept."""


def run_tool(argv: Sequence[str], seconds: float, keep: Sequence[int] = ()) -> ToolResult:
    """Run a command for so long at most; it has the descriptors of `keep`. Its failure raises nothing.

    Its own session keeps ^C from it; after the deadline its children end with it (mount.nfs goes on trying
    for minutes after mount(8) was killed). Its output goes to memory and not through a pipe, which a service
    that it starts would hold open.
    """
    streams = [os.memfd_create(name) for name in ("output", "errors")]
    try:
        problem, late = _run(argv, seconds, streams, keep)
        cut = any(os.fstat(stream).st_size > _LARGEST for stream in streams)
        texts = (os.pread(stream, _LARGEST, 0) for stream in streams)
        output, errors = (text.decode("utf-8", "surrogateescape") for text in texts)
    finally:
        for stream in streams:
            os.close(stream)
    lines = (line.strip() for line in (*errors.splitlines(), problem)) if problem else ()
    return ToolResult(output, "; ".join(line for line in lines if line), errors, late, cut)


def _run(
    argv: Sequence[str], seconds: float, streams: Sequence[int], keep: Sequence[int]
) -> tuple[str, bool]:
    """Return why a command failed, "" where it did not, and whether its time was over.

    A child that cannot be killed is left behind.
    """
    import subprocess  # noqa: PLC0415 - it is slow to load, and most checks run no tool

    try:
        process = subprocess.Popen(  # noqa: S603 - no shell sees the words, which are paths and options
            argv,
            stdin=subprocess.DEVNULL,
            stdout=streams[0],
            stderr=streams[1],
            start_new_session=True,
            pass_fds=keep,
            env={
                **os.environ,
                "PATH": search_path(),
                "LC_ALL": "C",
                "SYSTEMD_COLORS": "0",
                "SYSTEMD_PAGER": "",
            },
        )
    except OSError as error:
        return f"{argv[0]}: {error.strerror}", False
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            return f"no end within {seconds:g} s, and it cannot be killed: it waits in the kernel", True
        return f"no end within {seconds:g} s", True
    return f"{argv[0]} ended with status {status}" if status else "", False


def search_path() -> str:
    """Return where tools are looked for: not where a site has its own, which may be on a dead server."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not f"{folder}/".startswith("/usr/local/"))


SYSTEMCTL_S = 30.0
_JOURNAL_S, _REASONS_S = 10.0, 20.0
_OF_SERVERS = "--grep=^nfs: server .+ (not responding|OK)"
_NO_REASON = "Refer to the "
"""The beginning of the last line of mount.cifs: after the error it names its manual page."""
_MOST_CHARACTERS = 200
"""The length to which a message is cut."""


def observe_states(names: Sequence[str]) -> dict[str, UnitState]:
    """Return the state of units; none where there is no systemd to ask."""
    asked = run_tool(["systemctl", "show", f"--property={','.join(PROPERTIES)}", "--", *names], SYSTEMCTL_S)
    return dict(parse_units(asked.output))


def with_failure_reasons(states: Mapping[str, UnitState]) -> dict[str, UnitState]:
    """Return the states with the last messages of failed units, where the journal can be read.

    A message is of the unit's last start, or of this boot where the start is not known. All of them together
    may take _REASONS_S: units after that have no message.
    """
    end, failed = time.monotonic() + _REASONS_S, {}
    for name, state in states.items():
        if state.active != "failed" or (left := end - time.monotonic()) <= 0:
            continue
        when = f"_SYSTEMD_INVOCATION_ID={state.invocation}" if state.invocation else "--boot"
        of = f"_SYSTEMD_UNIT={name}"
        argv = ["journalctl", "--quiet", "--no-pager", "--output=cat", "--lines=10", when, of]
        lines = run_tool(argv, min(left, _JOURNAL_S)).output.splitlines()
        messages = (line.strip() for line in reversed(lines) if not line.startswith(_NO_REASON))
        failed[name] = state._replace(failure=next(messages, "")[:_MOST_CHARACTERS])
    return {**states, **failed}


def last_server_message() -> str:
    """Return the last line of the kernel's log that says whether a server answers; "" without such a line.

    "nfs: server nas not responding, still trying", and "nfs: server nas OK" (net/sunrpc/clnt.c).
    """
    argv = ["journalctl", "--dmesg", "--quiet", "--no-pager", "--output=cat", "--lines=1", _OF_SERVERS]
    return run_tool(argv, _JOURNAL_S).output.strip().rpartition("\n")[2][:_MOST_CHARACTERS]


VERIFY_S = 10.0
"""findmnt asks for the status of every mount point: a dead server would hold it up for ever."""


class _NoVerdictError(Exception):
    """findmnt did not check a file."""


def new_errors(old: str, new: str, deadline_s: float = VERIFY_S) -> str:
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
    import shutil  # noqa: PLC0415 - it loads three compression libraries

    if shutil.which("findmnt", path=search_path()) is None:
        raise _NoVerdictError("findmnt, which would check the new text, is not installed (util-linux)")
    done = run_tool(("findmnt", "--verify", "--tab-file", path), deadline_s)
    if done.late:
        raise _NoVerdictError(
            f"findmnt --verify, which checks the new text, gave no answer within {deadline_s:g} s: a mount "
            "point of a dead server may hang"
        )
    if done.cut:
        raise _NoVerdictError("findmnt --verify, which checks the new text, prints too much")
    verdict = parse_verify(done.output, done.errors)
    if verdict is None:
        first = (done.errors.strip() or done.output.strip() or done.problem or "no output").splitlines()[0]
        raise _NoVerdictError(f"findmnt --verify, which checks the new text, gave no verdict: {first}")
    return verdict
