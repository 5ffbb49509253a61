"""What the files of administrators ask for, as it is being collected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from nfstuned.errors import ParseError
from nfstuned.model.intent import AutoMap, Setting
from nfstuned.model.work import Request


@dataclass
class Found:
    """What the files ask for, and what in them could not be understood."""

    requests: list[Request] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    problems: list[ParseError] = field(default_factory=list)
    maps: list[AutoMap] = field(default_factory=list)
    """The automounter's maps whose entries no file has."""
    unread: list[str] = field(default_factory=list)
    """Files of nfs-utils' configuration that are there and could not be read, each with the reason."""

    def add(self, items: Iterable[Request | ParseError]) -> None:
        """Keep requests and errors, each in its place."""
        for item in items:
            if isinstance(item, ParseError):
                self.problems.append(item)
            else:
                self.requests.append(item)


def below(path: str, points: Iterable[str]) -> bool:
    """Return whether a path is below one of the points; "/" does not count."""
    return any(path.startswith(point.rstrip("/") + "/") for point in points if point != "/")
