"""The daemon's work on superblocks, at events, at looks and at samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace

from nfstuned.core.policy.decision import decide, decide_early, depends_on_implementation
from nfstuned.core.policy.plan import (
    Contest,
    changed_by_another,
    plan_read_aheads,
    plan_superblock,
    superblock_name,
)
from nfstuned.core.samples.adapt import bounds_of, link_of, step
from nfstuned.core.samples.evidence import reads_of
from nfstuned.core.udev.writers import find_culprit, find_writers
from nfstuned.daemon.reporter import Reporter
from nfstuned.daemon.watched import UNNAMED_S, WatchedDevice
from nfstuned.errors import ParseError
from nfstuned.host.events import Writes
from nfstuned.host.observe import VAST, do_nothing, observe_servers, observe_superblocks, observe_volumes
from nfstuned.host.read_ahead import (
    GONE,
    PAGE_KB,
    Bdi,
    State,
    apply_action,
    identities,
    identity,
    refused,
    restore,
    write,
)
from nfstuned.host.root import Root
from nfstuned.model.kernel import NfsClient, Volume
from nfstuned.model.mounts import Action, Decision, Hold, Record, Result, Snapshot, Superblock
from nfstuned.model.policy import Policy
from nfstuned.model.samples import Sample
from nfstuned.model.udev import UdevEvent
from nfstuned.parse.proc.mounts import find_volume
from nfstuned.parse.udev_rules import rule_texts


class Tuner:
    """Gives superblocks their read-ahead. Without a policy (its configuration is broken) it only looks."""

    def __init__(self, root: Root, reporter: Reporter, clock: Callable[[], float]) -> None:
        self.policy: Policy | None = None
        # New superblocks come during the first look, too.
        self.snapshot = Snapshot(vast=root.executable(VAST))
        self.must_look = True
        self.blind = False
        """Whether the last look could not read something that values depend on."""
        self.serve_events: Callable[[], None] = do_nothing
        """Called again and again during a look: new superblocks cannot wait until it ends."""
        self.writes: Writes | None = None
        """The kernel's reports of writes; without it only looks and udev's events find other writers."""
        self._root = root
        self._state = State(root)
        self._reporter = reporter
        self._clock = clock
        self._devices: dict[str, WatchedDevice] = {}
        self._searched_s = float("-inf")
        """When the last look into other namespaces began."""
        self._may_have_gone = False
        """Whether a superblock may have gone: its bdi could not be looked up."""

    def added(self, *devices: str) -> None:
        """Tune new superblocks, each before its mount(2) returns.

        Only nfsfs knows them by now; mountinfo will show them when they are mounted. A decision that takes
        more waits for mountinfo. nfsfs is read once for all of them, as it has a row for each superblock.
        """
        for device in devices:
            watched = self._watched(device)
            watched.backlog.add(self._clock())
            watched.had_event = True
        if self.policy is None:
            return
        with ExitStack() as opened:
            bdis: list[Bdi] = []
            for device in devices:
                try:
                    bdis.append(opened.enter_context(Bdi(self._root, device)))
                except OSError as error:  # noqa: PERF203 - a handful
                    self._refused(error)
            if not bdis:
                return
            with self._root.faults.block() as faults:
                volumes, servers = observe_volumes(self._root), observe_servers(self._root)
                self.must_look |= bool(faults)
            for bdi in bdis if not faults else ():
                try:
                    self._tune_early(bdi, find_volume(volumes, bdi.device), servers)
                except (OSError, ParseError) as error:  # noqa: PERF203 - a handful
                    self._refused(error)

    def removed(self, device: str) -> None:
        """Forget a superblock, but not another that has its device number by now: events may come late."""
        with self._root.faults.block() as faults:
            alive = identity(self._root, device)
            if faults:
                self.must_look = self._may_have_gone = True
                return
        watched = self._watched(device)
        watched.had_event = True
        if watched.bdi != alive:
            self._devices[device] = watched.successor(None)
        if self.writes is not None:
            self.writes.forget(device, alive)
        with suppress(OSError):
            record = self._state.get(device)
            if record is not None and record.bdi != alive:
                self._state.drop(device)

    def rules_ran(self, device: str, action: str) -> None:
        """Check a superblock for which udev has run its rules."""
        if action == "add":
            self._watched(device).backlog.remove_oldest(self._clock())
        # Where writes are watched, a rule's write counts already, and most rules write nothing.
        self._check(device, is_write=self.writes is None)

    def may_be_written(self, device: str) -> None:
        """Check a superblock after somebody may have written its value, and set it again at once.

        A write was seen. The next look reports who wrote.
        """
        self._check(device, is_write=True)

    def _check(self, device: str, *, is_write: bool) -> None:
        try:
            with Bdi(self._root, device) as bdi:
                self._set_again(bdi, is_write=is_write)
        except (OSError, ParseError) as error:
            self._refused(error)

    def look(self, *, deep: bool) -> None:
        """Look at everything and set each value that is not right; `deep` includes other namespaces."""
        self.must_look = False
        if self._may_have_gone:
            self._may_have_gone = False
            self.forget_lost()
        now = self._clock()
        self._devices = {name: each for name, each in self._devices.items() if not each.is_forgettable(now)}
        for watched in self._devices.values():
            watched.had_event = False
        by_server = self.policy is not None and depends_on_implementation(self.policy)
        snapshot = observe_superblocks(
            self._root, deep=deep, between=self.serve_events, implementations=by_server
        )
        self._root.faults.clear()
        self._reporter.unreadable(*snapshot.problems)
        self.blind = bool(snapshot.faults)
        if self.blind:
            # A file that could not be read is not empty: each superblock keeps its decision.
            self.must_look = True
            return
        self._reporter.forget_unreadable(snapshot.problems)
        self.snapshot = snapshot
        if self.policy is None:
            return
        for superblock in snapshot.superblocks:
            self.serve_events()
            device, bdi = superblock.device, superblock.bdi
            known = self._watched(device)
            # An event since the look began knows better which bdi there is.
            if bdi is not None and (bdi == known.bdi or not known.had_event):
                self._take(self._at(device, bdi), superblock, self.policy, now, deep=deep)
        if deep:
            self._searched_s = now
        self._report_contests()

    @property
    def search_at_s(self) -> float:
        """When to search other namespaces for the mounts of superblocks, by the clock; infinity: never."""
        watched = self._devices.values()
        return min((each.search_at_s(self._searched_s) for each in watched), default=float("inf"))

    @property
    def contests(self) -> Mapping[str, Contest]:
        """By device: the contests with other writers, until the superblock goes or `start_over`."""
        return {device: watched.contest for device, watched in self._devices.items() if watched.contest.count}

    def held_mounts(self) -> tuple[str, ...]:
        """Return the mounts from before the installation that do not have their profile's value."""
        held = tuple(
            superblock
            for superblock in self.snapshot.superblocks
            if superblock.record is not None and superblock.record.hold is Hold.EXISTING
        )
        if self.policy is None or not held:
            return ()
        outcomes = plan_read_aheads(replace(self.snapshot, superblocks=held), self.policy)
        return tuple(outcome.action.target for outcome in outcomes)

    def forget_lost(self) -> None:
        """Drop the state and the records of superblocks that were removed unseen."""
        with self._root.faults.block() as faults:
            alive = identities(self._root)
            if faults:
                self.must_look = self._may_have_gone = True
                return
        known = {device: watched.bdi for device, watched in self._devices.items() if watched.bdi is not None}
        with suppress(OSError):
            known |= {device: record.bdi for device, record in self._state.all().items()}
        for device, bdi in known.items():
            if alive.get(device) != bdi:
                self.removed(device)

    def adapt(self, samples: Iterable[Sample]) -> None:
        """Move read-aheads to the use that the reads of an interval make of them, each by a step at most."""
        for sample in () if self.blind else samples:
            self.serve_events()
            watched = self._devices.get(sample.device)
            if watched is None or not sample.server_read_bytes_per_s:
                continue
            if watched.decided is None:
                continue
            if not watched.contest.left:
                self._adapt(watched, *watched.decided, sample)

    def _adapt(
        self, watched: WatchedDevice, superblock: Superblock, decision: Decision, sample: Sample
    ) -> None:
        reads, kb, bdi = reads_of(sample), superblock.read_ahead_kb, superblock.bdi
        if reads is None or self.policy is None or self.policy.observes or bdi is None or bdi != watched.bdi:
            return
        bounds = bounds_of(superblock, decision, PAGE_KB)
        if bounds is None or kb is None or kb != reads.read_ahead_kb:
            return
        memory, change = step(watched.memory, reads, bounds, link_of(sample))
        if change is None:
            watched.memory = memory
            return
        try:
            # An undo since the record was read is the administrator's word.
            record = self._state.get(superblock.device)
            if record != superblock.record:
                return
            record = record or Record(superblock.device, bdi, kb, kb)
            record = record._replace(adapted_kb=bounds.adapted(change.kb))
            self._state.put(record)
        except OSError as error:
            name = superblock_name(superblock)
            action = Action("read-ahead", superblock.device, bdi, name, kb, change.kb, change.why)
            watched.add_change(refused(action, error))
            return
        watched.memory = memory
        superblock = superblock._replace(record=record)
        decision = decide(self.policy, superblock, self.snapshot)
        planned = plan_superblock(superblock, decision, PAGE_KB)
        if planned is not None and planned.result is Result.PLANNED:
            watched.decided = (superblock, decision)
            outcome = apply_action(self._root, self._state, planned.action)
            if outcome.result is Result.DONE:
                self._reporter.adapted(superblock, decision, outcome.action, change.why)
            else:
                watched.add_change(outcome)

    def report_faults(self) -> None:
        """Report the files that could not be read outside of a look: nothing was made of them."""
        for problem in self._root.faults:
            self._reporter.fault(problem, self._clock())
        self._root.faults.clear()

    def start_over(self) -> None:
        """Take up superblocks that were left to another writer: the administrator asked for a fresh start."""
        for watched in self._devices.values():
            watched.contest = Contest()
        self.must_look = True

    def restore(self) -> None:
        """Put back every value, for the daemon's own end: the next start tunes again."""
        for outcome in restore(self._root, self._state):
            if outcome.result is not Result.SKIPPED:
                self._reporter.restored(outcome)

    def _watched(self, device: str) -> WatchedDevice:
        watched = self._devices.get(device)
        if watched is None:
            watched = self._devices[device] = WatchedDevice(device)
        return watched

    def _at(self, device: str, bdi: int) -> WatchedDevice:
        watched = self._devices[device] = self._watched(device).successor(bdi)
        return watched

    def _refused(self, error: OSError | ParseError) -> None:
        """Where work on a bdi fails, look at everything soon, unless the bdi is gone."""
        if isinstance(error, ParseError):
            self._reporter.unreadable(error)
            self.must_look = True
        else:
            # The pseudo-root that every NFSv4 mount makes and drops again is often gone by now.
            self.must_look |= error.errno not in GONE

    def _tune_early(self, bdi: Bdi, volume: Volume | None, servers: tuple[NfsClient, ...]) -> None:
        watched = self._at(bdi.device, bdi.inode)
        if volume is None:
            watched.note_unnamed(self._clock())
            # The next look plans the search for it.
            self.must_look = True
            return
        # Where VAST's own client is installed, any mount may turn out to be its own: its options decide.
        decision = None
        if self.policy is not None and not self.snapshot.vast:
            decision = decide_early(self.policy, volume, servers, (), azure=self.snapshot.azure)
        if decision is None:
            self.must_look = True
            return
        record = self._state.get(bdi.device)
        if record is not None and record.bdi == bdi.inode:
            # Announced once more (udevadm trigger): an undo, a contest or its reads since then count.
            self.must_look = True
            return
        superblock = Superblock(bdi.device, bdi.inode, bdi.read_kb(), volume=volume)
        watched.decided = (superblock, decision)
        planned = plan_superblock(superblock, decision, PAGE_KB)
        if planned is None:
            return
        if self.policy is not None and self.policy.observes:
            self.must_look = True
            return
        watched.add_change(write(bdi, self._state, planned.action))
        self._watch_writes(watched)

    def _set_again(self, bdi: Bdi, *, is_write: bool) -> None:
        value, record, watched = bdi.read_kb(), self._state.get(bdi.device), self._devices.get(bdi.device)
        if record is not None and record.bdi != bdi.inode:
            record = None
        if record is not None and (record.hold or value == record.written_kb):
            if watched is not None and watched.bdi == bdi.inode:
                watched.contest = watched.contest.after(self._clock())
            return
        if watched is None or watched.bdi != bdi.inode or watched.decided is None:
            self.must_look = True
            return
        if watched.contest.left:
            contest = watched.contest
            watched.contest = contest.continued(self._clock()) if is_write else contest.lasting()
            return
        superblock, decision = watched.decided
        superblock = superblock._replace(read_ahead_kb=value, record=record)
        planned = plan_superblock(superblock, decision, PAGE_KB)
        if planned is not None and planned.result is Result.PLANNED:
            self.must_look = True
            self._settle(watched, superblock, decision)

    def _take(
        self, watched: WatchedDevice, superblock: Superblock, policy: Policy, now: float, *, deep: bool
    ) -> None:
        """Decide about a superblock that a look has seen, set its value and report that.

        `now` is the time at which the look began.
        """
        known = watched.decided[0] if watched.decided is not None else None
        is_named = bool(superblock.mounts)
        if known is not None and known.mounts and not (superblock.mounts or deep):
            # Only a deep look sees mounts of other namespaces. Without them decide() takes the least value
            # that the superblock may ask for, and each look would undo the deep look's value.
            superblock = superblock._replace(mounts=known.mounts)
            # A mount of the host's own is gone: its value stays until a search shows which mounts count now.
            is_named = known.is_hidden
        if is_named:
            watched.unnamed_since_s = None
        else:
            watched.note_unnamed(now)
        decision = decide(policy, superblock, self.snapshot)
        watched.decided = (superblock, decision)
        self._watch_writes(watched)
        contest = watched.contest
        if contest.left:
            # The other writer may have put the value back, as bench does, or a new decision agrees with it.
            is_back = not changed_by_another(superblock) or superblock.read_ahead_kb == decision.target_kb
            watched.contest = contest.after(now) if is_back else contest.lasting()
        self._settle(watched, superblock, decision)
        since = watched.unnamed_since_s
        if since is None or (deep and now - since >= UNNAMED_S):
            self._report_change(watched)

    def _watch_writes(self, watched: WatchedDevice) -> None:
        if self.writes is None or watched.bdi is None:
            return
        try:
            self.writes.watch(watched.device, watched.bdi)
        except OSError as error:
            self._reporter.unwatched(error)

    def _settle(self, watched: WatchedDevice, superblock: Superblock, decision: Decision) -> None:
        if decision.conflict and watched.conflict != decision.why:
            watched.conflict = decision.why
            self._reporter.conflict(superblock, decision)
        planned = plan_superblock(superblock, decision, PAGE_KB)
        if planned is None or planned.result is not Result.PLANNED:
            watched.refusal = None
            return
        if self.policy is not None and self.policy.observes:
            if planned.action != watched.wanted:
                watched.wanted = planned.action
                watched.add_change(planned)
            return
        with suppress(OSError):
            # An undo since the record was read is not another writer's work.
            record = self._state.get(superblock.device)
            if record is not None and record.bdi == superblock.bdi and record.hold:
                return
        if not changed_by_another(superblock):
            watched.add_change(apply_action(self._root, self._state, planned.action))
            return
        now, before = self._clock(), watched.contest
        if before.left:
            return
        watched.contest = before.continued(now, watched.backlog.late_rules(now))
        if not watched.contest.left:
            watched.contested.append(apply_action(self._root, self._state, planned.action))
        else:
            watched.contested.append(planned)

    def _report_change(self, watched: WatchedDevice) -> None:
        if watched.decided is not None and (change := watched.take_change()) is not None:
            self._reporter.changed(*watched.decided, change)

    def _report_contests(self) -> None:
        """Name who changed values, now that all are right: the rules are many, and reading them is slow.

        A superblock has no name before its mount shows: a later look reports it.
        """
        texts: tuple[tuple[str, str], ...] | None = None
        for watched in list(self._devices.values()):
            if not watched.contested or watched.decided is None:
                continue
            superblock = watched.decided[0]
            if not superblock.mounts and not watched.is_searched(self._searched_s):
                continue
            texts = rule_texts(self._root) if texts is None else texts
            outcomes, watched.contested = watched.contested, []
            for outcome in outcomes:
                self.serve_events()
                # The rule may have acted at either event that bdis have.
                events = (UdevEvent(), UdevEvent(action="change"))
                suspects = (find_writers(texts, event) for event in events)
                culprits = (find_culprit(each, outcome.action.old_kb, PAGE_KB) for each in suspects)
                writer = next(filter(None, culprits), None)
                # A change that is not reported yet came first.
                self._report_change(watched)
                if outcome.result is Result.PLANNED:
                    self._reporter.left(superblock, outcome.action, writer)
                elif outcome.result is Result.DONE:
                    self._reporter.contested(superblock, outcome.action, writer)
                else:
                    watched.add_change(outcome)
