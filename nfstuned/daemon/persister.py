"""Mode persist: another service lets mount.nfs ask for the nconnect of servers that the daemon sees.

The daemon only says that there is something new, in memory: that service reads disks and asks name servers.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from nfstuned.core.policy.endpoint import section_name
from nfstuned.host.change.persist import FILE, request_persist
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Journal, Message, Priority
from nfstuned.model.mounts import Snapshot
from nfstuned.model.policy import Policy

PERSIST = "persist"
REMEMBERED = 4096
"""How many names are known at most; where there are more, an old name may be told again."""
AGAIN_S = 3600.0
"""After so long all is told again: the run before may have met silent name servers, or a full disk."""


class Persister:
    """Asks for the service when a server appears, or a configuration, and again after a while.

    Nothing is asked where the mode is another.
    """

    def __init__(self, root: Root, journal: Journal, clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._journal = journal
        self._clock = clock
        self._again_at = 0.0
        """When what was told is told again, by the clock, where there is a server."""
        self._known: frozenset[str] | None = None
        """The servers that were told; None where all is to be told, also without a server."""
        self._troubled = False

    def insist(self) -> None:
        """Tell all again: a configuration may name other servers and other numbers."""
        self._known = None

    def offer(self, snapshot: Snapshot, policy: Policy | None) -> None:
        """Ask where a look has shown a server that is new, or that was told long ago."""
        if policy is None or policy.nconnect_mode != PERSIST:
            return
        names = frozenset(
            section_name(mount.source) for superblock in snapshot.superblocks for mount in superblock.mounts
        )
        due = bool(names) and self._clock() >= self._again_at
        if self._known is not None and names <= self._known and not due:
            return
        try:
            request_persist(self._root)
        except OSError as error:
            self._tell(error)
            return
        self._troubled = False
        self._again_at = self._clock() + AGAIN_S
        known = names | (self._known or frozenset())
        self._known = known if len(known) <= REMEMBERED else names

    def _tell(self, error: OSError) -> None:
        """Say once what is in the way; the next look tries again."""
        if self._troubled:
            return
        self._troubled = True
        file, reason = self._root.path(FILE), error.strerror or str(error)
        self._journal.send(
            Message.PERSIST_UNASKED,
            f"{file}: {reason}: nobody is told of new servers",
            Priority.WARNING,
            file=file,
            reason=reason,
        )
