"""The daemon's metrics: counted at each sample, and written for node_exporter and for `nfstuned exporter`."""

from __future__ import annotations

from dataclasses import replace

from nfstuned import __version__
from nfstuned.core.mounts.status import status
from nfstuned.core.samples.totals import add_look
from nfstuned.daemon.reporter import Reporter
from nfstuned.daemon.sampler import Sampler
from nfstuned.daemon.tuner import Tuner
from nfstuned.errors import ParseError
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Journal
from nfstuned.host.telemetry.sinks import EXPORTED, MetricsFile
from nfstuned.model.metrics import Service, Totals
from nfstuned.model.policy import SAMPLE_INTERVAL_S, Policy
from nfstuned.model.samples import Look
from nfstuned.view.metrics import exposition, families, findings_lines

FINDINGS = "run/nfstuned/findings.prom"
"""The findings of nfstuned-check.service."""
EXPORTER = "run/nfstuned-exporter"
"""The runtime directory of nfstuned-exporter.service: it is there while the unit runs."""


class Metrics:
    """Writes the files that the configuration names and that the exporter serves, where it runs.

    A file that cannot be written is reported once and tried again with the next sample; a failure after a
    success is news.
    """

    def __init__(self, root: Root, parts: tuple[Journal, Reporter, Tuner, Sampler]) -> None:
        self._root = root
        self._journal, self._reporter, self._tuner, self._sampler = parts
        self._files: dict[str, MetricsFile] = {}
        """By path: all that were ever wanted; their children have to be asked after."""
        self._failures: dict[str, set[str]] = {}
        """By path: the reasons that were reported since it was last written."""
        self._failed = 0
        self._totals = Totals()
        self._findings: tuple[str, str] = ("", "")
        """The text of FINDINGS, and the part of it that is written."""

    def update(self) -> None:
        """Count the sampler's last look, and write the files."""
        policy, look = self._tuner.policy, self._sampler.last
        busy = self._reap((policy.sample_interval_s if policy is not None else 0.0) or SAMPLE_INTERVAL_S)
        if policy is None or look is None:
            return
        exported = EXPORTED if self._root.exists(EXPORTER) else ""
        wanted = {path for path in (policy.prometheus.textfile, exported) if path}
        if not wanted:
            return
        contests = self._tuner.contests
        counts = {device: contest.count for device, contest in contests.items()}
        self._totals = add_look(
            self._totals, look, counts, policy.prometheus.max_mounts, self._tuner.serve_events
        )
        self._read_findings()
        for path in wanted - busy:
            self._write(path, policy, look)

    def _write(self, path: str, policy: Policy, look: Look) -> None:
        file = self._files.setdefault(path, MetricsFile(self._root, path))
        try:
            file.write(lambda: self._text(policy, look))
        except OSError as error:
            self._report(path, error.strerror or str(error))

    def _reap(self, interval_s: float) -> set[str]:
        """Report how the last writes ended, and return the files that a child still writes.

        A write that still goes on after a whole interval hangs, without samples after the default one. Stalls
        and reloads update the files, too.
        """
        busy = set()
        for path, file in self._files.items():
            wrote, reason = file.writing, file.finished()
            if reason is None:
                busy.add(path)
                if file.age_s >= interval_s:
                    self._report(path, "the last write has not ended: does its disk answer?")
            elif reason:
                self._report(path, reason)
            elif wrote:
                self._failures.pop(path, None)
        return busy

    def _text(self, policy: Policy, look: Look) -> bytes:
        """Return the text of the file. The child calls it: the service has no time for that."""
        contests, snapshot = self._tuner.contests, self._tuner.snapshot
        service = Service(
            version=__version__,
            started=self._journal.since,
            sampled=look.time,
            interval_s=policy.sample_interval_s,
            sampling_cpu_s=self._sampler.all_cost_s,
            policy_valid=self._reporter.config_is_valid,
            messages=dict(self._journal.counts),
            textfile_failures=self._failed,
            left=frozenset(device for device, contest in contests.items() if contest.left),
            stalled=self._sampler.stalled_s,
            effects=self._sampler.reads.effects,
            volumes=self._sampler.volumes,
        )
        devices = {place.device for place in self._totals.present}
        superblocks = tuple(one for one in snapshot.superblocks if one.device in devices)
        rows = status(replace(snapshot, superblocks=superblocks), policy)
        return (exposition(families(self._totals, rows, service)) + self._findings[1]).encode()

    def _read_findings(self) -> None:
        """Take over the last check's findings; not in the child, which has no journal."""
        with self._root.faults.block() as faults:
            text = self._root.read_or_empty(FINDINGS)
            if faults or text == self._findings[0]:
                return
        lines = ""
        try:
            lines = findings_lines(text)
        except ValueError as error:
            self._reporter.unreadable(ParseError("/" + FINDINGS, 0, str(error)))
        self._findings = (text, lines)

    def _report(self, path: str, reason: str) -> None:
        self._failed += 1
        reported = self._failures.setdefault(path, set())
        if reason not in reported:
            reported.add(reason)
            self._reporter.metrics_failed(f"{path}: {reason}")
