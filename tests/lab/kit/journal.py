"""The guest's journal, entry by entry, from a mark onwards."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from tests.lab.kit.shell import run

Entry = dict[str, str]


@dataclass
class Journal:
    """Entries after the mark, which is where the journal stood when this was made."""

    cursor: str = field(default_factory=lambda: _cursor())

    def mark(self) -> None:
        """Forget the entries until now."""
        self.cursor = _cursor()

    def entries(self, *matches: str) -> list[Entry]:
        """Return the entries since the mark that fit journalctl's matches (`_PID=1`), oldest first."""
        run("journalctl", "--sync")
        text = run("journalctl", "-o", "json", "--all", "--after-cursor", self.cursor, *matches)
        return [_entry(json.loads(line)) for line in text.splitlines()]

    def messages(self, *matches: str) -> list[str]:
        """Return only the entries' messages."""
        return [entry.get("MESSAGE", "") for entry in self.entries("--output-fields=MESSAGE", *matches)]


def _entry(raw: dict[str, object]) -> Entry:
    """Journalctl prints bytes that are no text, and repeated fields, as lists."""
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in raw.items()}


def _cursor() -> str:
    run("journalctl", "--sync")
    text = run("journalctl", "-n", "1", "--show-cursor", "-q", "-o", "cat")
    return text.rpartition("-- cursor: ")[2].strip()
