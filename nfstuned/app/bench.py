"""Measuring a mount: files on it, fio's jobs under each setting by turns, and everything put back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone

from nfstuned.app.bench_ground import CannotMeasureError, Ground
from nfstuned.core.bench import plan
from nfstuned.core.bench.compare import figures, spread
from nfstuned.core.bench.own_mount import compared_connections, own_mount, own_mount_obstacle
from nfstuned.core.bench.plan import Step
from nfstuned.core.bench.validity import from_memory, over_fetch, unlike_setting
from nfstuned.core.readahead.evidence import KERNEL_KB
from nfstuned.errors import ParseError
from nfstuned.host.bench import fio, guard
from nfstuned.host.bench.guard import OwnMountError, OwnMounts
from nfstuned.host.read_ahead import Bdi
from nfstuned.model.bench import Bench, BenchSetting, Run, Suite, Varies
from nfstuned.parse.proc.mountinfo import SMB
from nfstuned.parse.proc.mountstats import parse_transports

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


_Show = Callable[[Progress], None]


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


def run_bench(ground: Ground, order: BenchOrder, show: _Show) -> Bench:
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
    began, ended = datetime.now(timezone.utc).replace(microsecond=0), ""
    with (
        _guarded(records, order.folder) as keeper,
        _opened_bdi(ground, compared, order, keeper) as bdi,
    ):
        work = _Work(ground, order, keeper, bdi, _own_mounts(ground, compared, order, keeper), show)
        try:
            work.prepare(compared)
            if compared:
                work.carry_out(plan.steps(order.suite, compared))
            else:
                work.search()
        except (_StopError, OSError) as error:  # the guard may have ended, and the temporary folder be full
            ended = _reason(error) if ground.is_mounted else f"{ground.mount.point} was unmounted"
    left = "; ".join(keeper.end())
    return Bench(
        began,
        ground.measured_mount(program),
        order.suite,
        compared or work.settings(),
        tuple(work.runs),
        "; ".join(part for part in (ended, left and f"not put back: {left}") if part),
        order.rate,
    )


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
    show: _Show
    runs: list[Run] = field(default_factory=list)
    """Without the warm-up."""
    done_s: float = 0.0
    all_s: float = 0.0

    def settings(self) -> tuple[BenchSetting, ...]:
        """Return the read-aheads that a search tried, in their order."""
        tried = {run.setting for run in self.runs}
        each = map(BenchSetting.tried, self._candidates())
        return tuple(setting for setting in each if setting.name in tried)

    def _candidates(self) -> tuple[int, ...]:
        return plan.candidates(self.ground.target_kb, self.ground.superblock.read_ahead_kb)

    def prepare(self, compared: Sequence[BenchSetting]) -> None:
        """Make the folder and the files. Raises _StopError."""
        suite = self.order.suite
        self.all_s = plan.seconds(suite, compared or (AS_IT_IS,) * plan.LIKELY_TRIED)
        self.keeper.folder(self.ground.mount.point)
        inode, problem = guard.ask("make", self.keeper.path, _ANSWER_S)
        if problem:
            raise _StopError(problem)
        self.keeper.files(int(inode))
        for job in suite.layouts:
            step = f"making {job.threads * job.files} files of {job.file_bytes >> 20} MiB"
            problem = fio.lay_out(job, self.keeper.path, self.keeper.program, self._waiting(step))
            if problem:
                raise _StopError(f"the files could not be made: {problem}")
            self.done_s += job.bytes_on_disk / plan.LAYOUT_BYTES_PER_S

    def carry_out(self, steps: Iterable[Step]) -> None:
        """Do the steps. Raises _StopError where a run cannot be made."""
        for step in steps:
            run = self._run(step)
            if step.turn != plan.WARM_UP:
                self.runs.append(run)
            if run.problem and run.delivered is None:
                raise _StopError(f"{run.job}: {run.problem}")

    def search(self) -> None:
        """Look for the best read-ahead of each job. Raises _StopError."""
        for job in self.order.suite.jobs:
            values = self._candidates()
            measured: dict[int, float] = {}
            while (kb := plan.next_value(values, measured)) is not None:
                setting = BenchSetting.tried(kb)
                first = plan.WARM_UP if not measured else 1
                turns = range(first, self.order.suite.repeats + 1)
                self.carry_out(Step(turn, job, setting) for turn in turns)
                middle = spread(figures(self.runs, job.name, setting.name))
                if middle is None:
                    raise _StopError(f"{job.name}: no run counts, see the problems")
                measured[kb] = middle.median

    def _run(self, step: Step) -> Run:
        """Make a run; it has the reason where it does not count though fio reports no error."""
        turn, job, setting = step
        self._apply_setting(setting)
        folder, own = self.keeper.path, self.own if setting.connections is not None else None
        if own is not None:
            folder = own.path + folder.removeprefix(self.ground.mount.point.rstrip("/"))
        waiting = self._waiting(f"{job.name}, {setting.name}, " + (f"run {turn}" if turn else "warm-up"))
        before = self.ground.counters(own)
        delivered, problem = fio.run_job(job, folder, self.order.rate, self.keeper.program, waiting)
        after = self.ground.counters(own)
        self.done_s += plan.run_seconds(job)
        ratio = over_fetch(job, before, after, delivered)
        problem = (
            problem
            or self._changed_by_others(setting)
            or from_memory(ratio)
            or unlike_setting(setting.connections, before, after)
        )
        return Run(job.name, setting.name, turn, delivered, ratio, problem)

    def _changed_by_others(self, setting: BenchSetting) -> str:
        wanted = setting.read_ahead_kb
        if wanted is None or self.bdi is None or (value := _present_kb(self.bdi)) == wanted:
            return ""
        return f"another program set the read-ahead to {value} KiB while it ran"

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
        value = _present_kb(self.bdi)
        if value != setting.read_ahead_kb:
            raise _StopError(f"the kernel made {value} of a read-ahead of {setting.read_ahead_kb} KiB")

    def _waiting(self, step: str) -> Callable[[float], None]:
        return lambda passed_s: self.show(Progress(self.done_s + passed_s, self.all_s, step))


def _present_kb(bdi: Bdi) -> int:
    try:
        return bdi.read_kb()
    except OSError as error:
        raise _StopError(f"{bdi.name}: {error.strerror}") from None
    except ParseError as error:
        raise _StopError(str(error)) from None
