"""The daemon's messages to the journal, under the names of the mounts that they are about."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping, Sequence

from nfstuned.core.policy.plan import superblock_name
from nfstuned.core.samples.stalls import group_server
from nfstuned.core.udev.writers import describe
from nfstuned.errors import ParseError
from nfstuned.host.telemetry.journal import Journal, Message, Priority
from nfstuned.model.mounts import Action, Decision, Outcome, Result, Superblock
from nfstuned.model.policy import ConfigError, Policy, UnvalidatedError
from nfstuned.model.samples import Counted, Look
from nfstuned.model.stalls import Stall
from nfstuned.model.udev import RuleWriter

MOST_REMEMBERED = 200
"""The number of reported errors that are remembered, so that each is reported once."""
STALL_ENDS = {
    "answered": "answers again",
    "given up": "nobody waits any more",
    "unmounted": "unmounted while it was stalled",
}
"""The ends of a stall, and their texts in the journal."""
SHORTAGES = frozenset(os.strerror(number) for number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM))
"""Reasons of the machine's or the process' own: with the first file all others are reported, too."""
FORGOTTEN_S = 3600.0
"""A fault is reported again when it was away for so long."""


class Reporter:
    """Sends the daemon's messages. Problems that last are reported once."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.config_is_valid = False
        """The newest configuration is in use."""
        self._unwatched = False
        """Whether the failed watch of writes was reported."""
        self._unreadable: dict[str, None] = {}
        self._shortages = set[str]()
        """Those that were reported since the last look that could read all."""
        self._faults: dict[str, float] = {}
        """The errors of files between looks, and of steps of the loop; the last time of each."""

    def changed(self, superblock: Superblock, decision: Decision, outcome: Outcome) -> None:
        """Report a change of a read-ahead, the kernel's refusal, or a value that is only observed."""
        fields = _fields(superblock, outcome.action, decision)
        action, name = outcome.action, superblock_name(superblock)
        if outcome.result is Result.PLANNED:
            text = f"{name}: read-ahead {action.old_kb} KiB, only observed: {action.new_kb} ({decision.why})"
            self._journal.send(Message.READ_AHEAD_WANTED, text, Priority.INFO, reason=decision.why, **fields)
            return
        if outcome.result is Result.FAILED:
            self._refused(name, outcome, fields)
            return
        text = f"{name}: read-ahead {action.old_kb} -> {action.new_kb} KiB ({decision.why})"
        self._journal.send(Message.READ_AHEAD_SET, text, Priority.INFO, reason=decision.why, **fields)

    def _refused(self, name: str, outcome: Outcome, fields: Mapping[str, object]) -> None:
        action, reason = outcome.action, outcome.reason
        text = f"{name}: read-ahead of {action.new_kb} KiB refused: {reason}"
        file = f"/sys/class/bdi/{action.device}/read_ahead_kb"
        self._journal.send(
            Message.READ_AHEAD_FAILED, text, Priority.ERROR, reason=reason, file=file, **fields
        )

    def adapted(self, superblock: Superblock, decision: Decision, action: Action, why: str) -> None:
        """Report that a superblock's reads have moved its read-ahead."""
        name, most = superblock_name(superblock), f", of at most {decision.most_kb}"
        text = f"{name}: read-ahead {action.old_kb} -> {action.new_kb} KiB{most}, as {why}"
        self._journal.send(
            Message.READ_AHEAD_ADAPTED,
            text,
            Priority.INFO,
            reason=why,
            most_kb=decision.most_kb,
            **_fields(superblock, action, decision),
        )

    def held(self, names: Sequence[str]) -> None:
        """Report the mounts that keep their read-ahead until the next boot."""
        shown = names[:MOST_REMEMBERED]
        text = (
            "mounted before nfstuned was installed, left unchanged until the next boot: "
            f"{', '.join(shown)}; to tune them now: sudo nfstuned apply"
        )
        self._journal.send(Message.READ_AHEAD_HELD, text, Priority.NOTICE, mounts=" ".join(shown))

    def conflict(self, superblock: Superblock, decision: Decision) -> None:
        """Report that mounts of a superblock ask for different values."""
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

    def contested(self, superblock: Superblock, action: Action, writer: RuleWriter | None) -> None:
        """Report that another writer's value was replaced."""
        text = f"another writer changed the read-ahead to {action.old_kb} KiB, set to {action.new_kb} again"
        self._another_writer(Message.READ_AHEAD_CONTESTED, superblock, action, text, writer)

    def left(self, superblock: Superblock, action: Action, writer: RuleWriter | None) -> None:
        """Report that a superblock is left to another writer."""
        text = f"read-ahead left at {action.old_kb} KiB, another writer keeps changing it"
        self._another_writer(Message.READ_AHEAD_LEFT, superblock, action, text, writer)

    def _another_writer(
        self, message: Message, superblock: Superblock, action: Action, text: str, writer: RuleWriter | None
    ) -> None:
        priority = Priority.NOTICE if message is Message.READ_AHEAD_CONTESTED else Priority.WARNING
        rule = f" (see {describe(writer)})" if writer else ""
        text = f"{superblock_name(superblock)}: {text}{rule}"
        file = writer.file if writer else None
        self._journal.send(message, text, priority, writer=file, **_fields(superblock, action))

    def restored(self, outcome: Outcome) -> None:
        """Report that a value was put back, or the kernel's refusal."""
        action = outcome.action
        if outcome.result is Result.FAILED:
            fields = {"device": action.device, "old_kb": action.old_kb, "new_kb": action.new_kb}
            self._refused(action.target, outcome, fields)
            return
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

    def unreadable(self, *errors: ParseError) -> None:
        """Report once that lines of kernel files were not understood, or files could not be read.

        Files that cannot be read for the same reason have one entry.
        """
        news: dict[str, list[ParseError]] = {}
        for error in errors:
            if str(error) in self._unreadable or self._is_known_shortage(error):
                continue
            if len(self._unreadable) >= MOST_REMEMBERED:
                self._unreadable.clear()
            self._unreadable[str(error)] = None
            news.setdefault(str(error) if error.line else error.message, []).append(error)
        for first, *others in news.values():
            self._send_unreadable(first, len(others))

    def _send_unreadable(self, error: ParseError, others: int = 0) -> None:
        text = f"{error} (other files with this error: {others})" if others else str(error)
        self._journal.send(Message.UNREADABLE, text, Priority.WARNING, file=error.file, reason=error.message)

    def forget_unreadable(self, present: Iterable[ParseError]) -> None:
        """Forget all errors but the `present` ones: the others are reported when they come again."""
        self._unreadable = dict.fromkeys(map(str, present))
        self._shortages.clear()

    def fault(self, error: ParseError, now_s: float) -> None:
        """Report once that a file could not be read; a look may have met it, or meet it next."""
        if self._is_news(str(error), now_s):
            self.unreadable(error)

    def cycle_failed(self, error: Exception, now_s: float) -> None:
        """Report once that a step of the loop has failed: it is tried again, and may fail for ever."""
        text = f"{type(error).__name__}: {error}"
        if self._is_news(text, now_s):
            self._journal.send(Message.CYCLE_FAILED, text, Priority.ERROR, reason=repr(error))

    def _is_known_shortage(self, error: ParseError) -> bool:
        """Note a shortage; return whether it was reported with another file."""
        if error.message not in SHORTAGES:
            return False
        known = error.message in self._shortages
        self._shortages.add(error.message)
        return known

    def _is_news(self, text: str, now_s: float) -> bool:
        """Note an error; return whether it was away for FORGOTTEN_S."""
        last_s = self._faults.get(text)
        if len(self._faults) >= MOST_REMEMBERED:
            self._faults.clear()
        self._faults[text] = now_s
        return last_s is None or now_s - last_s >= FORGOTTEN_S

    def unwatched(self, error: OSError) -> None:
        """Report once that the kernel refuses to watch writes to read-aheads."""
        if self._unwatched:
            return
        self._unwatched = True
        self._journal.send(
            Message.UNWATCHED,
            f"writes to read-aheads are not seen at once: {error.filename}: {error.strerror}",
            Priority.WARNING,
            reason=f"{error.filename}: {error.strerror}",
        )

    def events_lost(self) -> None:
        """Report that the kernel dropped events."""
        self._journal.send(
            Message.EVENTS_LOST,
            "events were lost: nfstuned looks at every mount again",
            Priority.NOTICE,
            reason="the queue of the netlink socket was full",
        )

    def config_loaded(self, policy: Policy) -> None:
        """Report the files of the configuration."""
        self.config_is_valid = True
        files = ", ".join(policy.files) or "built-in profiles only"
        self._journal.send(Message.CONFIG_LOADED, f"configuration: {files}", Priority.INFO, file=files)

    def config_invalid(self, error: ConfigError, *, in_use: bool) -> None:
        """Report each problem of a configuration; `in_use`: an earlier configuration stays in use."""
        self.config_is_valid = False
        after = "the last good configuration stays" if in_use else "no mount is tuned"
        if isinstance(error, UnvalidatedError):
            after += "; nfstuned tries again"
        elif not in_use:
            after += " until the file is corrected"
        for problem in error.problems:
            file = problem.partition(":")[0]
            self._journal.send(
                Message.CONFIG_INVALID, f"{problem} ({after})", Priority.ERROR, file=file, reason=problem
            )

    def stalled(self, superblock: Counted, stall: Stall, look: Look) -> None:
        """Report that a superblock's users wait for its server."""
        waited_s = look.monotonic_s - stall.since_s
        waiting = "no request was answered"
        if stall.requests is not None:
            number = "a request waits" if stall.requests == 1 else f"{stall.requests} requests wait"
            waiting = f"{number} for an answer ({', '.join(stall.operations)})"
        place, address = superblock.mount_points[0], group_server(superblock.group)
        self._journal.send(
            Message.STALLED,
            f"{place}: stalled: {waiting}, since {waited_s:.0f} s, server {address}",
            Priority.WARNING,
            since=round(look.time - waited_s, 3),
            requests=stall.requests,
            operations=" ".join(stall.operations) or None,
            **_stalled_fields(superblock),
        )

    def stall_ended(self, superblock: Counted, stall: Stall, look: Look, why: str) -> None:
        """Report that nobody waits any more; `why` is a key of STALL_ENDS."""
        lasted_s = look.monotonic_s - stall.since_s
        self._journal.send(
            Message.STALL_ENDED,
            f"{superblock.mount_points[0]}: {STALL_ENDS[why]} after {lasted_s:.0f} s, "
            f"server {group_server(superblock.group)}",
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
        "server": group_server(superblock.group),
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
