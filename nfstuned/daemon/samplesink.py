"""Samples as JSON lines in a file: what fails is told once, and tried again with the next samples."""

from __future__ import annotations

from collections.abc import Sequence

from nfstuned.core.samples import to_line
from nfstuned.host.journal import Journal, Message, Priority
from nfstuned.host.root import Root
from nfstuned.host.samplefile import append
from nfstuned.model.policy import Policy
from nfstuned.model.samplefile import Target
from nfstuned.model.samples import Sample


class SampleSink:
    """Appends samples to the policy's file, where it names one. Never raises for want of a disk."""

    def __init__(self, root: Root, journal: Journal) -> None:
        self._root = root
        self._journal = journal
        self._told: tuple[str, str] | None = None
        """The file and the reason of the failure that lasts."""
        self._lost = 0

    def write(self, samples: Sequence[Sample], policy: Policy) -> None:
        """Append the samples; without any, the file is not touched."""
        file = policy.sample_file
        if not file:
            self._told, self._lost = None, 0
        if not file or not samples:
            return
        target = Target(file, policy.sample_file_bytes, policy.sample_files_kept)
        done = append(self._root, target, [to_line(sample) for sample in samples])
        if done.reason:
            self._failed(file, done.reason, len(samples) - done.lines)
        elif self._told is not None:
            self._back(file)

    def _failed(self, file: str, reason: str, lost: int) -> None:
        if self._told is None or self._told[0] != file:
            self._lost = 0
        self._lost += lost
        if self._told != (file, reason):
            self._told = (file, reason)
            text = f"{file}: samples cannot be written: {reason}; they are in the journal only"
            self._journal.send(Message.SAMPLES_UNWRITTEN, text, Priority.WARNING, file=file, reason=reason)

    def _back(self, file: str) -> None:
        lost = self._lost if self._told is not None and self._told[0] == file else 0
        self._told, self._lost = None, 0
        text = f"{file}: samples are written again, {lost} are not in it"
        self._journal.send(Message.SAMPLES_WRITTEN, text, Priority.NOTICE, file=file, lost=lost)
