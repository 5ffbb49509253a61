"""What the daemon does about superblocks: at the kernel's event, at udev's, and when it looks at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from nfstuned.core.policy.decision import decide, decide_early, depends_on_implementation
from nfstuned.core.readahead.plan import Contest, changed_by_another, plan_superblock
from nfstuned.core.udev.writers import find_culprit, find_writers
from nfstuned.daemon.numbers import DeviceNumbers
from nfstuned.daemon.reporter import Reporter
from nfstuned.errors import ParseError
from nfstuned.host.change import bdi as bdis
from nfstuned.host.change.bdi import GONE, PAGE_KB, Bdi
from nfstuned.host.change.read_ahead import apply, restore, write
from nfstuned.host.change.state import State
from nfstuned.host.events import Writes
from nfstuned.host.observe import VAST, do_nothing, observe_servers, observe_superblocks, observe_volumes
from nfstuned.host.root import Root
from nfstuned.model.mounts import Decision, Outcome, Result, Snapshot, Superblock
from nfstuned.model.policy import Policy
from nfstuned.model.udev import RuleWriter, UdevEvent
from nfstuned.parse.proc.superblocks import find_volume
from nfstuned.parse.udev.files import rule_texts

DEEP_DELAY_S = 0.3
"""How long a bdi may stay unexplained before other namespaces are searched: most are mounted by then."""
UNNAMED_S = 5.0
"""For how long a superblock waits for a mount to be told by; afterwards its device number has to do.

Under load the pseudo-root of an NFSv4 mount lives for seconds."""


class Tuner:
    """Gives superblocks their read-ahead. Without a policy (its configuration is broken) it only watches."""

    def __init__(self, root: Root, reporter: Reporter, clock: Callable[[], float]) -> None:
        self.policy: Policy | None = None
        # New superblocks come during the first look, too.
        self.snapshot = Snapshot(vast=root.executable(VAST))
        self.must_look = True
        self.blind = False
        """Whether the last look could not read something that values depend on."""
        self._root = root
        self._state = State(root)
        self._reporter = reporter
        self._clock = clock
        self.between: Callable[[], None] = do_nothing
        """Called again and again during a look: new superblocks cannot wait until it ends."""
        self._contests: dict[str, Contest] = {}
        self._numbers = DeviceNumbers()
        self._fights: list[Outcome] = []
        """Contests that are to be told; an outcome that is only planned was given up."""
        self._removed: set[str] = set()
        """What went during the present look, whose snapshot may still have it."""
        self._decided: dict[str, tuple[Superblock, Decision]] = {}
        """What was decided last, by device: the answer to another writer needs no look."""
        self.writes: Writes | None = None
        """Tells who writes later; without it only looks and udev's events find that."""
        self._unplaced: dict[str, int] = {}
        """Bdis that no mount of this namespace explains, with their identity; 0 once they were looked for."""
        self._unnamed: dict[str, tuple[int, float]] = {}
        """Superblocks that have a message and no mount in any namespace: their identity, and since when."""

    def added(self, device: str) -> None:
        """Tune a new superblock before its mount(2) returns.

        Only nfsfs knows it by now; mountinfo will show it when it is mounted. Whatever cannot be decided from
        that waits for mountinfo.
        """
        self._numbers.added(device, self._clock())
        if self.policy is None:
            return
        try:
            with Bdi(self._root, device) as bdi:
                self._tune_early(bdi, self.policy)
        except OSError as error:
            # The pseudo-root that every NFSv4 mount makes and drops again is often gone by now.
            self.must_look |= error.errno not in GONE
        except ParseError as error:
            self._reporter.unreadable(error)
            self.must_look = True

    def removed(self, device: str) -> None:
        """Forget a superblock, but not another that has its device number by now: events may come late."""
        with self._root.faults.block() as faults:
            alive = bdis.identity(self._root, device)
            if faults:
                self.must_look = True
                return
        contest = self._contests.get(device)
        if contest is not None and contest.bdi != alive:
            del self._contests[device]
        decided = self._decided.get(device)
        if decided is not None and decided[0].bdi != alive:
            del self._decided[device]
        if self.writes is not None:
            self.writes.forget(device, alive)
        if self._unplaced.get(device) != alive:
            self._unplaced.pop(device, None)
        if self._unnamed.get(device, (None, 0.0))[0] != alive:
            self._unnamed.pop(device, None)
        self._removed.add(device)
        self._reporter.forget(device, alive)
        with suppress(OSError):
            record = self._state.get(device)
            if record is not None and record.bdi != alive:
                self._state.drop(device)

    def handled(self, device: str, action: str) -> None:
        """Check a superblock for which udev has run its rules."""
        if action == "add":
            self._numbers.handled(device, self._clock())
        self.settled(device)

    def settled(self, device: str) -> None:
        """Check a superblock whose value somebody may have written, and set it again at once.

        A write was seen, or udev's rules have run. Who wrote is told by the next look.
        """
        try:
            with Bdi(self._root, device) as bdi:
                self._answer(bdi)
        except OSError as error:
            self.must_look |= error.errno not in GONE
        except ParseError as error:
            self._reporter.unreadable(error)
            self.must_look = True

    def _answer(self, bdi: Bdi) -> None:
        value, record, contest = bdi.read_kb(), self._state.get(bdi.device), self._contests.get(bdi.device)
        if record is not None and record.bdi != bdi.inode:
            record = None
        if record is not None and (record.undone or value == record.written_kb):
            return
        if contest is not None and contest.bdi == bdi.inode and contest.left:
            return
        known, decision = self._decided.get(bdi.device, (None, None))
        if known is None or decision is None or known.bdi != bdi.inode:
            self.must_look = True
            return
        superblock = replace(known, read_ahead_kb=value, record=record)
        planned = plan_superblock(superblock, decision, PAGE_KB)
        if planned is not None and planned.result is Result.PLANNED:
            self.must_look = True
            self._settle(superblock, decision)

    def look(self, *, deep: bool) -> None:
        """Look at everything and set what is not as it should be; `deep` includes other namespaces."""
        self.must_look = False
        self._removed.clear()
        asking = self.policy is not None and depends_on_implementation(self.policy)
        snapshot = observe_superblocks(self._root, deep=deep, between=self.between, implementations=asking)
        self._root.faults.clear()
        for problem in snapshot.problems:
            self._reporter.unreadable(problem)
        self.blind = bool(snapshot.faults)
        if self.blind:
            # What could not be read is not empty: each superblock keeps what was decided for it.
            self.must_look = True
            return
        self._reporter.forget_unreadable(snapshot.problems)
        self.snapshot = snapshot
        if self.policy is None:
            return
        for seen in snapshot.superblocks:
            self.between()
            if seen.device not in self._removed:
                kept = None if deep or seen.mounts else self._decided_elsewhere(seen)
                superblock, decision = kept or (seen, decide(self.policy, seen, snapshot))
                self._decided[superblock.device] = (superblock, decision)
                self._watch(superblock.device, superblock.bdi)
                self._settle(superblock, decision)
                if superblock.mounts or (deep and self._stays_unnamed(superblock)):
                    self._reporter.tell(superblock, decision)
        self._note_unplaced(deep=deep)
        self._tell_fights()
        self._numbers.forget_old(self._clock())

    @property
    def deep_delay_s(self) -> float | None:
        """In how many seconds to search other namespaces for the mounts of superblocks; None: not at all."""
        if any(self._unplaced.values()):
            return DEEP_DELAY_S
        return UNNAMED_S if self._unnamed else None

    @property
    def contests(self) -> Mapping[str, Contest]:
        """The superblocks whose value another writer changed, by device, until they go or `insist`."""
        return self._contests

    def forget_lost(self) -> None:
        """Drop what is kept of superblocks whose removal went unseen."""
        with self._root.faults.block() as faults:
            alive = bdis.identities(self._root)
            if faults:
                self.must_look = True
                return
        try:
            records = self._state.all()
        except OSError:
            return
        for device, record in records.items():
            if alive.get(device) != record.bdi:
                self.removed(device)

    def tell_faults(self) -> None:
        """Tell what could not be read outside of a look: nothing was made of it."""
        for problem in self._root.faults:
            self._reporter.fault(problem, self._clock())
        self._root.faults.clear()

    def insist(self) -> None:
        """Take up again what was left to another writer: the administrator asked for a fresh start."""
        self._contests.clear()
        self.must_look = True

    def restore(self) -> None:
        """Put back every value, for the daemon's own end: the next start tunes again."""
        for outcome in restore(self._root, self._state):
            if outcome.result is Result.DONE:
                self._reporter.restored(outcome)

    def _tune_early(self, bdi: Bdi, policy: Policy) -> None:
        with self._root.faults.block() as faults:
            volume = find_volume(observe_volumes(self._root), bdi.device)
            servers = observe_servers(self._root) if volume is not None else ()
            if faults:
                self.must_look = True
                return
        if volume is None:
            self._unplaced.setdefault(bdi.device, bdi.inode)
            return
        # Where VAST's own client is installed, any mount may turn out to be its own: only its options tell.
        known = not self.snapshot.vast
        decision = decide_early(policy, volume, servers, (), azure=self.snapshot.azure) if known else None
        if decision is None:
            self.must_look = True
            return
        superblock = Superblock(bdi.device, bdi.inode, bdi.read_kb(), volume=volume)
        self._decided[bdi.device] = (superblock, decision)
        planned = plan_superblock(superblock, decision, PAGE_KB)
        if planned is None:
            return
        record = self._state.get(bdi.device)
        if record is not None and record.bdi == bdi.inode:
            # Announced once more (udevadm trigger): what became of it since, an undo or a contest, counts.
            self.must_look = True
            return
        self._reporter.keep(write(bdi, self._state, planned.action))
        self._watch(bdi.device, bdi.inode)

    def _watch(self, device: str, inode: int | None) -> None:
        if self.writes is None or inode is None:
            return
        try:
            self.writes.watch(device, inode)
        except OSError as error:
            self._reporter.unwatched(error)

    def _settle(self, superblock: Superblock, decision: Decision) -> None:
        if decision.conflict:
            self._reporter.conflict(superblock, decision)
        planned = plan_superblock(superblock, decision, PAGE_KB)
        if planned is None or planned.result is not Result.PLANNED:
            return
        with suppress(OSError):
            # An undo since the record was read is not another writer's work.
            record = self._state.get(superblock.device)
            if record is not None and record.bdi == superblock.bdi and record.undone:
                return
        if changed_by_another(superblock):
            self._contest(superblock, planned)
        else:
            self._reporter.keep(apply(self._root, self._state, planned.action))

    def _contest(self, superblock: Superblock, planned: Outcome) -> None:
        device, inode = superblock.device, planned.action.bdi
        before = self._contests.get(device)
        if before is None or before.bdi != inode:
            before = Contest(inode)
        now = self._clock()
        contest = self._contests[device] = before.again(now, self._numbers.late(device, now))
        if not contest.left:
            self._fights.append(apply(self._root, self._state, planned.action))
        elif not before.left:
            self._fights.append(planned)

    def _tell_fights(self) -> None:
        """Name who changed values, now that all are right: the rules are many, and reading them is slow.

        A superblock whose mount does not show yet has no name to be told by: a later look tells.
        """
        fights, self._fights = self._fights, []
        files: tuple[tuple[str, str], ...] | None = None
        for outcome in fights:
            self.between()
            action = outcome.action
            superblock, decision = self._decided.get(action.device, (None, None))
            if superblock is None or decision is None or superblock.bdi != action.bdi:
                continue
            if not superblock.mounts and self._unplaced.get(action.device):
                self._fights.append(outcome)
                continue
            files = rule_texts(self._root) if files is None else files
            culprit = _culprit(files, action.old_kb)
            # What was not told of it until now came first.
            self._reporter.tell(superblock, decision)
            if outcome.result is Result.PLANNED:
                self._reporter.left(superblock, action, culprit)
            elif outcome.result is Result.DONE:
                self._reporter.contested(superblock, outcome, culprit)
            else:
                self._reporter.keep(outcome)

    def _decided_elsewhere(self, seen: Superblock) -> tuple[Superblock, Decision] | None:
        """Return a superblock with its mounts and its decision as an earlier look had them; None without.

        Mounts of other namespaces are seen by a deep look alone: the least that a superblock without mounts
        may ask for would take back, at each look in between, what the deep look has set.
        """
        known, decision = self._decided.get(seen.device, (None, None))
        if known is None or decision is None or known.bdi != seen.bdi or not known.mounts:
            return None
        return replace(seen, mounts=known.mounts), decision

    def _stays_unnamed(self, superblock: Superblock) -> bool:
        """Return whether no mount of the superblock showed for so long that its device number has to do."""
        bdi, since = self._unnamed.get(superblock.device, (None, 0.0))
        return bdi == superblock.bdi and self._clock() - since >= UNNAMED_S

    def _note_unplaced(self, *, deep: bool) -> None:
        """Keep the list of bdis to look for elsewhere: each is looked for once."""
        placed = {s.device for s in self.snapshot.superblocks if s.mounts}
        homeless = {
            s.device: s.bdi
            for s in self.snapshot.superblocks
            if not s.mounts and s.bdi is not None and s.device not in self._removed
        }
        for device in placed:
            self._unplaced.pop(device, None)
        for device, inode in homeless.items():
            self._unplaced.setdefault(device, inode)
        if deep:
            self._unplaced = dict.fromkeys(self._unplaced, 0)
            known, now = self._unnamed, self._clock()
            self._unnamed = {
                device: known[device] if known.get(device, (None, 0.0))[0] == bdi else (bdi, now)
                for device, bdi in homeless.items()
                if bdi is not None and self._reporter.owes(device, bdi)
            }


def _culprit(files: tuple[tuple[str, str], ...], value_kb: int) -> RuleWriter | None:
    """Return the rule that may be why a value stands there, at either event that bdis have."""
    for event in (UdevEvent(), UdevEvent(action="change")):
        if culprit := find_culprit(find_writers(files, event), value_kb, PAGE_KB):
            return culprit
    return None
