"""The table of faults of docs/reliability.md: the real service while a call fails, or the host is in trouble.

The arguments are parts of rows' names, as `cycle pwrite64`; without arguments all rows are measured. Leaves
`faults.jsonl` among the results, a line for each row. A row's `trouble` is a promise that the daemon broke:
it ends, writes a wrong value, is silent about work that it did not do, reports it again and again, or needs a
person afterwards. In a cycle, at a reload and at the stop the unit is as installed. At the start it has
another launcher and no filter of calls, and does not mask udev's rules.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit import faultstates as states
from tests.lab.kit.daemon import STATE, UNIT
from tests.lab.kit.faultlist import CYCLE, RELOAD, START, STOP, WAITING, Call
from tests.lab.kit.faultrows import NOTICE, Row, Table, joined, left_open, reach, rounds
from tests.lab.kit.faults import silent
from tests.lab.kit.mounts import Mounted
from tests.lab.kit.server import GENERIC, OTHER_ADDRESS
from tests.lab.kit.shell import COMMAND_S, attempt, program, run, tuned, wait_for
from tests.lab.kit.unit import override

V3 = "vers=3,nolock,nosharecache"
KERNELS_KB, KB = 128, 15360
SAMPLE_S = 2
HOLD_S = 12.0
"""A fault lasts for so long, after a mount: for six samples, so that a line for each would be too many."""
LEFT_OPEN_S = 5.0
"""How long a file may stay open after a fault."""
RELOAD_S = 10.0
"""The child takes 3 to 6 s in emulation."""
BUSY = 0.7
"""The part of a fault's time that the daemon may use a processor: without a rest it uses all."""
HELD_UP_S = 0.05
"""A daemon with less processor time in a fault did not run: above MemoryHigh= the kernel lets it sleep."""
CONFIGURATION = f"""[daemon]
sample_interval = "{SAMPLE_S}s"
restore_on_stop = true
[samples]
file = "{STATE}/samples.jsonl"
[prometheus]
textfile = "{STATE}/nfstuned.prom"
[profile.generic]
read_ahead_kb = {{}}
"""
NUMBERS = (1024, 2048)
Fault = contextlib.AbstractContextManager[None]


def main(wanted: list[str]) -> int:
    """Measure; return the exit status: 1 where a row has a trouble."""
    table = Table(wanted)
    with states.small_state():
        table.clean()
        Cycle(table).measure()
        Reload(table).measure()
        Stop(table).measure()
        Start(table).measure()
        table.clean()
    print(f"lab: rows with troubles: {table.troubles}", flush=True)
    return 0


class Cycle:
    """Faults that begin while the service runs: a mount is made and another goes under each."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.kept: Mounted | None = None
        self.last: Mounted | None = None

    def measure(self) -> None:
        """Measure all rows, each on a fresh service: a service reports a fault once an hour."""
        self.table.calls(CYCLE, self._call)
        for name, state in states.STATES.items():
            self.table.row(CYCLE, name, "", partial(self._state, state))
        self.table.row(CYCLE, states.UNLOADED, "", self._unload)
        self.table.clean()

    def _ready(self) -> tuple[Mounted, Mounted]:
        daemon, mount = self.table.daemon, self.table.mount
        if not daemon.active or self.kept is None or self.last is None:
            self.table.clean()
            daemon.start(CONFIGURATION.format(NUMBERS[0]))
            self.kept, self.last = mount("a", V3), mount("c", V3)
        else:
            daemon.restart()
        tuned(KB, self.kept, self.last)
        return self.kept, self.last

    def _call(self, call: Call, fault: str, error: str) -> Row:
        self._ready()
        with self._waiting() if call.file == WAITING else contextlib.nullcontext():
            return self._under(fault, error, states.failing(call, error, self.table.daemon.pid))

    @contextlib.contextmanager
    def _waiting(self) -> Iterator[None]:
        """Let a program wait for a server that no other mount has."""
        mounted = self.table.mount("d", V3, host=GENERIC)
        with silent(OTHER_ADDRESS):
            words = ["dd", "if=/dev/zero", f"of={mounted.point}/file", "bs=4k", "count=1", "conv=fsync"]
            writer = subprocess.Popen(words, stderr=subprocess.DEVNULL)
            yield
        writer.wait(COMMAND_S)
        self.table.mount.umount(mounted)

    def _state(self, state: Callable[[int], Fault], fault: str, error: str) -> Row:
        self._ready()
        return self._under(fault, error, state(self.table.daemon.pid), may_end="MemoryMax" in fault)

    def _under(self, fault: str, error: str, context: Fault, *, may_end: bool = False) -> Row:
        assert self.kept is not None
        assert self.last is not None
        kept, last, daemon, mount = self.kept, self.last, self.table.daemon, self.table.mount
        daemon.journal.mark()
        pid = daemon.pid
        before, began, seen = states.cpu_s(pid), time.monotonic(), set[int]()
        self.kept = self.last = None  # until all is well
        with context:
            new = mount("b", V3)
            mount.umount(last)
            for _ in rounds(HOLD_S):
                seen |= {new.read_ahead_kb, kept.read_ahead_kb}
                (kept.point / "file").write_bytes(os.urandom(50_000))
            served, used = new.read_ahead_kb == KB, max(0.0, states.cpu_s(pid) - before)
        ended, held_up = time.monotonic(), "Memory" in fault and used < HELD_UP_S
        last = mount("c", V3)
        right = reach(KB, kept, new, last)
        recovery_s = time.monotonic() - ended
        entries, text = self.table.said()
        mount.umount(new)
        troubles = [
            "it did not recover" if not right else "",
            "it ended" if daemon.pid != pid and not may_end else "",
            f"{left} stays open" if (left := left_open(daemon.pid, LEFT_OPEN_S)) else "",
            "a wrong value" if seen - {KERNELS_KB, KB} else "",
            "it was silent" if not (served or entries or daemon.pid != pid or held_up) else "",
            f"{used:.1f} s of CPU" if used > BUSY * (ended - began) else "",
        ]
        outcome = "served" if served else "set when the fault ended"
        if held_up:
            outcome = "did not run, set when the fault ended"
        if daemon.pid != pid:
            outcome = "killed by the kernel, started again by systemd"
        if right and (daemon.pid == pid or may_end):
            self.kept, self.last = kept, last
        return Row(
            CYCLE,
            fault,
            error,
            outcome,
            len(entries),
            text,
            recovery_s,
            used,
            joined(troubles),
        )

    def _unload(self, fault: str, error: str) -> Row:
        self._ready()
        table, pid = self.table, self.table.daemon.pid
        self.kept = self.last = None
        table.daemon.journal.mark()
        states.unload(table.mount)
        time.sleep(LEFT_OPEN_S)
        began = time.monotonic()
        right = reach(KB, table.mount("a", V3))
        recovery_s = time.monotonic() - began
        entries, text = table.said()
        trouble = "" if right and table.daemon.pid == pid else "not served"
        return Row(CYCLE, fault, error, "served", len(entries), text, recovery_s, trouble=trouble)


class Reload:
    """Faults while the service takes a new number for a mount out of its file."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.kb = NUMBERS[0]
        self.mounted: Mounted | None = None

    def measure(self) -> None:
        self.table.calls(RELOAD, self._call)
        for name in states.AT_RELOAD:
            self.table.row(RELOAD, name, "", partial(self._state, states.STATES[name]))
        self.table.clean()

    def _call(self, call: Call, fault: str, error: str) -> Row:
        # systemctl does not wait for a daemon that systemd does not hear.
        patience_s = 3 * RELOAD_S if call.name == "sendmsg" else RELOAD_S
        return self._under(fault, error, partial(states.failing, call, error), patience_s)

    def _state(self, state: Callable[[int], Fault], fault: str, error: str) -> Row:
        return self._under(fault, error, state, RELOAD_S, may_end="MemoryMax" in fault)

    def _under(
        self,
        fault: str,
        error: str,
        context: Callable[[int], Fault],
        patience_s: float,
        *,
        may_end: bool = False,
    ) -> Row:
        table, daemon = self.table, self.table.daemon
        if not daemon.active or self.mounted is None:
            table.clean()
            daemon.start(CONFIGURATION.format(self.kb))
            self.mounted = table.mount("a", V3, host=GENERIC)
        else:
            daemon.restart()
        tuned(self.kb, self.mounted)
        mounted, self.mounted = self.mounted, None
        daemon.journal.mark()
        pid = daemon.pid
        self.kb = NUMBERS[self.kb == NUMBERS[0]]
        daemon.configure(CONFIGURATION.format(self.kb))
        began = time.monotonic()
        with context(pid):
            done = attempt("systemctl", "reload", UNIT)
            took_s = time.monotonic() - began
            new = reach(self.kb, mounted, seconds=patience_s)
        ended = time.monotonic()
        right = reach(self.kb, mounted)
        recovery_s = None if new else time.monotonic() - ended
        entries, text = table.said()
        troubles = [
            "it did not recover" if not right else "",
            "it ended" if daemon.pid != pid and not may_end else "",
            f"{left} stays open" if (left := left_open(daemon.pid, LEFT_OPEN_S)) else "",
            f"the reload took {took_s:.0f} s" if (done.returncode and not may_end) or took_s > 45 else "",
            "it was silent" if not (new or entries or daemon.pid != pid) else "",
        ]
        if right and (daemon.pid == pid or may_end):
            self.mounted = mounted
        outcome = "new configuration in use" if new else "earlier configuration in use until the fault ended"
        trouble = joined(troubles)
        return Row(RELOAD, fault, error, outcome, len(entries), text, recovery_s, trouble=trouble)


class Stop:
    """Faults while the service puts the values back (`restore_on_stop`)."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.mounted: Mounted | None = None

    def measure(self) -> None:
        self.table.calls(STOP, self._call)
        for name in states.AT_STOP:
            self.table.row(STOP, name, "", partial(self._under, states.STATES[name]))
        self.table.clean()

    def _call(self, call: Call, fault: str, error: str) -> Row:
        return self._under(partial(states.failing, call, error), fault, error)

    def _under(self, context: Callable[[int], Fault], fault: str, error: str) -> Row:
        table, daemon = self.table, self.table.daemon
        if self.mounted is None or not daemon.active:
            table.clean()
            daemon.start(CONFIGURATION.format(NUMBERS[0]))
            self.mounted = table.mount("a", V3)
            tuned(KB, self.mounted)
        mounted, self.mounted = self.mounted, None
        daemon.journal.mark()
        with context(daemon.pid):
            daemon.stop()
        result, value = daemon.show("Result"), mounted.read_ahead_kb
        entries, text = table.said()
        unheard = "ECONN" in error or "journald" in fault
        stopped = unheard or daemon.entries(MESSAGE_ID=Message.STOPPED.id)
        ended = time.monotonic()
        daemon.start()
        right = reach(KB, mounted)
        recovery_s = time.monotonic() - ended
        troubles = [
            "the next start does not set the value" if not right else "",
            f"it ended with {result}" if result != "success" or not stopped else "",
            "it was silent" if value != KERNELS_KB and not entries and not unheard else "",
            "a wrong value" if value not in {KERNELS_KB, KB} else "",
        ]
        if right:
            self.mounted = mounted
        outcome = "value put back" if value == KERNELS_KB else "stopped, the value stays"
        trouble = joined(troubles)
        return Row(STOP, fault, error, outcome, len(entries), text, recovery_s, trouble=trouble)


class Start:
    """Faults that are there when the service starts; each start meets a mount without its value."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def measure(self) -> None:
        with override(states.DROP_IN):
            self.table.calls(START, self._call)
        for name, (line, state) in states.LIMITS.items():
            self.table.row(START, name, "", partial(self._limit, line, state))
        self.table.row(START, states.READ_ONLY, "", self._read_only)
        self.table.row(START, states.ALONE, "", self._alone)
        self.table.row(START, states.NOT_LOADED, "", self._unloaded)

    def _call(self, call: Call, fault: str, error: str) -> Row:
        states.LOG.unlink(missing_ok=True)
        return self._under(fault, error, _launched(call, error))

    def _limit(self, line: str, state: Callable[[int], Fault] | None, fault: str, error: str) -> Row:
        if state is not None:
            return self._under(fault, error, state(0))
        return self._under(fault, error, override(f"[Service]\nExecStartPre=\nExecStopPost=\n{line}"))

    def _under(self, fault: str, error: str, context: Fault) -> Row:
        table, daemon = self.table, self.table.daemon
        table.clean()
        kept = table.mount("a", V3)
        daemon.journal.mark()
        with context:
            run("systemctl", "start", "--no-block", UNIT)
            wait_for("a start or a restart", lambda: daemon.active or daemon.show("NRestarts") != "0", 120)
            served, started = reach(KB, kept, seconds=LEFT_OPEN_S), daemon.active
            entries, text = table.said()
            attempts = max(1, len(daemon.entries(MESSAGE_ID=Message.STARTED.id)))
        ended = time.monotonic()
        if pid := daemon.pid:
            states.release(pid)
        new = table.mount("b", V3)
        right = reach(KB, kept, new)
        recovery_s = time.monotonic() - ended
        lines = -(-len(entries) // attempts)
        troubles = [
            "it did not recover" if not right else "",
            "it was silent" if not (served or entries or "Memory" in fault or "NOFILE" in fault) else "",
        ]
        outcome = "served" if served else "started, nothing set until the fault ended"
        if not started:
            outcome = "refused; systemd tries again"
            outcome = "served, but systemd hears nothing of it and tries again" if served else outcome
        return Row(START, fault, error, outcome, lines, text, recovery_s, trouble=joined(troubles))

    def _read_only(self, fault: str, error: str) -> Row:
        self.table.clean()
        with states.read_only_sys():
            attempt("systemctl", "start", UNIT)
            unmet = self.table.daemon.show("ConditionResult") == "no"
        return Row(
            START, fault, error, "skipped by the unit's condition", 0, "", trouble="" if unmet else "started"
        )

    def _alone(self, fault: str, error: str) -> Row:
        self.table.clean()
        log = states.FOLDER / "stderr"
        with log.open("wb") as file, program(*states.outside_systemd(), stderr=file.fileno()) as process:
            wait_for("its start", lambda: "configuration" in log.read_text())
            right = reach(KB, self.table.mount("a", V3))
            process.terminate()
            status = process.wait(30)
        lines = re.findall(rf"^<[0-{NOTICE}]>(.*)", log.read_text(), re.MULTILINE)
        trouble = "" if right and status == 0 else f"status {status}, {right}"
        return Row(START, fault, error, "served", len(lines), "".join(lines[:1]), trouble=trouble)

    def _unloaded(self, fault: str, error: str) -> Row:
        table = self.table
        table.clean()
        states.unload(table.mount)
        assert not Path("/proc/fs/nfsfs").exists()
        table.daemon.journal.mark()
        table.daemon.start()
        began = time.monotonic()
        right = reach(KB, table.mount("a", V3))
        recovery_s = time.monotonic() - began
        entries, text = table.said()
        trouble = "" if right else "not served"
        return Row(START, fault, error, "served", len(entries), text, recovery_s, trouble=trouble)


@contextlib.contextmanager
def _launched(call: Call, error: str) -> Iterator[None]:
    states.faulty_launcher(call, error)
    try:
        yield
    finally:
        states.sound_launcher()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
