"""The rows of the table of faults: measured one after another on the guest's service, and kept."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from tests.lab.kit import faultstates as states
from tests.lab.kit.daemon import STATE, Daemon, Entry
from tests.lab.kit.faultlist import CALLS, Call
from tests.lab.kit.mounts import Mounted, Mounts
from tests.lab.kit.rivals import mask_nfsrahead
from tests.lab.kit.server import Server
from tests.lab.kit.shell import CommandError, becomes

RESULTS = Path("/results/faults.jsonl")
RECOVERY_S = 100.0
MOST_LINES, MOST_OF_ALL = 3, 5
"""In the journal about a fault, and about one of many files: each kind of work may have a line."""
NOTICE = 5


@dataclass(frozen=True)
class Row:
    """A fault and the daemon's answer to it."""

    phase: str
    fault: str
    error: str
    outcome: str
    lines: int
    text: str
    recovery_s: float | None = None
    """From the fault's end until each mount has its value; None where nothing was left to be done."""
    cpu_s: float = 0.0
    trouble: str = ""
    fresh: bool = True
    """In a cycle the fault lasts for six samples, and the service of a cycle or a reload meets it first."""


class Table:
    """Measures rows on a service, and keeps them."""

    def __init__(self, wanted: list[str]) -> None:
        self._wanted = wanted
        self._day = time.strftime("%Y-%m-%d")
        self.troubles = 0
        self.server, self.mount, self.daemon = Server(), Mounts(), Daemon()
        self.server.start()
        mask_nfsrahead()
        states.FOLDER.mkdir(exist_ok=True)
        states.sound_launcher()

    def calls(self, phase: str, measure: Callable[[Call, str, str], Row]) -> None:
        """Measure the rows of a phase's calls; a call that was not made is a row's trouble."""

        def made(call: Call, fault: str, error: str) -> Row:
            row = measure(call, fault, error)
            return row if states.injected() else troubled(row, "the call was not made")

        for call in CALLS:
            for error in call.errors if call.phase == phase else ():
                self.row(phase, f"{call.name}: {call.file}", error, partial(made, call))

    def row(self, phase: str, fault: str, error: str, measure: Callable[[str, str], Row]) -> None:
        """Measure a row that is wanted, and keep it; a tool that fails is the row's trouble."""
        name = f"{phase} {fault} {error}"
        if self._wanted and not any(word in name for word in self._wanted):
            return
        began = time.monotonic()
        try:
            row = measure(fault, error)
        except (CommandError, AssertionError, OSError, subprocess.TimeoutExpired) as failed:
            row = Row(
                phase, fault, error, "not measured", 0, "", trouble=f"{type(failed).__name__}: {failed}"
            )
            self.clean()
        many = "any file" in fault or "metrics" in fault or ": " not in fault
        most = MOST_OF_ALL if many else MOST_LINES
        if row.lines > most:
            row = troubled(row, f"{row.lines} lines")
        with RESULTS.open("a") as file:
            file.write(json.dumps({"day": self._day, **asdict(row)}) + "\n")
        self.troubles += bool(row.trouble)
        print(f"lab: {time.monotonic() - began:.0f} s {asdict(row)}", flush=True)

    def clean(self) -> None:
        """Take away the service's state and all mounts."""
        self.daemon.clean()
        self.mount.clean()
        STATE.mkdir(exist_ok=True)

    def said(self) -> tuple[list[Entry], str]:
        """Return the service's entries about troubles since the mark, and the first text."""
        entries = [entry for entry in self.daemon.entries() if int(entry.get("PRIORITY", "6")) <= NOTICE]
        return entries, entries[0].get("MESSAGE", "") if entries else ""


def rounds(seconds: float) -> Iterator[None]:
    """Go on for so long, four times a second."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.25)


def left_open(pid: int, seconds: float) -> str:
    """Return a file of a value or a record that a process still has open after so long; "" for none."""
    left, places = "", ("/sys/", f"{STATE}/read-ahead/")
    for _ in rounds(seconds):
        kept = (name for name in states.open_files(pid) if name.startswith(places))
        left = next(kept, "")
        if not left:
            break
    return left


def reach(kb: int, *mounts: Mounted, seconds: float = RECOVERY_S) -> bool:
    """Wait until the mounts have a value; return whether they have it in time."""
    with contextlib.suppress(AssertionError):
        becomes([kb] * len(mounts), lambda: [mounted.read_ahead_kb for mounted in mounts], seconds)
        return True
    return False


def troubled(row: Row, trouble: str) -> Row:
    """Return the row with another trouble."""
    return replace(row, trouble=joined((row.trouble, trouble)))


def joined(troubles: Iterable[str]) -> str:
    """Return the troubles that there are as one text; each other is ""."""
    return "; ".join(filter(None, troubles))
