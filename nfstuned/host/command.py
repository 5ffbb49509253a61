"""Run a tool of the system as a child, and end it with all its children when its time is over."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass

GRACE_S = 2.0
"""A child that waits in the kernel for a server is killed at once, or not at all."""
_LARGEST = 1_000_000
"""In bytes: no tool prints more that anybody wants to read."""


@dataclass(frozen=True, slots=True)
class Done:
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


def run_tool(argv: Sequence[str], seconds: float, keep: Sequence[int] = ()) -> Done:
    """Run a command for so long at most; it has the descriptors of `keep`. It raises nothing.

    It has a session of its own: ^C is not for it, and its children end with it (mount.nfs goes on
    trying for minutes after mount(8) was killed). Its output goes to memory and not through a pipe, which a
    service that it starts would hold open.
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
    return Done(output, "; ".join(line for line in lines if line), errors, late, cut)


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
