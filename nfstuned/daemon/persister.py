"""Mode persist: another service lets mount.nfs ask for the nconnect of servers that the daemon sees.

The daemon only asks for that service, with a file in memory: the service reads disks and asks name servers.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from nfstuned.core.policy.endpoint import section_name
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Journal, Message, Priority
from nfstuned.host.telemetry.sinks import REQUEST, request_persist
from nfstuned.model.mounts import Snapshot
from nfstuned.model.policy import Policy

PERSIST = "persist"
REMEMBERED = 4096
"""How many names are known at most; where there are more, an old name may count as new."""
REPEAT_S = 3600.0
"""When to ask again for the same servers: the run before may have met silent name servers, or a full disk."""


class Persister:
    """In mode persist: asks for the service when a server or a configuration is new, and once an hour."""

    def __init__(self, root: Root, journal: Journal, clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._journal = journal
        self._clock = clock
        self._repeat_at = 0.0
        """When the same servers are a reason again, by the clock."""
        self._known: frozenset[str] | None = None
        """The servers of the last request; None where a request is due also without a server."""
        self._failed = False

    def start_over(self) -> None:
        """Ask at the next look: a configuration may name other servers and other numbers."""
        self._known = None

    def offer(self, snapshot: Snapshot, policy: Policy | None) -> None:
        """Ask where a look has shown a server that is new, or an old one after REPEAT_S."""
        if policy is None or policy.nconnect_mode != PERSIST:
            return
        names = frozenset(
            section_name(mount.source) for superblock in snapshot.superblocks for mount in superblock.mounts
        )
        due = bool(names) and self._clock() >= self._repeat_at
        if self._known is not None and names <= self._known and not due:
            return
        try:
            request_persist(self._root)
        except OSError as error:
            self._report(error)
            return
        self._failed = False
        self._repeat_at = self._clock() + REPEAT_S
        known = names | (self._known or frozenset())
        self._known = known if len(known) <= REMEMBERED else names

    def _report(self, error: OSError) -> None:
        """Report a failure once; the next look tries again."""
        if self._failed:
            return
        self._failed = True
        file, reason = self._root.path(REQUEST), error.strerror or str(error)
        text = f"{file}: {reason}: nconnect of new servers is not persisted"
        self._journal.send(Message.PERSIST_UNASKED, text, Priority.WARNING, file=file, reason=reason)
