"""What the daemon tells the journal: each change once, under the name of the mount it is about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from nfstuned.core.readahead.plan import superblock_name
from nfstuned.core.samples.stalls import server
from nfstuned.core.udev.writers import describe
from nfstuned.errors import ConfigError, ParseError
from nfstuned.host.telemetry.journal import Journal, Message, Priority
from nfstuned.model.mounts import Action, Decision, Outcome, Result, Superblock
from nfstuned.model.policy import Policy
from nfstuned.model.samples import Counted, Look
from nfstuned.model.status import Stall
from nfstuned.model.udev import RuleWriter

REMEMBERED = 200
STALL_ENDS = {
    "answered": "answers again",
    "given up": "nobody waits any more",
    "unmounted": "unmounted while it was stalled",
}
FORGOTTEN_S = 3600.0
"""A fault that was not met for so long is news when it comes again."""


class Reporter:
    """Sends the daemon's messages.

    A change made at the kernel's event is told when its mount shows: until then it has no name, and the
    pseudo-roots of NFSv4 never get a name.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.config_is_valid = False
        """The newest configuration is in use."""
        self._unwatched_told = False
        self._untold: dict[str, Outcome] = {}
        self._unreadable: dict[str, None] = {}
        self._faults: dict[str, float] = {}
        """What could not be read outside of looks, and when that was met last."""
        self._conflicts: dict[str, tuple[int | None, str]] = {}

    def keep(self, outcome: Outcome) -> None:
        """Remember a change until its mount shows. Two changes of a superblock are told together."""
        if outcome.result is Result.SKIPPED:
            return
        device = outcome.action.device
        earlier = self._untold.get(device)
        if earlier is not None and earlier.action.bdi == outcome.action.bdi and earlier.result is Result.DONE:
            outcome = replace(outcome, action=replace(outcome.action, old_kb=earlier.action.old_kb))
        self._untold[device] = outcome

    def forget(self, device: str, alive: int | None) -> None:
        """Drop what was not told of a superblock that is gone; `alive` is the bdi that has its number now."""
        outcome = self._untold.get(device)
        if outcome is not None and outcome.action.bdi != alive:
            del self._untold[device]
        conflict = self._conflicts.get(device)
        if conflict is not None and conflict[0] != alive:
            del self._conflicts[device]

    def owes(self, device: str, bdi: int) -> bool:
        """Return whether a change of the superblock was not told yet."""
        outcome = self._untold.get(device)
        return outcome is not None and outcome.action.bdi == bdi

    def tell(self, superblock: Superblock, decision: Decision) -> None:
        """Tell what was done to a superblock whose mounts are known now."""
        outcome = self._untold.get(superblock.device)
        if outcome is None or outcome.action.bdi != superblock.bdi:
            # A look that began before this bdi was there knows its mount, not the bdi: the next look tells.
            return
        del self._untold[superblock.device]
        fields = _fields(superblock, outcome.action, decision)
        action, name = outcome.action, superblock_name(superblock)
        if outcome.result is Result.FAILED:
            text = f"{name}: read-ahead of {action.new_kb} KiB refused: {outcome.reason}"
            file = f"/sys/class/bdi/{superblock.device}/read_ahead_kb"
            self._journal.send(
                Message.READ_AHEAD_FAILED, text, Priority.ERROR, reason=outcome.reason, file=file, **fields
            )
            return
        text = f"{name}: read-ahead {action.old_kb} -> {action.new_kb} KiB ({decision.why})"
        self._journal.send(Message.READ_AHEAD_SET, text, Priority.INFO, reason=decision.why, **fields)

    def conflict(self, superblock: Superblock, decision: Decision) -> None:
        """Tell once that mounts of a superblock ask for different values."""
        if self._conflicts.get(superblock.device) == (superblock.bdi, decision.why):
            return
        self._conflicts[superblock.device] = (superblock.bdi, decision.why)
        mount = superblock.mounts[0]
        self._journal.send(
            Message.POLICY_CONFLICT,
            f"{mount.point}: {decision.why}",
            Priority.WARNING,
            device=superblock.device,
            mount_point=mount.point,
            source=mount.source,
            profile=decision.profile,
            new_kb=decision.kb,
            reason=decision.why,
        )

    def contested(self, superblock: Superblock, outcome: Outcome, writer: RuleWriter | None) -> None:
        """Tell that another writer's value was replaced."""
        action = outcome.action
        text = (
            f"{superblock_name(superblock)}: another writer changed the read-ahead to {action.old_kb} KiB, "
            f"set to {action.new_kb} again{_by(writer)}"
        )
        self._journal.send(
            Message.READ_AHEAD_CONTESTED,
            text,
            Priority.NOTICE,
            writer=writer and writer.file,
            **_fields(superblock, action),
        )

    def left(self, superblock: Superblock, action: Action, writer: RuleWriter | None) -> None:
        """Tell that a superblock is left to another writer."""
        text = (
            f"{superblock_name(superblock)}: read-ahead left at {action.old_kb} KiB, "
            f"another writer keeps changing it{_by(writer)}"
        )
        self._journal.send(
            Message.READ_AHEAD_LEFT,
            text,
            Priority.WARNING,
            writer=writer and writer.file,
            **_fields(superblock, action),
        )

    def restored(self, outcome: Outcome) -> None:
        """Tell that a value was put back."""
        action = outcome.action
        text = f"{action.target}: read-ahead {action.old_kb} -> {action.new_kb} KiB ({outcome.reason})"
        self._journal.send(
            Message.READ_AHEAD_RESTORED,
            text,
            Priority.INFO,
            device=action.device,
            old_kb=action.old_kb,
            new_kb=action.new_kb,
            reason=outcome.reason,
        )

    def unreadable(self, error: ParseError) -> None:
        """Tell once that a line of a kernel file was not understood."""
        if str(error) in self._unreadable:
            return
        if len(self._unreadable) >= REMEMBERED:
            self._unreadable.clear()
        self._unreadable[str(error)] = None
        self._send_unreadable(error)

    def _send_unreadable(self, error: ParseError) -> None:
        self._journal.send(
            Message.UNREADABLE, str(error), Priority.WARNING, file=error.file, reason=error.message
        )

    def forget_unreadable(self, still: Iterable[ParseError]) -> None:
        """Tell again, when it comes again, of all that was read by now; `still` are the problems left."""
        self._unreadable = dict.fromkeys(map(str, still))

    def fault(self, error: ParseError, now_s: float) -> None:
        """Tell once that a file could not be read."""
        met_s = self._faults.get(str(error))
        if len(self._faults) >= REMEMBERED:
            self._faults.clear()
        self._faults[str(error)] = now_s
        if met_s is None or now_s - met_s >= FORGOTTEN_S:
            self._send_unreadable(error)

    def unwatched(self, error: OSError) -> None:
        """Tell once that another writer of some read-ahead is not noticed at once."""
        if self._unwatched_told:
            return
        self._unwatched_told = True
        self._journal.send(
            Message.UNWATCHED,
            f"writes to read-aheads are not seen at once: {error.filename}: {error.strerror}",
            Priority.WARNING,
            reason=f"{error.filename}: {error.strerror}",
        )

    def events_lost(self) -> None:
        """Tell that the kernel dropped events."""
        self._journal.send(
            Message.EVENTS_LOST,
            "events were lost: looking at every mount again",
            Priority.NOTICE,
            reason="the queue of the netlink socket was full",
        )

    def config_loaded(self, policy: Policy) -> None:
        """Tell which files the configuration came from."""
        self.config_is_valid = True
        files = ", ".join(policy.files) or "built-in profiles only"
        self._journal.send(Message.CONFIG_LOADED, f"configuration: {files}", Priority.INFO, file=files)

    def config_invalid(self, error: ConfigError, *, kept: bool) -> None:
        """Tell each problem of a configuration on a line of its own."""
        self.config_is_valid = False
        after = "the last good configuration stays" if kept else "no mount is tuned until it is mended"
        for problem in error.problems:
            file = problem.partition(":")[0]
            self._journal.send(
                Message.CONFIG_INVALID, f"{problem} ({after})", Priority.ERROR, file=file, reason=problem
            )

    def stalled(self, superblock: Counted, stall: Stall, look: Look) -> None:
        """Tell that a superblock's users wait for its server."""
        waited_s = look.monotonic_s - stall.since_s
        what = "nothing was answered"
        if stall.requests is not None:
            number = "a request waits" if stall.requests == 1 else f"{stall.requests} requests wait"
            what = f"{number} for an answer ({', '.join(stall.operations)})"
        place, address = superblock.mount_points[0], server(superblock.group)
        self._journal.send(
            Message.STALLED,
            f"{place}: stalled: {what}, since {waited_s:.0f} s, server {address}",
            Priority.WARNING,
            since=round(look.time - waited_s, 3),
            requests=stall.requests,
            operations=" ".join(stall.operations) or None,
            **_stalled_fields(superblock),
        )

    def stall_ended(self, superblock: Counted, stall: Stall, look: Look, why: str) -> None:
        """Tell that nobody waits any more; `why` is a key of STALL_ENDS."""
        lasted_s = look.monotonic_s - stall.since_s
        self._journal.send(
            Message.STALL_ENDED,
            f"{superblock.mount_points[0]}: {STALL_ENDS[why]} after {lasted_s:.0f} s, "
            f"server {server(superblock.group)}",
            Priority.NOTICE,
            since=round(look.time - lasted_s, 3),
            stalled_s=round(lasted_s, 3),
            reason=why,
            **_stalled_fields(superblock),
        )

    def metrics_failed(self, reason: str) -> None:
        """Report that the file of metrics could not be written."""
        key = "prometheus.textfile"
        self._journal.send(Message.METRICS_FAILED, f"{key}: {reason}", Priority.ERROR, key=key, reason=reason)


def _stalled_fields(superblock: Counted) -> dict[str, object]:
    return {
        "device": superblock.device,
        "mount_point": superblock.mount_points[0],
        "source": superblock.source,
        "server": server(superblock.group),
    }


def _fields(superblock: Superblock, action: Action, decision: Decision | None = None) -> dict[str, object]:
    mount = superblock.mounts[0] if superblock.mounts else None
    return {
        "device": superblock.device,
        "mount_point": mount.point if mount else None,
        "source": mount.source if mount else None,
        "provider": decision.provider if decision else None,
        "profile": decision.profile if decision else None,
        "old_kb": action.old_kb,
        "new_kb": action.new_kb,
    }


def _by(writer: RuleWriter | None) -> str:
    return f" (see {describe(writer)})" if writer else ""
