"""The demonstration of `dev/demo`: the work of nfstuned on one mount, on a real kernel.

The demonstration goes to stdout, progress to stderr.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab import guest, runs

_TAIL = 20
LIMITS = guest.Limits(total_s=900, first_s=240, quiet_s=240, retries=2)
"""These end a hang; a busy machine takes minutes for seconds of work."""
_BOLD, _DIM, _RED, _PLAIN = "\033[1m", "\033[2m", "\033[31m", "\033[0m"


@dataclass
class Printer:
    """Prints the guest's lines of the demonstration as a person wants to read them, and no others."""

    colour: bool
    show: Callable[[str], None]
    progress: Callable[[str], None]
    failures: list[str] = field(default_factory=list)

    def __call__(self, line: str) -> None:
        kind, _, text = line.partition(" ")
        if kind == "@heading":
            self.show("")
            self.show(self._styled(_BOLD, text))
        elif kind == "@command":
            self.show(f"  {self._styled(_DIM, '#')} {self._styled(_BOLD, text)}")
        elif kind == "@output":
            self.show(f"  {text}")
        elif kind == "@text":
            self.show(self._styled(_DIM, f"  -- {text}"))
        elif kind == "@failed":
            self.failures.append(text)
        elif kind == "lab:":
            self.progress(text)

    def _styled(self, style: str, text: str) -> str:
        return f"{style}{text}{_PLAIN}" if self.colour else text


def demonstrate(release: str) -> int:
    """Show it on a kernel; return 0 when all happened as promised, 1 when not. Raises BuildError."""
    started = time.monotonic()
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    printer = Printer(colour, guest.stdout_line, _progress)
    printer(f"@heading nfstuned on Linux {release}, with an NFS server and client in one guest")
    target = runs.folder() / f"demo-{release}"
    _progress("building the package, unless it is there, and booting the guest in emulation: about 20 s")
    boot = runs.run_module(("tests.lab.kit.demo",), release, target, printer, LIMITS)
    if boot.passed:
        _progress(f"done in {time.monotonic() - started:.0f} s")
        _own_mounts()
        return 0
    red, plain = (_RED, _PLAIN) if colour else ("", "")
    for failure in printer.failures or [boot.explain(), *boot.output.splitlines()[-_TAIL:]]:
        print(f"{red}demo: failed: {failure}{plain}", file=sys.stderr)
    _progress(f"see output.txt, console.txt and files/journal.txt in {target}")
    return 1


def _own_mounts() -> None:
    """Show how to see this machine's own NFS mounts, where it has some."""
    count = nfs_mounts(Path("/proc/self/mountinfo").read_text(errors="replace"))
    if count:
        mounts = "an NFS mount" if count == 1 else f"{count} NFS mounts"
        print(f"\nThis machine has {mounts} of its own. Their values and targets:")
        print("  .venv/bin/nfstuned status")


def nfs_mounts(mountinfo: str) -> int:
    """Return how many of the mounts are NFS."""
    kinds = [line.partition(" - ")[2].partition(" ")[0] for line in mountinfo.splitlines()]
    return sum(1 for kind in kinds if kind in {"nfs", "nfs4"})


def _progress(line: str) -> None:
    print(f"demo: {line}", file=sys.stderr, flush=True)
