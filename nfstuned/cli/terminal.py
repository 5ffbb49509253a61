"""The terminal of a command that changes something: the plan, the question and the result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import click

from nfstuned.cli import messages
from nfstuned.host.network.outside import Outside, Questions
from nfstuned.model.change import Change
from nfstuned.model.system import Network
from nfstuned.view.change import apply_document, cells, summary
from nfstuned.view.words import Document, to_json


@dataclass(frozen=True, slots=True)
class Terminal:
    """The terminal for a change (nfstuned.app.change.Dialog)."""

    form: str = "text"
    """ "json" for a document instead of a table."""
    document: Callable[[Sequence[Change]], Document] = apply_document

    note = staticmethod(messages.note)
    unreadable_lines = staticmethod(messages.unreadable_lines)

    def ask(self, outside: Outside, questions: Questions) -> Network:
        """Ask as Outside does, and print the questions that nobody could answer."""
        network, unknown = messages.OutsideWithProgress(outside).ask(questions, offline=False)
        for line in unknown:
            messages.note(line)
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
        if self.form == "json":
            sys.stdout.write(to_json(self.document(changes)) + "\n")
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
