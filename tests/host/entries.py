"""The entries of a journal that only a test reads."""

from __future__ import annotations

from nfstuned.host.telemetry.journal import Journal, Message

NAMES = {message.id: message.name for message in Message}


class Entries(list[dict[str, str]]):
    """The fields of all entries; `journal` sends them."""

    def __init__(self) -> None:
        super().__init__()
        self.journal = Journal(self._add)

    def _add(self, *fields: bytes) -> None:
        pairs = (field.decode("utf-8", "surrogateescape").split("=", 1) for field in fields)
        self.append(dict(pairs))

    def of(self, message: Message) -> list[dict[str, str]]:
        return [entry for entry in self if entry["MESSAGE_ID"] == message.id]

    def texts(self, message: Message) -> list[str]:
        return [entry["MESSAGE"] for entry in self.of(message)]

    def names(self) -> list[str]:
        return [NAMES[entry["MESSAGE_ID"]] for entry in self]
