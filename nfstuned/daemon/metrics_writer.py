"""The daemon's metrics: counted at each sample, written out when somebody asks, served by its loop."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from posixpath import dirname

from nfstuned import __version__
from nfstuned.core.mounts.status import status
from nfstuned.core.samples.totals import count
from nfstuned.daemon.reporter import Reporter
from nfstuned.daemon.sampler import Sampler
from nfstuned.daemon.tuner import Tuner
from nfstuned.errors import ParseError
from nfstuned.host.config import builtin_policy
from nfstuned.host.files.local import demand_local
from nfstuned.host.observe import do_nothing
from nfstuned.host.root import Root
from nfstuned.host.telemetry.exposition import Exposition, MissingError, load
from nfstuned.host.telemetry.journal import Journal
from nfstuned.host.telemetry.scrape import ScrapeServer
from nfstuned.host.telemetry.text_file import TextfileWriter
from nfstuned.model.mounts import Snapshot
from nfstuned.model.policy import Policy, Prometheus
from nfstuned.model.status import StatusRow
from nfstuned.model.totals import Service, Totals
from nfstuned.view.metrics import families

FINDINGS = "run/nfstuned/findings.prom"
"""What nfstuned-check.service leaves for the daemon."""
_AT_A_TIME = 20


class Metrics:
    """Serves what `update` counted. Nothing in it waits: not for a scraper, not for a disk.

    What cannot be had is told once, and tried again with the next sample; it is told anew when it fails after
    it could be had.
    """

    def __init__(self, root: Root, parts: tuple[Journal, Reporter, Tuner, Sampler]) -> None:
        self._root = root
        self._journal, self._reporter, self._tuner, self._sampler = parts
        self._settings = Prometheus()
        self._exposition: Exposition | None = None
        self._server: ScrapeServer | None = None
        self._writer = TextfileWriter()
        self._written = ""
        """Where the last write went."""
        self._writing = False
        self._writes_failed = 0
        self._failures: set[tuple[str, str]] = set()
        self._totals = Totals()
        self._seen: tuple[Snapshot, Policy, Service] | None = None
        self._text: bytes | None = None
        self._findings: tuple[str, bytes] = ("", b"")
        """The text of FINDINGS, and what is served of it."""

    def configure(self, settings: Prometheus) -> None:
        """Give what the configuration asks for, and stop what it does not; what was counted stays."""
        if settings == self._settings:
            return
        self.close()
        self._settings = settings
        self._failures.clear()
        if not settings.wanted:
            return
        try:
            self._exposition = self._exposition or load()
        except MissingError as error:
            self._fail("listen" if settings.listen else "textfile", str(error))

    def fileno(self) -> int:
        """Return what the loop must watch; -1 when nobody can ask."""
        return self._server.fileno() if self._server is not None else -1

    @property
    def deadline(self) -> float:
        """When `serve` is due, of CLOCK_MONOTONIC."""
        return self._server.deadline if self._server is not None else float("inf")

    def serve(self) -> None:
        """Answer scrapers, as far as that does not need to wait."""
        if self._server is not None:
            self._server.serve()

    def update(self) -> None:
        """Count the sampler's last look, and write the file."""
        policy, look = self._tuner.policy, self._sampler.last
        if policy is None or look is None or self._exposition is None or not self._settings.wanted:
            return
        contests = self._tuner.contests
        counts = {device: contest.count for device, contest in contests.items()}
        self._totals = count(self._totals, look, counts, self._settings.max_mounts, self._tuner.between)
        free = self._reap()
        self._read_findings(self._exposition)
        service = Service(
            version=__version__,
            started=self._journal.since,
            sampled=look.time,
            interval_s=policy.sample_interval_s,
            sampling_cpu_s=self._sampler.all_cost_s,
            policy_valid=self._reporter.config_is_valid,
            messages=dict(self._journal.counts),
            textfile_failures=self._writes_failed,
            left=frozenset(device for device, contest in contests.items() if contest.left),
            stalled=self._sampler.stalled_s,
        )
        self._seen = (self._tuner.snapshot, policy, service)
        self._text = None
        self._listen()
        if free:
            self._write()

    def close(self) -> None:
        """Hang up."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def _listen(self) -> None:
        listen = self._settings.listen
        if not listen or self._server is not None:
            return
        path = listen.removeprefix("unix:")
        if path != listen and (why := self._remote(dirname(path))):
            self._fail("listen", f"{listen}: {why}")
            return
        address = listen if path == listen else f"unix:{self._root.path(path[1:])}"
        try:
            self._server = ScrapeServer(address, lambda: self._rendered(self._tuner.between))
        except OSError as error:
            sandboxed = error.errno == errno.EAFNOSUPPORT
            hint = "; the service's sandbox needs nfstuned-metrics.conf, see nfstuned(8)" if sandboxed else ""
            self._fail("listen", f"{listen}: {error.strerror or error}{hint}")
        else:
            self._recovered("listen")

    def _rendered(self, between: Callable[[], None]) -> bytes | None:
        """Return the metrics of the last sample, written out once for all who ask; None before the first."""
        if self._text is None and self._seen is not None and self._exposition is not None:
            self._text = self._render(self._exposition, between)
        return self._text

    def _render(self, exposition: Exposition, between: Callable[[], None]) -> bytes:
        if self._seen is None:
            return b""
        _, _, service = self._seen
        metrics = families(self._totals, self._rows(between), service)
        return exposition.render(metrics, between) + self._findings[1]

    def _rows(self, between: Callable[[], None]) -> list[StatusRow]:
        """Return what is wanted of the superblocks that have metrics, a few at a time."""
        if self._seen is None:
            return []
        snapshot, policy, _ = self._seen
        devices = {place.device for place in self._totals.present}
        shown = tuple(superblock for superblock in snapshot.superblocks if superblock.device in devices)
        rows: list[StatusRow] = []
        for start in range(0, len(shown), _AT_A_TIME):
            part = replace(snapshot, superblocks=shown[start : start + _AT_A_TIME])
            rows.extend(status(part, policy or builtin_policy(), valid=policy is not None))
            between()
        return rows

    def _read_findings(self, exposition: Exposition) -> None:
        """Take over the last check's findings; not in the child that writes the file: it has no journal."""
        with self._root.faults.block() as faults:
            text = self._root.read_or_empty(FINDINGS)
            if faults or text == self._findings[0]:
                return
        shown = b""
        try:
            shown = exposition.findings(text) if text else b""
        except ValueError as error:
            self._reporter.unreadable(ParseError("/" + FINDINGS, 0, str(error)))
        self._findings = (text, shown)

    def _write(self) -> None:
        """Let a child write the file, with its own writing out: this process has no time for a disk."""
        exposition, path = self._exposition, self._settings.textfile
        if exposition is None or not path:
            return
        self._written = path
        if why := self._remote(dirname(path)):
            self._failed_write(why)
            return
        try:
            self._writer.write(
                self._root.path(path[1:]), lambda: self._text or self._render(exposition, do_nothing)
            )
        except OSError as error:
            self._failed_write(error.strerror or str(error))
        else:
            self._writing = True

    def _reap(self) -> bool:
        """See what came of the last write, and whether another may begin.

        A write that still goes on after a whole interval hangs.
        """
        reason = self._writer.finished()
        if reason is None:
            self._failed_write("the last write still goes on: is its disk well?")
            return False
        if reason:
            self._failed_write(reason)
        elif self._writing:
            self._recovered("textfile")
        self._writing = False
        return True

    def _failed_write(self, reason: str) -> None:
        self._writes_failed += 1
        self._fail("textfile", f"{self._written}: {reason}")

    def _fail(self, key: str, reason: str) -> None:
        if (key, reason) not in self._failures:
            self._failures.add((key, reason))
            self._reporter.metrics_failed(key, reason)

    def _recovered(self, key: str) -> None:
        """Forget what was told: it is news again when it comes back."""
        self._failures = {failure for failure in self._failures if failure[0] != key}

    def _remote(self, path: str) -> str:
        """Return why a path may not answer; "" where it is local."""
        try:
            demand_local(self._root, path)
        except OSError as error:
            return error.strerror or str(error)
        return ""
