"""The command line: verbs, streams and exit codes. Libraries for people's output load when they are used."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence

import click

from nfstuned.cli.app import app
from nfstuned.cli.talk import note, unreadable_lines
from nfstuned.errors import ParseError
from nfstuned.host.root import Root

NAME = "nfstuned"
INTERRUPTED = 130
BROKEN = 2


def main(args: Sequence[str] | None = None, root: Root | None = None) -> int:
    """Run one command and return its exit status; `root` is this host unless a test gives a tree.

    It raises nothing: what comes to no verdict is one line on stderr and status 2, never a traceback and 1.
    """
    try:
        _prepare_streams()
        status = _run(list(sys.argv[1:] if args is None else args), root or Root())
        sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except OSError as error:
        _discard_output()
        place = f"{error.filename}: " if error.filename else ""
        # A reader that has seen enough is no accident.
        return BROKEN if error.errno == errno.EPIPE else _give_up(f"{place}{error.strerror or error}")
    except Exception as error:  # noqa: BLE001 - one of three places: 1 would say that the host is at fault
        return _give_up(f"{type(error).__name__}: {error} ({_place(error)})")
    return status


def _run(arguments: list[str], root: Root) -> int:
    try:
        with app.make_context(NAME, arguments, obj=root) as context:
            status = app.invoke(context)
    except click.exceptions.Exit as done:  # of --help and --version
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except ParseError as error:
        # Not one bad line, of which every command makes the best, but a file that all depends on.
        note(str(error))
        return BROKEN
    # Each fault has been told by now, or is here; a result that lacks something is no success.
    unreadable_lines(root.faults.unreported())
    ended = status if isinstance(status, int) else 0
    return max(ended, BROKEN) if root.faults else ended


def _prepare_streams() -> None:
    """Make the streams fit for all that will be written; raises OSError where there is no stdout."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    for stream in (sys.stdout, sys.stderr):
        # Mount points may hold what the locale cannot show.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # typeshed says TextIO


def _discard_output() -> None:
    """Forget what is left to be written: it would fail again when the process ends."""
    if sys.stdout is not None:
        with contextlib.suppress(OSError):
            sys.stdout.close()


def _place(error: Exception) -> str:
    """Return the file and the line that raised an exception."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame is not None else "nowhere"


def _give_up(why: str) -> int:
    """Say why there is no result."""
    with contextlib.suppress(OSError):
        note(f"{NAME}: {why}")
    return BROKEN
