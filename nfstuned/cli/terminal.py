"""The person at the terminal: common options, notes, progress, and the dialog of a change."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from nfstuned.errors import ParseError
from nfstuned.host.root import Root
from nfstuned.model.facts import Severity
from nfstuned.model.policy import ConfigError
from nfstuned.view.words import Document, printable, to_json, utc

if TYPE_CHECKING:
    from nfstuned.host.network.outside import Outside, Questions
    from nfstuned.model.change import Change
    from nfstuned.model.mounts import UnitState
    from nfstuned.model.policy import Policy
    from nfstuned.model.system import Network


def terminal_width() -> int:
    """Return the columns of the terminal behind stdout, or COLUMNS; 80 where both are missing."""
    from shutil import get_terminal_size  # noqa: PLC0415 - it loads three compression libraries

    return get_terminal_size().columns


def coloured() -> bool:
    """Return whether stdout is a terminal with colours."""
    dumb = os.environ.get("TERM") in {"dumb", "unknown"}  # as for rich, which draws the tables
    return sys.stdout.isatty() and not dumb and not os.environ.get("NO_COLOR")


def note(line: str) -> None:
    """Print a line for people."""
    print(printable(line), file=sys.stderr)  # noqa: T201 - stderr is where the command talks


def host_name() -> str:
    """Return the name of this host, as each document has it."""
    return os.uname().nodename or "localhost"


def dated(document: Document) -> Document:
    """Return a document of this host with the time and the host, behind its schema where it lacks them."""
    head = {"schema": document["schema"], "time": utc(time.time()), "host": host_name()}
    return {**head, **document}


def print_document(document: Document) -> None:
    """Print a document on stdout as JSON."""
    sys.stdout.write(f"{to_json(document)}\n")


def write_output(lines: Iterable[str], output: str | None, result: str) -> bool:
    """Write lines to a file and print its result, or write them to stdout; return whether they are written.

    Raises OSError of stdout.
    """
    from nfstuned.host.files.write import write_file  # noqa: PLC0415 - few commands write a file

    if output is None:
        # In UTF-8 whatever the locale is: a page names its own encoding.
        sys.stdout.buffer.writelines(line.encode("utf-8", "backslashreplace") + b"\n" for line in lines)
        return True
    try:
        write_file(output, lines)
    except OSError as error:
        note(f"{output}: {error.strerror or error}")
        return False
    note(f"{output}: {result}")
    return True


def unreadable_lines(problems: Iterable[ParseError]) -> None:
    """Name each line of a kernel file that was not understood; the same one only once."""
    for line in dict.fromkeys(str(problem) for problem in problems):
        note(line)


def usable_policy(root: Root) -> Policy | None:
    """Return the policy in effect; None when it is invalid, its problems named on stderr, one a line."""
    from nfstuned.host.policy import read_configuration  # noqa: PLC0415 - not all commands have a policy

    try:
        return read_configuration(root)
    except ConfigError as error:
        for problem in error.problems:
            note(problem)
        return None


_SOON_S = 2.0
_CLEAR = "\r\x1b[K"


@dataclass(frozen=True, slots=True)
class OutsideWithProgress:
    """The world beyond files; after 2 s on a terminal it prints the reason of a wait."""

    outside: Outside

    def ask(self, questions: Questions, *, offline: bool) -> tuple[Network, tuple[str, ...]]:
        """Ask as Outside does."""
        with _progress(f"asking about {len(questions.names)} names and {len(questions.servers)} servers ..."):
            return self.outside.ask(questions, offline=offline)

    def pause(self, seconds: float) -> float:
        """Ask as Outside does."""
        with _progress(f"looking again {seconds:.0f} s after the first look ..."):
            return self.outside.pause(seconds)

    def now(self) -> float:
        """Ask as Outside does."""
        return self.outside.now()

    def units(self, names: Sequence[str]) -> Mapping[str, UnitState]:
        """Ask as Outside does."""
        with _progress("asking systemd about mounts that are missing ..."):
            return self.outside.units(names)

    def failure_reasons(self, states: Mapping[str, UnitState]) -> Mapping[str, UnitState]:
        """Ask as Outside does."""
        with _progress("asking the journal why mounts failed ..."):
            return self.outside.failure_reasons(states)

    def kernel_message(self) -> str:
        """Ask as Outside does."""
        return self.outside.kernel_message()


@contextmanager
def _progress(text: str) -> Iterator[None]:
    """Print a text when the block takes longer than _SOON_S, and clear the line afterwards."""
    if not sys.stderr.isatty():
        yield
        return
    from threading import Timer  # noqa: PLC0415 - most checks have nobody to talk to

    written: list[str] = []
    timer = Timer(_SOON_S, _write, (text, written))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if written:
            _write(_CLEAR, written)


def _write(text: str, written: list[str]) -> None:
    written.append(text)
    sys.stderr.write(text)
    sys.stderr.flush()


def live_outside(root: Root) -> Outside:
    """Return the world beyond files."""
    from nfstuned.host.network.outside import LiveOutside  # noqa: PLC0415 - only commands that ask a network need it

    return LiveOutside(root)


@dataclass(frozen=True, slots=True)
class Terminal:
    """The terminal for a change (nfstuned.app.change.Dialog)."""

    form: str = "text"
    """ "json" for a document instead of a table."""
    document: Callable[[Sequence[Change]], Document] | None = None
    """ "json" prints it; None for the document of `apply`."""
    wraps: bool = False
    """People read lines that are wrapped to the terminal, not the rows of a table."""

    note = staticmethod(note)
    unreadable_lines = staticmethod(unreadable_lines)

    def ask(self, outside: Outside, questions: Questions) -> Network:
        """Ask as Outside does, and print the questions that nobody could answer."""
        network, unknown = OutsideWithProgress(outside).ask(questions, offline=False)
        for line in unknown:
            note(line)
        return network

    def show(self, lines: Iterable[str]) -> None:
        """Print a plan; on stderr where the output is a document."""
        stream = sys.stderr if self.form == "json" else sys.stdout
        stream.writelines(line + "\n" for line in lines)
        stream.flush()

    def can_ask(self) -> bool:
        """Return whether somebody sees the plan and the question, and can answer."""
        seen = sys.stderr.isatty() and (self.form == "json" or sys.stdout.isatty())
        return seen and sys.stdin is not None and sys.stdin.isatty()

    def confirm(self, question: str) -> bool:
        """Return a person's answer; also next to a document."""
        return click.confirm(question, err=True)

    def result(self, changes: Sequence[Change], nothing: str) -> None:
        """Print the document, or a line for each change and their counts, or that there is nothing to do."""
        from nfstuned.view.change import (  # noqa: PLC0415 - few commands change anything
            apply_document,
            cells,
            change_lines,
            summary,
        )

        if self.form == "json":
            print_document(dated((self.document or apply_document)(changes)))
        elif changes and self.wraps:
            colours = {"done": "green", "failed": "red"} if coloured() else {}
            for change in changes:
                for lead, line in change_lines(change, terminal_width()):
                    colour = colours.get(lead.strip())
                    sys.stdout.write(f"{click.style(lead, fg=colour) if colour else lead}{line}\n")
            sys.stdout.write(summary(changes) + "\n")
        elif changes:
            from nfstuned.cli.table import Column, print_table  # noqa: PLC0415 - rich is slow to load

            columns = (Column(), Column(), Column(coloured=True), Column())
            print_table(columns, [cells(change) for change in changes])
            sys.stdout.write(summary(changes) + "\n")
        else:
            sys.stdout.write(nothing + "\n")

    def hint(self, lines: Iterable[str]) -> None:
        """Print remarks for people."""
        if self.form == "text":
            sys.stdout.writelines(line + "\n" for line in lines)


class Commands(click.Group):
    """Commands that suggest the nearest name for an unknown one, with every version of click."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first word. Raises click.UsageError with the nearest names."""
        word = args[0]
        if self.get_command(ctx, word) is None and not (word.startswith("-") or ctx.resilient_parsing):
            from difflib import get_close_matches  # noqa: PLC0415 - hardly ever needed

            close = get_close_matches(word, self.list_commands(ctx))
            hint = (
                f"; did you mean {', '.join(close)}?" if close else f"; {ctx.command_path} --help lists them"
            )
            raise click.UsageError(f"there is no command {word!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


F = TypeVar("F", bound=Callable[..., Any])


class RuleName(click.types.StringParamType):
    """The id or name of a rule, or the start of ids. The commands check it."""

    name = "rule"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's own signature
        param: click.Parameter,  # noqa: ARG002 - as above
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the ids that begin with `incomplete`, each with its rule's name."""
        from nfstuned.core.rules.catalogue import CATALOGUE  # noqa: PLC0415 - only completion needs every rule

        return [CompletionItem(r.id, help=r.name) for r in CATALOGUE if r.id.startswith(incomplete.upper())]


def format_option(*more: str) -> Callable[[F], F]:
    """Return the option --format with text, json and `more` formats."""
    programs = "for programs" if more else "one JSON document for programs"
    return click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json", *more]),
        default="text",
        show_default=True,
        help=f"Print for people, or {programs}.",
    )


fail_on_option = click.option(
    "--fail-on",
    type=click.Choice([severity.value for severity in Severity]),
    default="warning",
    show_default=True,
    help="The least severity that makes the exit status 1.",
)
since_option = click.option(
    "--since",
    metavar="TIME",
    help="Begin here: 1h ago, today, 14:30, 2026-07-29 14:30 (default: of the journal 24h ago).",
)
mount_option = click.option(
    "--mount", metavar="PATH", help="Only the mount at this mount point; it may be unmounted by now."
)
file_option = click.option(
    "--file",
    type=click.Path(),
    metavar="FILE|-",
    help="Read JSON lines instead of the journal, with the older files next to it; - is stdin.",
)


def require_absolute_path(mount: str | None) -> None:
    """Raise click.BadParameter for a path that cannot be a mount point."""
    if mount is not None and not mount.startswith("/"):
        raise click.BadParameter("give the complete path, as in /mnt/data", param_hint="--mount")
