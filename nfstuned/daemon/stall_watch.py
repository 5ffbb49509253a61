"""Which superblocks wait for their servers: told when it begins and when it ends, and kept for `status`."""

from __future__ import annotations

import math
from typing import NamedTuple

from nfstuned.core.samples.stalls import (
    AGAIN_S,
    Identity,
    RequestWatch,
    again,
    answered,
    follow,
    may_wait,
    moved,
    stalls,
    succeeded,
)
from nfstuned.daemon.reporter import Reporter
from nfstuned.errors import ParseError
from nfstuned.host.root import Root
from nfstuned.host.telemetry.stalls import LATE_S, keep
from nfstuned.model.samples import Counted, Look
from nfstuned.model.status import NOTHING_UNDER_WAY, Requests, Stall, Stalled
from nfstuned.parse.proc.sunrpc import read_requests

RECOVERY_S = 30.0
"""For how long nobody asks again before it is taken that nobody waits: in a server's grace the client asks at
least every 15 s (fs/nfs/nfs4proc.c, NFS4_POLL_RETRY_MAX)."""


RECOVERED_S = 300.0
"""No server's grace is longer: behind a server that answers for so long, though with errors alone, nobody
waits."""


class _Told(NamedTuple):
    stall: Stall
    superblock: Counted
    moved_s: float
    """When an operation of the superblock was last seen to end or to wait, of CLOCK_MONOTONIC."""
    waited_s: float
    """When a request of it was last seen to wait."""


class StallWatch:
    """Follows the requests from look to look. Never raises for want of a file."""

    def __init__(self, root: Root, reporter: Reporter) -> None:
        self._root = root
        self._reporter = reporter
        self._watch = RequestWatch()
        self._told: dict[Identity, _Told] = {}
        self._unread = False
        """That the requests are not understood was told."""
        self.seen_s = 0.0
        """When the last look was, of CLOCK_MONOTONIC."""
        self.due_s = math.inf
        """When to look again before the next sample, of CLOCK_MONOTONIC; infinite where nothing waits."""
        self._fresh_until_s = -math.inf
        """Until when the kept file, which has no stalled superblock, is fresh."""

    def stalled(self, now_s: float) -> Stalled:
        """Return the superblocks that wait, as of the last look."""
        return Stalled(now_s, {identity: told.stall for identity, told in self._told.items()})

    def see(self, look: Look, next_s: float) -> None:
        """Take a look in; `next_s` is when the next comes at the latest, of CLOCK_MONOTONIC."""
        self.seen_s = look.monotonic_s
        before, self._watch = self._watch, follow(self._watch, look, self._requests(look))
        found = stalls(self._watch)
        superblocks = {(superblock.device, superblock.bdi): superblock for superblock in look.superblocks}
        for identity in self._told.keys() - found.keys():
            self._settle(identity, superblocks.get(identity), before, look)
        for identity, stall in found.items():
            known = self._told.get(identity)
            if known is None:
                self._reporter.stalled(superblocks[identity], stall, look)
            since_s = stall.since_s if known is None else known.stall.since_s
            now_s = look.monotonic_s
            self._told[identity] = _Told(stall._replace(since_s=since_s), superblocks[identity], now_s, now_s)
        self.due_s = look.monotonic_s + AGAIN_S if self._told or again(self._watch) else math.inf
        self._keep(look, min(next_s, self.due_s))

    def _settle(self, identity: Identity, now: Counted | None, before: RequestWatch, look: Look) -> None:
        """See whether a superblock whose requests wait no more is well, or its server is in its grace."""
        stall, known, moved_s, waited_s = self._told[identity]
        if now is None:
            why = "unmounted"
        elif not stall.recovering and not answered(now.group, before, look):
            why = "given up"
        elif succeeded(known.stats, now.stats):
            why = "answered"
        else:
            moved_s = look.monotonic_s if moved(known.stats, now.stats) else moved_s
            now_s = look.monotonic_s
            if now_s - moved_s < RECOVERY_S and now_s - waited_s < RECOVERED_S:
                self._told[identity] = _Told(stall._replace(recovering=True), now, moved_s, waited_s)
                return
            why = "answered"
        del self._told[identity]
        self._reporter.stall_ended(known, stall, look, why)

    def _requests(self, look: Look) -> Requests | None:
        if not may_wait(self._watch, look):
            return NOTHING_UNDER_WAY
        try:
            return read_requests(self._root, [superblock.device for superblock in look.superblocks])
        except ParseError as error:
            if not self._unread:
                self._reporter.unreadable(error)
            self._unread = True
            return None

    def _keep(self, look: Look, next_s: float) -> None:
        """Keep the stalled superblocks for other commands; a fresh file without any is not written again."""
        stalled = self.stalled(look.monotonic_s)
        if not stalled.stalls and next_s <= self._fresh_until_s:
            return
        try:
            keep(self._root, stalled, next_s)
            self._fresh_until_s = -math.inf if stalled.stalls else next_s + LATE_S / 2
        except OSError as error:
            why = error.strerror or str(error)
            self._reporter.unreadable(ParseError(error.filename or "/run/nfstuned", 0, why))
