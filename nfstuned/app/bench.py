"""Measuring a mount: files on it, fio's jobs under each setting by turns, and everything put back."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone

from nfstuned.core.bench import plan
from nfstuned.core.bench.compare import BenchError, from_memory, over_fetch
from nfstuned.core.bench.connections import (
    compared_connections,
    own_mount,
    own_mount_obstacle,
    wrong_connections,
)
from nfstuned.core.bench.plan import Step
from nfstuned.core.policy.decision import classify, decide, wanted_connections
from nfstuned.core.samples.rates import make_look
from nfstuned.errors import ParseError
from nfstuned.host.bench import fio
from nfstuned.host.bench.guard import POINT, Guard, new_record, record_folder, restore_leftovers
from nfstuned.host.observe import observe_host, observe_stanzas, observe_stanzas_of, observe_superblocks
from nfstuned.host.read_ahead import Bdi
from nfstuned.host.root import Root
from nfstuned.model.bench import Bench, BenchSetting, MeasuredMount, Run, Suite, Varies
from nfstuned.model.kernel import Mount, MountStats, Stanza, whole_pages
from nfstuned.model.mounts import GENERIC, Snapshot, Superblock
from nfstuned.model.policy import KERNEL_KB, WORKLOAD_MARK, Policy
from nfstuned.model.samples import Counted, Look
from nfstuned.parse.proc.mountstats import parse_transports

_SPACE = 1.05
"""The free space that a measurement demands, as a multiple of the size of its files."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The mount that is measured, in its state before the measurement."""

    root: Root
    folder: str
    """The folder on the mount to measure in."""
    snapshot: Snapshot
    superblock: Superblock
    mount: Mount
    target_kb: int | None
    """The read-ahead of its profile."""
    profile: str
    target_connections: int | None
    """The number of connections that its profile asks for."""

    @classmethod
    def find(cls, root: Root, policy: Policy, folder: str) -> Ground:
        """Return the NFS mount that a folder is on, without touching it. Raises BenchError."""
        snapshot = observe_host(root)
        above = [
            (superblock, mount)
            for superblock in snapshot.superblocks
            for mount in superblock.mounts
            if f"{folder}/".startswith(mount.point.rstrip("/") + "/")
        ]
        if not above:
            raise BenchError(f"{folder} is not on an NFS mount: nfstuned status lists them")
        superblock, mount = max(above, key=lambda pair: len(pair[1].point))
        decision = decide(policy, superblock, snapshot)
        kb = None if decision.kb is None else whole_pages(decision.kb, snapshot.page_kb)
        profile = classify(policy, mount, superblock, snapshot).choice.profile
        count = wanted_connections(profile, mount.options.get("vers"))
        return cls(root, folder, snapshot, superblock, mount, kb, decision.profile, count)

    @property
    def bills(self) -> bool:
        """Whether a provider may charge for the measurement."""
        return self.profile.partition(WORKLOAD_MARK)[0] != GENERIC

    @property
    def is_mounted(self) -> bool:
        """Whether the mount is still there."""
        seen = observe_superblocks(self.root, deep=False).superblocks
        return any(mount.mount_id == self.mount.mount_id for each in seen for mount in each.mounts)

    @property
    def connections(self) -> int | None:
        """The number of the mount's connections; None where the kernel does not show it."""
        return len(self._stats.transports) or None if self._stats else None

    @property
    def round_trip_ms(self) -> float | None:
        """The mean time of the quickest kind of operation so far; None where no operation has ended."""
        ended = [op for op in self._stats.ops.values() if op.ops > 0] if self._stats else []
        return min((op.rtt_ms / op.ops for op in ended), default=None)

    @property
    def _stats(self) -> MountStats | None:
        return self.snapshot.stanza_of(self.mount, self.superblock)

    def measured_mount(self, program: str) -> MeasuredMount:
        """Return the mount and the machine for the document; `program` is fio's version."""
        return MeasuredMount(
            mount_point=self.mount.point,
            source=self.mount.source,
            fstype=self.mount.fstype,
            profile=self.profile,
            options=",".join(self.mount.options.texts),
            read_ahead_kb=self.superblock.read_ahead_kb,
            connections=self.connections,
            kernel=self.snapshot.kernel.text if self.snapshot.kernel else "",
            fio=program,
            host=os.uname().nodename,
        )


def settings(
    ground: Ground, suite: Suite, *, compare: bool, connections: int | None
) -> tuple[BenchSetting, ...]:
    """Return the settings that a job is run under by turns; none where the suite looks for the best.

    `connections` is the number that a single connection is compared with, None for the mount's or its
    profile's. Raises BenchError.
    """
    if suite.varies is Varies.CONNECTIONS:
        if reason := own_mount_obstacle(ground.mount):
            raise BenchError(f"{ground.mount.point} cannot have a second set of connections: {reason}")
        most = compared_connections(connections, ground.connections, ground.target_connections)
        if most is None:
            raise BenchError(
                f"nothing to compare: the mount has one connection, and profile {ground.profile} "
                "recommends no more; --nconnect 4 compares one with four"
            )
        several = BenchSetting(f"{most} connections", connections=most)
        return BenchSetting("1 connection", connections=1), several
    if connections is not None:
        raise BenchError(f"suite {suite.name} does not compare connections: use --suite nconnect")
    if compare:
        if suite.varies is not Varies.READ_AHEAD:
            raise BenchError(
                f"suite {suite.name} bypasses the page cache, and no read-ahead changes it: --compare "
                "works with the suites quick, model-loading and read-ahead"
            )
        target = ground.target_kb
        if target is None or target == KERNEL_KB:
            other = "names no read-ahead" if target is None else "recommends the kernel's read-ahead"
            raise BenchError(
                f"nothing to compare with the kernel's {KERNEL_KB} KiB: profile {ground.profile} {other}; "
                "--suite read-ahead looks for the best"
            )
        of_profile = BenchSetting(f"profile {ground.profile}", target)
        return BenchSetting("kernel's default", KERNEL_KB), of_profile
    return () if suite.searches else (BenchSetting("as it is"),)


def demand_space(ground: Ground, suite: Suite) -> int:
    """Return the mount's free bytes. Raises BenchError where the files have no space, or may not be made."""
    folder, need = ground.folder, int(suite.bytes_on_disk * _SPACE)
    guard = Guard(new_record(record_folder(ground.root)), folder)
    try:
        free = guard.space(folder)
    except OSError as error:
        raise BenchError(_reason(error)) from None
    finally:
        guard.end()
    if free < need:
        reason = f"{need >> 20} MiB are needed and {free >> 20} MiB are free"
        raise BenchError(f"{folder}: {reason}: --size makes the files smaller")
    return free


def run_bench(
    ground: Ground, suite: Suite, compared: Sequence[BenchSetting], show: Callable[[str], object]
) -> Bench:
    """Measure, and put everything back, however it ends; `show` gets the name of each step.

    The runs before an error are in the result, with the reason. Raises BenchError, OSError or ParseError
    before the first run; BenchError also where something interrupts it and not all is put back.
    """
    if compared and compared[0].connections is not None and os.geteuid() != 0:
        raise BenchError(
            f"only root can mount a second time to compare connections: sudo nfstuned bench {ground.folder}"
        )
    program, records = fio.version(), record_folder(ground.root)
    if problem := restore_leftovers(records, ground.folder):
        raise BenchError(f"an earlier measurement is not cleaned up: {problem}")
    began, ended = datetime.now(timezone.utc).replace(microsecond=0), ""
    values = plan.candidates(ground.target_kb, ground.superblock.read_ahead_kb)
    with _opened_bdi(ground, compared) or nullcontext() as bdi:
        guard = Guard(new_record(records), ground.folder)
        work = _Measurement(ground, guard, bdi)
        try:
            work.prepare(compared)
            try:
                work.make_files(suite, show)
                planned = plan.steps(suite, compared)
                for step in planned or plan.search(suite, values, work.runs):
                    turn = f"run {step.turn}" if step.turn else "warm-up"
                    show(f"{step.job.name}, {step.setting.name}, {turn}")
                    work.run(step)
            except (BenchError, OSError, ParseError) as error:  # the guard may have ended
                ended = _reason(error) if ground.is_mounted else f"{ground.mount.point} was unmounted"
        except BaseException as error:
            if left := guard.end():
                raise BenchError(f"{_reason(error)}; not put back: {'; '.join(left)}") from error
            raise
    if left := guard.end():
        ended = "; ".join(filter(None, (ended, f"not put back: {'; '.join(left)}")))
    ran = {run.setting for run in work.runs}
    tried = (setting for setting in map(BenchSetting.tried, values) if setting.name in ran)
    measured = tuple(compared) or tuple(tried)
    return Bench(began, ground.measured_mount(program), suite, measured, tuple(work.runs), ended)


def _reason(error: BaseException) -> str:
    """Return the text of an error, with the file if there is one; ^C has none."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or "interrupted"


def _opened_bdi(ground: Ground, compared: Sequence[BenchSetting]) -> Bdi | None:
    """Return the superblock's read-ahead; None where it stays as it is. Raises BenchError."""
    if compared and all(setting.read_ahead_kb is None for setting in compared):
        return None
    try:
        bdi = Bdi(ground.root, ground.superblock.device)
    except PermissionError:
        raise BenchError(f"only root can set a read-ahead: sudo nfstuned bench {ground.folder}") from None
    except OSError as error:
        raise BenchError(f"{ground.mount.point}: {error.strerror}") from None
    if bdi.inode != ground.superblock.bdi:
        raise BenchError(f"{ground.mount.point} was unmounted")
    return bdi


def _read_ahead(bdi: Bdi, wanted_kb: int | None = None) -> int:
    """Set a read-ahead, if one is wanted, and return its value. Raises BenchError and ParseError."""
    try:
        if wanted_kb is not None:
            bdi.write_kb(wanted_kb)
        return bdi.read_kb()
    except OSError as error:
        raise BenchError(f"{bdi.name}: {error.strerror}") from None


@dataclass(slots=True, eq=False)
class _Measurement:
    """The runs of a measurement, and the changes that they need."""

    ground: Ground
    guard: Guard
    bdi: Bdi | None
    connections: int | None = None
    """Of bench's own mount, in the guard's namespace; None without a mount."""
    runs: list[Run] = field(default_factory=list)
    """Without the warm-up."""

    def prepare(self, compared: Sequence[BenchSetting]) -> None:
        """Have the read-ahead kept, and try each own mount once. Raises BenchError and OSError."""
        if self.bdi is not None:
            self.guard.ask("keep_read_ahead", self.bdi.name, self.bdi.inode, _read_ahead(self.bdi))
        try:
            for setting in compared:
                self._mount(setting.connections)
            self._mount(None)
        except (BenchError, OSError) as error:
            reason = f"{self.ground.mount.point} cannot be mounted a second time: {_reason(error)}"
            raise BenchError(reason) from None

    def make_files(self, suite: Suite, show: Callable[[str], object]) -> None:
        """Make the folder and the files of a suite. Raises BenchError and OSError."""
        self.guard.ask("make", self.guard.folder, self.ground.mount.point)
        for job in suite.layouts:
            show(f"making {job.threads * job.files} files of {job.file_bytes >> 20} MiB")
            if problem := fio.lay_out(job, self.guard.folder, self.guard.run):
                raise BenchError(f"the files could not be made: {problem}")

    def run(self, step: Step) -> None:
        """Make a run; it has the reason where it does not count. Raises BenchError and OSError."""
        turn, job, setting = step
        folder, wanted_kb = self.guard.folder, setting.read_ahead_kb
        self._mount(setting.connections)
        if setting.connections is not None:
            folder = POINT + folder.removeprefix(self.ground.mount.point.rstrip("/"))
        if self.bdi is not None:
            value = _read_ahead(self.bdi, wanted_kb)
            if value != wanted_kb:
                raise BenchError(f"the kernel set the read-ahead to {value} KiB instead of {wanted_kb} KiB")
        before = self._counters()
        delivered, problem = fio.run_job(job, folder, self.guard.run)
        after = self._counters()
        ratio = over_fetch(job, before, after, delivered)
        if not problem and self.bdi is not None:
            value = _read_ahead(self.bdi)
            if value != wanted_kb:
                problem = f"another program set the read-ahead to {value} KiB during the run"
        problem = problem or from_memory(ratio) or wrong_connections(setting.connections, before, after)
        if turn != plan.WARM_UP:
            self.runs.append(Run(job.name, setting.name, turn, delivered, ratio, problem))
        if problem and delivered is None:
            raise BenchError(f"{job.name}: {problem}")

    def _counters(self) -> Look:
        """Return the counters of the mount that the jobs use; a Look without them if they cannot be read."""
        ground, moment = self.ground, (time.time(), time.monotonic())
        if self.connections is None:
            looked = make_look(ground.snapshot, observe_stanzas(ground.root) or (), *moment).superblocks
            return Look(*moment, tuple(each for each in looked if each.device == ground.superblock.device))
        stanza = own_stanza(ground.root, self.guard)
        shown = stanza and Counted("own", None, (stanza.point,), stanza.source, stanza.point, stanza)
        return Look(*moment, (shown,) if shown else ())

    def _mount(self, connections: int | None) -> None:
        """Mount with its own connections, or unmount for None. Raises OSError, and BenchError for others."""
        if connections == self.connections:
            return
        if self.connections is not None:
            self.guard.ask("unmount")
            self.connections = None
        if connections is None:
            return
        self.guard.ask("mount", asdict(own_mount(self.ground.mount, connections)))
        self.connections = connections
        stanza = own_stanza(self.ground.root, self.guard)
        shown: int | str = "an unknown number of"
        with suppress(ParseError):
            shown = len(parse_transports(stanza.transports)) if stanza is not None else shown
        if shown != connections:
            raise BenchError(
                f"with nconnect={connections} it has {shown} connections: it shares another mount's, or "
                "the kernel does not know nconnect"
            )


def own_stanza(root: Root, guard: Guard) -> Stanza | None:
    """Return the counters of bench's own mount; None where they cannot be read."""
    return next((each for each in observe_stanzas_of(root, guard.pid) if each.point == POINT), None)
