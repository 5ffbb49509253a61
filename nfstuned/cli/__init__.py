"""The command line: verbs, streams and exit codes. Libraries for people's output load when they are used."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from nfstuned.cli.app import app
from nfstuned.cli.notes import note
from nfstuned.errors import ParseError
from nfstuned.host.root import Root, WitnessRoot

NAME = "nfstuned"
INTERRUPTED = 130
BROKEN = 2


def main(args: Sequence[str] | None = None, root: Root | None = None) -> int:
    """Run one command and return its exit status; `root` is this host unless a test gives a tree."""
    for stream in (sys.stdout, sys.stderr):
        # Mount points may hold what the locale cannot show.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # typeshed says TextIO
    arguments = list(sys.argv[1:] if args is None else args)
    try:
        status = app.main(arguments, NAME, standalone_mode=False, obj=root or WitnessRoot())
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except ParseError as error:
        # Not one bad line, of which every command makes the best, but a file that all depends on.
        note(str(error))
        return BROKEN
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    return status if isinstance(status, int) else 0
