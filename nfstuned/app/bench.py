"""Measuring a mount: files on it, fio's jobs under each setting by turns, and everything put back."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from nfstuned.app.bench_ground import CannotMeasureError, Ground, Instruments
from nfstuned.core.bench import plan
from nfstuned.core.bench.compare import NotComparableError, demand_same_jobs, figures, spread
from nfstuned.core.bench.limits import beside, find_limit, from_memory, unlike_setting
from nfstuned.core.bench.own_mount import compared_connections, own_mount, own_mount_obstacle
from nfstuned.core.readahead.evidence import KERNEL_KB
from nfstuned.errors import ParseError
from nfstuned.host.bench import fio, guard, results
from nfstuned.host.bench.guard import OwnMountError, OwnMounts
from nfstuned.host.change.bdi import Bdi
from nfstuned.model.bench import Bench, BenchSetting, BenchStep, Run, Suite, Varies
from nfstuned.parse.bench import parse_bench
from nfstuned.parse.fields import mask_secrets
from nfstuned.parse.proc.mountinfo import SMB
from nfstuned.parse.proc.mountstats import parse_transports

LAST = "last"
"""Instead of a file: the newest document of the same mount and the same jobs."""
_ANSWER_S = 20.0
"""How long a child may take to look at the folder, or to make it."""
_SPACE = 1.05
"""The free space that a measurement demands, as a multiple of the size of its files."""
AS_IT_IS = BenchSetting("as it is")


@dataclass(frozen=True, slots=True)
class BenchOrder:
    """The folder, the suite, and the options of a measurement."""

    folder: str
    suite: Suite
    compare: bool = False
    rate: int | None = None
    """The most bytes a second that the jobs may move, where others use the mount."""
    connections: int | None = None
    """The number of connections that a single connection is compared with.

    None is the mount's own number, or its profile's.
    """


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a measurement is."""

    done_s: float
    all_s: float
    step: str


_Say = Callable[[Progress], None]


def settings(ground: Ground, order: BenchOrder) -> tuple[BenchSetting, ...]:
    """Return the settings that a job is run under by turns; none where the suite looks for the best.

    Raises CannotMeasureError.
    """
    suite = order.suite
    compares_connections = suite.varies is Varies.CONNECTIONS
    if ground.mount.fstype in SMB.types and (order.compare or compares_connections or suite.searches):
        raise CannotMeasureError(
            f"{ground.mount.point} is an SMB mount, whose read-ahead and channels bench does not change: "
            "without --compare the vendors' suites measure the mount as it is"
        )
    if compares_connections:
        return _numbers_of_connections(ground, order)
    if order.connections is not None:
        raise CannotMeasureError(f"suite {suite.name} does not compare connections: --suite nconnect does")
    if order.compare:
        if suite.varies is not Varies.READ_AHEAD:
            raise CannotMeasureError(
                f"suite {suite.name} reads and writes past the page cache, so that no read-ahead can "
                "change it: --compare is for the suites quick, model-loading and read-ahead"
            )
        target = ground.target_kb
        if target is None or target == KERNEL_KB:
            raise CannotMeasureError(
                f"there is nothing to compare: profile {ground.profile} asks for no other read-ahead "
                f"than the kernel's {KERNEL_KB} KiB; --suite read-ahead looks for a better one"
            )
        return (
            BenchSetting("kernel's default", KERNEL_KB),
            BenchSetting(f"profile {ground.profile}", target),
        )
    return () if suite.searches else (AS_IT_IS,)


def _numbers_of_connections(ground: Ground, order: BenchOrder) -> tuple[BenchSetting, ...]:
    if reason := own_mount_obstacle(ground.mount):
        raise CannotMeasureError(f"{ground.mount.point} can have no second set of connections: {reason}")
    most = compared_connections(order.connections, ground.connections, ground.target_connections)
    if most is None:
        raise CannotMeasureError(
            f"there is nothing to compare: the mount has one connection, and profile {ground.profile} asks "
            "for no more; --nconnect 4 compares one with four"
        )
    return (
        BenchSetting("1 connection", connections=1),
        BenchSetting(f"{most} connections", connections=most),
    )


def earlier(
    ground: Ground, file: str, order: BenchOrder, settings: Sequence[BenchSetting], program: str
) -> Bench:
    """Return the earlier measurement of a file, or of LAST; `program` is fio's version.

    `settings` are those of the jobs, none where they are not known yet. Raises NotComparableError, ParseError
    for a damaged document, and OSError.
    """
    suite, subject = order.suite, ground.subject(program)
    if file != LAST:
        before = parse_bench(results.read_document(file), file)
        try:
            demand_same_jobs(before, suite, settings)
        except NotComparableError as error:
            raise NotComparableError(f"{file}: {error}") from None
        return before
    folder, reason = results.result_folder(ground.root), ""
    # A document has no secrets.
    place = mask_secrets(subject.source), mask_secrets(subject.mount_point)
    for path in results.newest(folder):
        try:
            before = parse_bench(results.read_document(path), path)
            if (mask_secrets(before.subject.source), mask_secrets(before.subject.mount_point)) != place:
                continue
            demand_same_jobs(before, suite, settings)
        except NotComparableError as error:
            reason = reason or f" (of {path}: {error})"
        except (OSError, ParseError) as error:
            reason = reason or f" ({error})"
        else:
            if before.runs:
                return before
            reason = reason or f" (of {path}: it ended before any run)"
    about = f"of {subject.mount_point} with these jobs of suite {suite.name}"
    raise NotComparableError(f"{folder} has no measurement {about}{reason}")


def demand_space(folder: str, suite: Suite) -> int:
    """Return the free bytes on the mount.

    Raises CannotMeasureError where a suite's files have no space, or may not be made.
    """
    output, problem = guard.ask("look", folder, _ANSWER_S)
    if problem:
        raise CannotMeasureError(f"{folder}: {problem}")
    known = json.loads(output)
    need, free = int(suite.bytes_on_disk * _SPACE), known["free_bytes"]
    if known["read_only"]:
        raise CannotMeasureError(f"{folder} is mounted read-only: bench has to make files of its own")
    if not known["writable"]:
        raise CannotMeasureError(f"{folder}: this user may not make files there")
    if free < need:
        less = f"{need >> 20} MiB are needed and {free >> 20} MiB are free: --size makes the files smaller"
        raise CannotMeasureError(f"{folder}: {less}")
    return int(free)


def run_bench(ground: Ground, order: BenchOrder, say: _Say) -> Bench:
    """Measure, and put everything back, however it ends.

    The runs before an error are in the result, with the reason. Raises CannotMeasureError, OSError or
    ParseError before the first run; CannotMeasureError also where something interrupts the measurement and
    not all is put back.
    """
    compared = settings(ground, order)
    program = fio.version()
    records = guard.record_folder(ground.root)
    problems = [line for record in guard.leftovers(records, order.folder) if (line := guard.clean_up(record))]
    if problems:
        raise CannotMeasureError(f"an earlier measurement is not cleaned up: {problems[0]}")
    began = time.time()
    bench = Bench(began, ground.subject(program), order.suite, compared, (), rate_bytes_per_s=order.rate)
    with (
        _guarded(records, order.folder) as keeper,
        _opened_bdi(ground, compared, order, keeper) as bdi,
    ):
        own = _own_mounts(ground, compared, order, keeper)
        work = _Work(ground, order, keeper, bdi, own, say)
        try:
            work.prepare(compared)
            runs = work.search() if not compared else work.carry_out(plan.steps(order.suite, compared))
            bench = replace(bench, runs=runs, settings=compared or work.settings())
        except (_StopError, OSError) as error:  # the guard may have ended, and the temporary folder be full
            why = _reason(error) if ground.is_mounted else f"{ground.mount.point} was unmounted"
            bench = replace(bench, runs=work.measured_runs(), settings=compared or work.settings(), ended=why)
    left = "; ".join(keeper.end())
    ended = "; ".join(part for part in (bench.ended, left and f"not put back: {left}") if part)
    last = bench.settings[-1] if compared else None
    runs_of_last = [run for run in bench.runs if last is None or run.step.setting == last]
    readings = {job.name: text for job in order.suite.jobs if (text := find_limit(job, runs_of_last))}
    return replace(bench, ended=ended, readings=readings)


class _StopError(Exception):
    """Why a measurement ends before its time."""


def _reason(error: BaseException) -> str:
    """Return the text of an error, with the file if there is one; ^C has none."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or "interrupted"


@contextmanager
def _guarded(records: str, folder: str) -> Iterator[guard.Guard]:
    """Have a guard, which ends when the block is left by an error or ^C.

    Raises CannotMeasureError where the guard could not put all back then.
    """
    keeper = guard.Guard(records, folder)
    try:
        yield keeper
    except BaseException as error:
        if left := keeper.end():
            raise CannotMeasureError(f"{_reason(error)}; not put back: {'; '.join(left)}") from error
        raise


@contextmanager
def _opened_bdi(
    ground: Ground, compared: Sequence[BenchSetting], order: BenchOrder, keeper: guard.Guard
) -> Iterator[Bdi | None]:
    """Have the superblock's read-ahead open, and its value in the guard's record; None where it stays."""
    if compared and all(setting.read_ahead_kb is None for setting in compared):
        yield None
        return
    try:
        bdi = Bdi(ground.root, ground.superblock.device)
    except PermissionError:
        raise CannotMeasureError(
            f"only root can set a read-ahead: sudo nfstuned bench {order.folder}"
        ) from None
    except OSError as error:
        raise CannotMeasureError(f"{ground.mount.point}: {error.strerror}") from None
    with bdi:
        if bdi.inode != ground.superblock.bdi:
            raise CannotMeasureError(f"{ground.mount.point} was unmounted")
        keeper.read_ahead(bdi, bdi.read_kb())
        yield bdi


def _own_mounts(
    ground: Ground, compared: Sequence[BenchSetting], order: BenchOrder, keeper: guard.Guard
) -> OwnMounts | None:
    """Return the place for mounts of bench's own, each setting tried there once; None where none needs it.

    The mount itself cannot serve: each setting needs its exact number of connections, and a mount that joins
    a transport group gets the connections that the group has.
    """
    wanted = [setting.connections for setting in compared if setting.connections is not None]
    if not wanted:
        return None
    if os.geteuid() != 0:
        raise CannotMeasureError(
            f"only root can mount a second time to compare connections: sudo nfstuned bench {order.folder}"
        )
    try:
        own = OwnMounts(ground.root, keeper)
        for number in wanted:
            _mount_with(own, ground, number)
        own.have(None)
    except OwnMountError as error:
        raise CannotMeasureError(f"{ground.mount.point} cannot be mounted a second time: {error}") from None
    return own


def _mount_with(own: OwnMounts, ground: Ground, number: int) -> None:
    """Have a mount with its own number of connections, and check the number. Raises OwnMountError."""
    own.have(own_mount(ground.mount, number))
    stanza = own.stanza()
    try:
        shown = None if stanza is None else len(parse_transports(stanza.transports))
    except ParseError:
        shown = None
    if shown != number:
        has = "an unknown number of" if shown is None else shown
        raise OwnMountError(
            f"with nconnect={number} it has {has} connections: it shares those of another mount, or the "
            "kernel has no nconnect"
        )


@dataclass(slots=True, eq=False)
class _Work:
    """The runs of a measurement, one after the other."""

    ground: Ground
    order: BenchOrder
    keeper: guard.Guard
    bdi: Bdi | None
    own: OwnMounts | None
    say: _Say
    instruments: Instruments = field(init=False)
    runs: list[Run] = field(default_factory=list)
    done_s: float = 0.0
    all_s: float = 0.0

    def __post_init__(self) -> None:
        self.instruments = Instruments(self.ground)

    def measured_runs(self) -> tuple[Run, ...]:
        """Return the runs without the warm-up, also those that do not count."""
        return tuple(run for run in self.runs if run.step.turn != plan.WARM_UP)

    def settings(self) -> tuple[BenchSetting, ...]:
        """Return the settings that runs were made under, in the order of their values."""
        seen = dict.fromkeys(run.step.setting for run in self.runs)
        return tuple(sorted(seen, key=lambda setting: setting.read_ahead_kb or 0))

    def prepare(self, compared: Sequence[BenchSetting]) -> None:
        """Make the folder and the files. Raises _StopError."""
        suite = self.order.suite
        self.all_s = plan.seconds(suite, compared or (AS_IT_IS,) * plan.LIKELY_TRIED)
        self.keeper.folder(self.ground.mount.point)
        inode, problem = guard.ask("make", self.keeper.path, _ANSWER_S)
        if problem:
            raise _StopError(problem)
        self.keeper.files(int(inode))
        shapes = {(job.threads, job.files, job.file_bytes): job for job in suite.jobs}
        for job in shapes.values():
            step = f"making {job.threads * job.files} files of {job.file_bytes >> 20} MiB"
            waiting = self._waiting(step)
            problem = fio.lay_out(job, self.keeper.path, self.keeper.program, waiting)
            if problem:
                raise _StopError(f"the files could not be made: {problem}")
            self.done_s += plan.layout_seconds(job)

    def carry_out(self, steps: Sequence[BenchStep]) -> tuple[Run, ...]:
        """Do the steps and return all runs so far, without the warm-up.

        Raises _StopError where a run cannot be made.
        """
        for step in steps:
            run = self._run(step)
            self.runs.append(run)
            if run.problem and run.delivered is None:
                raise _StopError(f"{step.job.name}: {run.problem}")
        return self.measured_runs()

    def search(self) -> tuple[Run, ...]:
        """Look for the best read-ahead of each job."""
        for job in self.order.suite.jobs:
            values = plan.candidates(self.ground.target_kb, self.ground.superblock.read_ahead_kb)
            measured: dict[int, float] = {}
            while (kb := plan.next_value(values, measured)) is not None:
                setting = BenchSetting.tried(kb)
                first = plan.WARM_UP if not measured else 1
                turns = range(first, self.order.suite.repeats + 1)
                self.carry_out([BenchStep(turn, job, setting) for turn in turns])
                middle = spread(figures(self.measured_runs(), job, setting))
                if middle is None:
                    raise _StopError(f"{job.name}: no run counts, see the problems")
                measured[kb] = middle.median
        return self.measured_runs()

    def _run(self, step: BenchStep) -> Run:
        self._apply_setting(step.setting)
        job, own = step.job, self.own if step.setting.connections is not None else None
        name = f"{job.name}, {step.setting.name}, " + (f"run {step.turn}" if step.turn else "warm-up")
        before = self.instruments.read(own)
        delivered, problem = fio.run_job(
            job, self._folder(own), self.order.rate, self.keeper.program, self._waiting(name)
        )
        meters = self.instruments.between(before, self.instruments.read(own))
        self.done_s += plan.run_seconds(job)
        run = Run(step, delivered, beside(job, meters, delivered), problem)
        return run if problem else replace(run, problem=self._why_not_counted(run))

    def _folder(self, own: OwnMounts | None) -> str:
        """Return the folder with the files: on the mount, or by way of bench's own."""
        if own is None:
            return self.keeper.path
        return own.path + self.keeper.path.removeprefix(self.ground.mount.point.rstrip("/"))

    def _why_not_counted(self, run: Run) -> str:
        """Return why a run does not count though fio is content; "" where it does."""
        wanted = run.step.setting.read_ahead_kb
        if wanted is not None and self.bdi is not None and (value := self._present_kb(self.bdi)) != wanted:
            return f"another program set the read-ahead to {value} KiB while it ran"
        return from_memory(run) or unlike_setting(run)

    def _apply_setting(self, setting: BenchSetting) -> None:
        if setting.connections is not None and self.own is not None:
            try:
                _mount_with(self.own, self.ground, setting.connections)
            except OwnMountError as error:
                raise _StopError(str(error)) from None
        if setting.read_ahead_kb is None or self.bdi is None:
            return
        try:
            self.bdi.write_kb(setting.read_ahead_kb)
        except OSError as error:
            raise _StopError(f"{self.bdi.name}: {error.strerror}") from None
        value = self._present_kb(self.bdi)
        if value != setting.read_ahead_kb:
            raise _StopError(f"the kernel made {value} of a read-ahead of {setting.read_ahead_kb} KiB")

    @staticmethod
    def _present_kb(bdi: Bdi) -> int:
        try:
            return bdi.read_kb()
        except OSError as error:
            raise _StopError(f"{bdi.name}: {error.strerror}") from None
        except ParseError as error:
            raise _StopError(str(error)) from None

    def _waiting(self, step: str) -> Callable[[float], None]:
        return lambda passed_s: self.say(Progress(self.done_s + passed_s, self.all_s, step))
