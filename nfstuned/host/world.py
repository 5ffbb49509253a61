"""The world beyond files, asked live."""

from __future__ import annotations

import time

from nfstuned.host.outside import Questions
from nfstuned.host.root import Root
from nfstuned.model.facts import Network


class LiveOutside:
    """This machine's network."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def ask(self, questions: Questions, *, offline: bool) -> tuple[Network, tuple[str, ...]]:
        """Return nothing yet."""
        del questions, offline
        return Network(), ()

    def pause(self, seconds: float) -> None:
        """Let time pass between two looks."""
        time.sleep(seconds)
