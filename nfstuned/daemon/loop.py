"""The service's single thread and its loop: events first, then the work that is due; asleep otherwise."""

from __future__ import annotations

import errno
import gc
import os
import select
import signal
import time
from collections.abc import Callable, Container
from contextlib import suppress

from nfstuned import __version__
from nfstuned.core.policy.endpoint import section_name
from nfstuned.core.samples.stalls import FOLLOW_S
from nfstuned.daemon.metrics import Metrics
from nfstuned.daemon.reporter import Reporter
from nfstuned.daemon.sampler import Sampler
from nfstuned.daemon.tuner import Tuner
from nfstuned.host.config import Child, builtin_policy, find_files, start_load
from nfstuned.host.events import EventsLostError, KernelEvents, MountTable, UdevEvents, Writes
from nfstuned.host.process import catch_signals, keep_heap_small, notify, reloading, watchdog_s
from nfstuned.host.read_ahead import State, hold_existing
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Journal, Message, Priority
from nfstuned.host.telemetry.sinks import REQUEST, request_persist
from nfstuned.model.mounts import Snapshot
from nfstuned.model.policy import ConfigError, Policy, UnvalidatedError
from nfstuned.parse.fields import load_secrets

CONFIG_TIMEOUT_S = 60.0
CONFIG_AGAIN_S, CONFIG_AGAIN_MOST_S = 1.0, 300.0
"""How long a configuration that could not be validated waits for the next try: twice as long each time."""
FOREVER_S = 1e6
REST = 5.0
"""After a look the loop rests for this many times as long as it took: a storm of mounts must not make it look
at thousands of mounts for each of them. The kernel's events are served meanwhile."""
REST_MOST_S = 2.0
DEEP_REST, DEEP_REST_MOST_S = 10.0, 60.0
"""The same after a look into other namespaces: any user can give a reason for one, with a mount of FUSE."""
MOST_AT_ONCE = 32
"""The number of new superblocks that are tuned together: the first waits for the events of the others."""
BLIND_S, BLIND_MOST_S = 0.5, 60.0
"""How long a look that could not read something waits for the next: twice as long each time."""
COLLECT_S = 600.0
"""The time between two full collections. Until the next one the interpreter keeps up to 2,000 freed tuples of
each length (Objects/tupleobject.c): the memory would grow for hours."""
PERSIST = "persist"
REMEMBERED = 4096
"""How many names are known at most; where there are more, an old name may count as new."""
REPEAT_S = 3600.0
"""When to ask again for the same servers: the run before may have met silent name servers, or a full disk."""


def next_tick(now: float, *periods_s: float) -> float:
    """Return when the shortest of the periods is over; infinity where all are 0."""
    return now + min((period for period in periods_s if period > 0), default=float("inf"))


class Persister:
    """In mode persist: another service lets mount.nfs ask for the nconnect of servers that the daemon sees.

    The daemon asks for that service when a server or a configuration is new, and once an hour, with a file in
    memory: the service reads disks and asks name servers.
    """

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
        """Ask where the configuration is new, a look has shown a new server, or REPEAT_S have passed."""
        if policy is None or policy.observes or policy.nconnect_mode != PERSIST:
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


class Daemon:
    """The service's loop. `run` returns at SIGTERM or SIGINT.

    Raises OSError where a source of events cannot be had.
    """

    def __init__(self, root: Root, journal: Journal) -> None:
        self._root = root
        self._journal = journal
        self._reporter = Reporter(journal)
        self._tuner = Tuner(root, self._reporter, time.monotonic)
        self._tuner.serve_events = self._drain_kernel
        self._sampler = Sampler(root, journal, self._reporter)
        self._sampler.serve_events = self._drain_kernel
        self._metrics = Metrics(root, (journal, self._reporter, self._tuner, self._sampler))
        self._persister = Persister(root, journal)
        self._stop_signal = ""
        self._config: Child | None = None
        self._config_at = float("inf")
        """When to try again to have the configuration validated."""
        self._config_again_s = CONFIG_AGAIN_S
        self._refused: tuple[str, ...] = ()
        """The reported problems of the configuration, until it is taken, or asked for again."""
        self._look_after = 0.0
        self._deep_after = 0.0
        self._deep_at = float("inf")
        self._blind_s = BLIND_S
        self._events_lost = False
        self._tick_at = float("inf")
        self._collect_at = time.monotonic() + COLLECT_S
        state = State(root)
        state.prepare()
        hold_existing(root, state)
        self._tuner.forget_lost()
        # Every source is opened before the first look: a later change is an event.
        self._kernel = KernelEvents()
        self._udev = UdevEvents()
        try:
            self._tuner.writes = Writes(root)
        except OSError as error:
            self._reporter.unwatched(error)
        self._table = MountTable(root)
        self._signals, self._sender = catch_signals(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        self._poll = select.epoll()
        for source in (self._kernel, self._udev, self._tuner.writes, self._signals):
            if source is not None:
                self._poll.register(source, select.EPOLLIN)
        self._poll.register(self._table, select.EPOLLPRI)

    def run(self) -> int:
        """Serve until a signal ends it; return the exit status."""
        self._guard(self._start_config)
        # An entry that needs the patterns may be about a lack of descriptors, by which they are read.
        self._guard(load_secrets)
        while not self._stop_signal:
            self._guard(self._cycle)
        notify("STOPPING=1")
        policy = self._tuner.policy
        if policy is not None and policy.restore_on_stop:
            self._guard(self._tuner.restore)
        self._journal.send(Message.STOPPED, "stopped", Priority.INFO, reason=self._stop_signal)
        return 0

    def _guard(self, step: Callable[[], object]) -> None:
        """Take a step; an error in it is reported, and the next step starts afresh.

        A tick feeds the watchdog once its look and its sample are done.
        """
        try:
            step()
        except Exception as error:  # noqa: BLE001 - the only place where the daemon outlives its own mistakes
            self._reporter.cycle_failed(error, time.monotonic())
            self._look_after = time.monotonic() + REST_MOST_S
            self._tuner.must_look = True
            time.sleep(0.1)

    def _cycle(self) -> None:
        ready = dict(self._poll.poll(self._timeout()))
        # A signal replaces the child, and the descriptor of the new one may have the same number.
        ended = self._config if self._config is not None and self._config.fileno() in ready else None
        # First of all: where the rest of the cycle fails again and again, the daemon can still be stopped.
        if self._signals.fileno() in ready:
            self._serve_signals()
        self._drain_kernel()
        self._drain_writes(ready)
        if self._table.fileno() in ready:
            self._tuner.must_look = True
        if self._config is not None and (self._config is ended or self._config.overdue()):
            self._finish_config()
        now = time.monotonic()
        if now >= self._config_at:
            self._start_config()
        if now >= self._deep_at:
            self._look(deep=True)
        elif self._tuner.must_look and now >= self._look_after:
            self._look(deep=False)
        if now >= self._tick_at:
            self._tick(now)
        elif now >= self._sampler.stalls.due_s:
            self._follow_requests(now)
        self._tuner.report_faults()

    def _timeout(self) -> float:
        """Return how long to sleep: until the next work is due; -1 for ever."""
        due = [self._tick_at, self._sampler.stalls.due_s, self._deep_at, self._config_at]
        if self._tuner.must_look:
            due.append(self._look_after)
        if self._config is not None:
            due.append(self._config.deadline)
        wait = min(due) - time.monotonic()
        return max(0.0, wait) if wait < FOREVER_S else -1.0

    def _drain_kernel(self) -> None:
        added: list[str] = []
        try:
            while (event := self._kernel.next()) is not None:
                if event.action == "add":
                    added.append(event.name)
                if added and (event.action == "remove" or len(added) == MOST_AT_ONCE):
                    self._tuner.added(*added)
                    added = []
                if event.action == "remove":
                    self._tuner.removed(event.name)
        except EventsLostError:
            self._lose_events()
        if added:
            self._tuner.added(*added)

    def _drain_writes(self, ready: Container[int]) -> None:
        """Check the value of each superblock to which a rule of udev, or anybody else, may have written."""
        writes = self._tuner.writes
        try:
            for device in writes.drain() if writes and writes.fileno() in ready else ():
                self._tuner.may_be_written(device)
                self._drain_kernel()
            for event in self._udev.drain() if self._udev.fileno() in ready else ():
                if event.action != "remove":
                    self._tuner.rules_ran(event.name, event.action)
                    self._drain_kernel()
        except EventsLostError:
            self._lose_events()

    def _lose_events(self) -> None:
        """Look at everything soon; a queue that overflows again before that is the same news."""
        self._tuner.forget_lost()
        self._tuner.must_look = True
        self._deep_at = max(time.monotonic(), self._look_after, self._deep_after)
        if not self._events_lost:
            self._events_lost = True
            self._reporter.events_lost()

    def _look(self, *, deep: bool) -> None:
        started = time.monotonic()
        retry = started + DEEP_REST_MOST_S
        if deep:
            self._deep_at = retry
            self._events_lost = False
        self._tuner.look(deep=deep)
        if deep and self._deep_at == retry:
            self._deep_at = float("inf")  # no event was lost during the look
        self._persister.offer(self._tuner.snapshot, self._tuner.policy)
        ended = time.monotonic()
        took = ended - started
        self._look_after = ended + min(REST * took, REST_MOST_S)
        if deep:
            self._deep_after = ended + min(DEEP_REST * took, DEEP_REST_MOST_S)
        if self._tuner.blind:
            self._look_after = ended + self._blind_s
            self._blind_s = min(2 * self._blind_s, BLIND_MOST_S)
            self._deep_at = self._look_after if deep else self._deep_at
            return
        self._blind_s = BLIND_S
        # Events that were lost during the look may have set it already, without the rest after this look.
        self._deep_at = max(min(self._deep_at, self._tuner.search_at_s), self._deep_after)

    def _tick(self, now: float) -> None:
        """Feed the watchdog, look for values that changed unseen, sample, and free memory."""
        policy = self._tuner.policy
        interval = policy.sample_interval_s if policy is not None else 0.0
        watchdog = watchdog_s(os.environ, os.getpid())
        # First of all: a failure below must not be the last work that is done.
        self._tick_at = next_tick(now, (watchdog or 0.0) / 2, interval)
        self._look(deep=False)
        sampled = policy is not None and interval > 0 and now >= self._sampler.due_at(interval)
        if policy is not None and sampled:
            self._tuner.adapt(self._sampler.sample(self._tuner.snapshot, policy))
        if interval > 0:
            self._tick_at = min(self._tick_at, self._sampler.due_at(interval))
        superblocks = self._tuner.snapshot.superblocks
        tuned = sum(1 for superblock in superblocks if superblock.record is not None)
        config = "" if policy is not None else "; configuration invalid, tuning nothing"
        mounts = "1 NFS superblock" if len(superblocks) == 1 else f"{len(superblocks)} NFS superblocks"
        notify("WATCHDOG=1")
        notify(f"STATUS={mounts}, {tuned} tuned{config}")
        if sampled:
            self._metrics.update()
        if now >= self._collect_at:
            self._collect_at = now + COLLECT_S
            gc.collect()

    def _follow_requests(self, now: float) -> None:
        """Look at waiting requests again before the next sample: a request that waits too long is a stall."""
        # A failure below is not tried again at once.
        self._sampler.stalls.due_s = now + FOLLOW_S
        policy = self._tuner.policy
        if policy is not None and self._sampler.follow_requests(self._tuner.snapshot, policy):
            self._metrics.update()

    def _start_config(self) -> None:
        """Have the configuration validated by a child; without files there is nothing to validate."""
        self._config_at = float("inf")
        self._drop_config()
        policy = None
        try:
            if find_files(self._root):
                self._config = start_load(self._root, CONFIG_TIMEOUT_S)
                self._poll.register(self._config, select.EPOLLIN)
            else:
                policy = builtin_policy()
        except ConfigError as error:
            self._refuse(error)
        except OSError as error:
            self._drop_config()
            self._refuse(UnvalidatedError((f"the configuration cannot be validated: {error}",)))
        if policy is not None:
            self._take(policy)

    def _drop_config(self) -> None:
        """End the child, if there is one."""
        child, self._config = self._config, None
        if child is not None:
            with suppress(OSError):  # it may not have been registered
                self._poll.unregister(child)
            child.kill()

    def _finish_config(self) -> None:
        child, self._config = self._config, None
        if child is None:
            return
        self._poll.unregister(child)
        try:
            self._take(child.finish())
        except ConfigError as error:
            self._refuse(error)

    def _take(self, policy: Policy) -> None:
        self._config_again_s, self._refused = CONFIG_AGAIN_S, ()
        self._tuner.policy = policy
        self._reporter.config_loaded(policy)
        self._tuner.start_over()
        self._persister.start_over()
        self._become_ready()
        if held := self._tuner.held_mounts():
            self._reporter.held(held)
        self._metrics.update()

    def _refuse(self, error: ConfigError) -> None:
        if error.problems != self._refused:
            self._refused = error.problems
            self._reporter.config_invalid(error, in_use=self._tuner.policy is not None)
        if isinstance(error, UnvalidatedError):
            self._config_at = time.monotonic() + self._config_again_s
            self._config_again_s = min(2 * self._config_again_s, CONFIG_AGAIN_MOST_S)
        self._become_ready()

    def _become_ready(self) -> None:
        try:
            self._look(deep=True)
        finally:
            self._tick_at = min(self._tick_at, time.monotonic())
            notify("READY=1")

    def _serve_signals(self) -> None:
        stops = set(self._signals.recv(64)) - {signal.SIGHUP}
        if stops:
            self._stop_signal = signal.Signals(min(stops)).name
            return
        reloading()
        self._config_again_s, self._refused = CONFIG_AGAIN_S, ()
        self._start_config()


REMEDIES = {
    errno.EMFILE: "raise LimitNOFILE= of the unit",
    errno.ENFILE: "raise the sysctl fs.file-max",
    errno.ENOSPC: "make room there",
    errno.EROFS: "make it writable",
}
"""For a start that is refused; systemd tries again after each."""


def serve() -> int:
    """Serve until SIGTERM; return the exit status: 1 when the kernel's events cannot be had."""
    keep_heap_small()
    journal = Journal()
    journal.send(Message.STARTED, f"nfstuned {__version__}", Priority.INFO, version=__version__)
    try:
        daemon = Daemon(Root(), journal)
    except (OSError, ImportError) as error:  # pyudev has errors without a number, and needs libudev
        name, why = getattr(error, "filename", None), getattr(error, "strerror", None) or error
        remedy = REMEDIES.get(getattr(error, "errno", None) or 0, "")
        if not name and remedy == REMEDIES[errno.ENOSPC]:
            remedy = "raise the sysctl fs.epoll.max_user_watches"
        remedy = remedy if os.geteuid() == 0 else "run it as root"
        text = f"cannot start: {name or 'the events of the kernel and of udev'}: {why}"
        text += f"; {remedy}" if remedy else ""
        journal.send(Message.STOPPED, text, Priority.ERROR, reason=text)
        return 1
    # The modules live as long as the process: keep collections away from them. A full collection waits until
    # a quarter more objects live than at the last one: the second counts them without the modules.
    gc.collect()
    gc.freeze()
    gc.collect()
    return daemon.run()
