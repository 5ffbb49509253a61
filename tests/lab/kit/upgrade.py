"""The proof of docs/reliability.md about upgrades: dpkg and the service are killed while mounts are in use.

The argument is one of `PARTS`, of a boot each. Leaves `upgrade.jsonl` among the results. dpkg, with its whole
session, is killed with SIGKILL at moments of an upgrade from 0.1.0, and of the downgrade back; then a
person's next commands complete it: `dpkg --configure -a`, and where that is not enough `dpkg --install` of
the same package again.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from nfstuned.host.read_ahead import State
from nfstuned.host.root import Root
from tests.lab.kit.daemon import UNIT, Daemon, nfstuned, status_rows
from tests.lab.kit.dpkg import (
    INSTALL_S,
    MOMENTS,
    Change,
    Moment,
    Version,
    complete,
    dpkg_state,
    service_pids,
    upgrade_by_apt,
    version,
)
from tests.lab.kit.in_use import InUse
from tests.lab.kit.mounts import BDI, Mounted, Mounts, line_of
from tests.lab.kit.rivals import MASK, difference, view
from tests.lab.kit.server import SHARES, Server
from tests.lab.kit.shell import CommandError, attempt, run, tuned, wait_for
from tests.lab.kit.unit import HOME, compiled, override

RESULTS = Path("/results/upgrade.jsonl")
CONFIGURATION = "[profile.azure-files]\nread_ahead_kb = 4096\n"
KB, BUILT_IN_KB, KERNEL_KB = 4096, 15360, 128
IDLE = 18
STARTS = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.05)
"""Moments of a kill of the service: parts of the time that a start takes."""
RECORD_KILLS = 2
RECORDS_AT = 3
"""At every third moment the records are tried: `undo` and `apply`."""
SERVICE_S = 300.0
"""For a start of the service, next to other guests."""
QUIET_S = 5.0
"""A service that sets a value does so in milliseconds."""
WRITTEN = ("/etc", "/run", "/usr/lib/systemd", "/var/lib/nfstuned", str(HOME))
CHECKED = ("/etc", "/run", "/usr", "/var/lib", "/var/log")
SLOW_WRITE = """[Service]
ExecStart=
ExecStart=/usr/bin/strace -D -f -o /dev/null -e inject=pwrite64:delay_enter=60000000 /usr/bin/nfstuned daemon
SystemCallFilter=
TimeoutStartSec=300s
WatchdogSec=0
"""
"""A drop-in: the daemon waits a minute before it writes a value."""
NOT_MASKED = "udev's rule is not masked"
Row = dict[str, Any]
_UNFINISHED = re.compile(r"\.(dpkg-new|dpkg-tmp|nfstuned-new)$")


REST = "rest"
PARTS = {"files": MOMENTS[:6], "scripts": (MOMENTS[6], *MOMENTS[8:]), REST: (MOMENTS[7],)}
"""The moments of each part; the last part has all other kills as well."""


class Proof:
    """A guest with mounts in use, and its rows."""

    def __init__(self) -> None:
        self.server, self.mount, self.daemon = Server(), Mounts(), Daemon()
        self.server.start()
        self.tree = version("package").installed()
        self.rules = view()
        run("dpkg", "--purge", "nfstuned", timeout=INSTALL_S)
        first = version("first")
        run("dpkg", "--install", first.deb, timeout=INSTALL_S)
        self.first = first.installed()
        self.daemon.configure(CONFIGURATION)
        run("systemctl", "restart", UNIT)
        self.used = [self.mount("a", "vers=4.1,nconnect=4"), self.mount("b", "vers=3,nolock")]
        self.idle = [self._idle(number) for number in range(IDLE)]
        tuned(KB, *self.used, *self.idle, seconds=SERVICE_S)
        self.lines = [line_of(mounted) for mounted in self.used]
        self.wrong = self.io_errors = self.undone = 0
        self.sound = True
        self.use = InUse(KB)
        self.use.watch(*self.used, *self.idle)
        for mounted in self.used:
            self.use.use(mounted)

    def _idle(self, number: int) -> Mounted:
        return self.mount(SHARES[number % 4], f"vers=4.{1 + number % 2},nosharecache")

    def next_mount(self) -> Mounted:
        """Unmount the oldest idle mount, and mount another: it has the same device number."""
        gone = self.idle.pop(0)
        self.use.forget(gone)
        self.mount.umount(gone)
        self.idle.append(self._idle(int(gone.point.name)))
        return self.idle[-1]

    def killed_change(self, old: Version, new: Version, moment: Moment) -> None:
        """Kill dpkg at a moment, complete its work, and add a row."""
        change = Change(old, new, self.daemon.pid)
        row: Row = {"part": "dpkg", "from": old.name, "to": new.name, "moment": moment.name}
        row["killed_s"] = round(change.kill_at(moment.reached), 1)
        row["state"] = dpkg_state()
        if moment.with_service:
            self._kill_service()
        row["service_killed"], row["service"] = moment.with_service, self.daemon.show("ActiveState")
        mounted, began = self.next_mount(), time.monotonic()
        row["completed"] = list(complete(old, new))
        self._add(row, mounted, new, began)

    def _kill_service(self) -> None:
        """Kill the service, and wait until it runs again or its next start has failed."""
        before = int(self.daemon.show("NRestarts"))
        for pid in service_pids():
            os.kill(pid, signal.SIGKILL)
        wait_for("a restart", lambda: int(self.daemon.show("NRestarts")) > before, SERVICE_S)
        ends = before + 1
        wait_for(
            "its end", lambda: self.daemon.active or int(self.daemon.show("NRestarts")) > ends, SERVICE_S
        )

    def _installed(self, expected: Version) -> Iterator[str]:
        """Yield each difference from an installation of the version without a kill."""
        yield from attempt("dpkg", "--verify", "nfstuned").stdout.splitlines()
        if (state := dpkg_state()) != f"installed {expected.name}":
            yield f"the package is {state}"
        known = {*expected.files, *(str(path) for path in expected.compiled)}
        if expected is self.first:
            known |= orphans()  # 0.1.0 leaves them until the next change of version
        there = {str(path) for path in HOME.rglob("*") if path.is_file()}
        yield from (f"{path} is left" for path in sorted(there - known))
        yield from (f"{path} is not there" for path in expected.compiled if not path.exists())
        yield from (f"{path} is left" for path in paths(*WRITTEN) if _UNFINISHED.search(path))
        if (enabled := attempt("systemctl", "is-enabled", UNIT).stdout.strip()) != "enabled":
            yield f"the unit is {enabled}"
        lines = run("systemctl", "list-unit-files", "nfstuned*").splitlines()
        yield from (line for line in lines if "masked" in line)

    def _add(self, row: Row, new: Mounted, expected: Version, began: float) -> None:
        """Wait for the right values, and add the row of a kill with all errors since the last row."""
        wait_for("the service", lambda: self.daemon.active, SERVICE_S)
        tuned(KB, *self.used, *self.idle, seconds=SERVICE_S)
        row |= {"again_s": round(time.monotonic() - began, 1), "orphans": len(orphans())}
        self.use.watch(new)
        faults = list(self._installed(expected))
        if not MASK.exists():
            faults.append(NOT_MASKED)
        if [line_of(mounted) for mounted in self.used] != self.lines:
            faults.append("the mounts have other lines in mountinfo")
        row |= {
            "wrong": len(self.use.wrong) - self.wrong,
            "io_errors": len(self.use.io_errors) - self.io_errors,
        }
        self.wrong, self.io_errors = len(self.use.wrong), len(self.use.io_errors)
        row["faults"] = faults
        self.sound &= not unsound(row)
        save(row)

    def undo_and_apply(self) -> None:
        """Put back the first values by the records, and set the others again. Raises AssertionError."""
        with self.use.changing():
            self.undo()
            self._apply()

    def undo(self) -> None:
        """Put back the first values by the records. Raises AssertionError."""
        assert nfstuned("undo", timeout=SERVICE_S).returncode == 0
        self._all_have(KERNEL_KB)
        self.undone += 1

    def _apply(self) -> None:
        assert nfstuned("apply", timeout=SERVICE_S).returncode == 0
        self._all_have(KB)

    def _all_have(self, kb: int) -> None:
        values = {mounted.device: mounted.read_ahead_kb for mounted in (*self.used, *self.idle)}
        assert set(values.values()) == {kb}, values

    def killed_starts(self) -> None:
        """Kill the service during its start, and between the record and the value of a new mount."""
        began = time.monotonic()
        run("systemctl", "restart", UNIT)
        start_s = time.monotonic() - began
        for part in STARTS:
            run("systemctl", "stop", UNIT)
            mounted = self.next_mount()
            run("systemctl", "start", "--no-block", UNIT)
            time.sleep(part * start_s)
            self._killed_service(f"{part:.0%} of the time of its start", mounted)
        for _ in range(RECORD_KILLS):
            with override(SLOW_WRITE):
                run("systemctl", "restart", UNIT)
                mounted = self.next_mount()
                wait_for("the record", partial(_is_recorded, mounted))
                assert mounted.read_ahead_kb == KERNEL_KB
            self._killed_service("between the record of a mount and its value", mounted)

    def _killed_service(self, moment: str, mounted: Mounted) -> None:
        for pid in service_pids(b""):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        row: Row = {"part": "service", "moment": moment, "value_kb": mounted.read_ahead_kb}
        self._add(row, mounted, self.tree, time.monotonic())

    def held_values(self) -> None:
        """Take the values back, and let both versions leave them alone. Raises AssertionError."""
        with self.use.changing():
            self.undo()
            for each in (self.first, self.tree):
                run("dpkg", "--install", each.deb, timeout=INSTALL_S)
                self._all_have(KERNEL_KB)
            self._apply()
        save({"part": "held", "mounts": 2 + IDLE, "versions": [self.first.name, self.tree.name]})

    def newer_configuration(self) -> None:
        """Give 0.1.0 a configuration with a key that it does not know; it must change no value."""
        self.daemon.configure(CONFIGURATION + 'adapt = "off"\n')
        run("systemctl", "restart", UNIT)
        mounted = self.next_mount()
        time.sleep(QUIET_S)
        value_kb = mounted.read_ahead_kb
        tuned(KB, *self.used, *self.idle[:-1], seconds=SERVICE_S)
        upgrade_by_apt(self.tree)
        assert dpkg_state() == f"installed {self.tree.name}"
        tuned(KB, mounted, seconds=SERVICE_S)
        self.use.watch(mounted)
        save({"part": "configuration", "value_kb": value_kb, "again_kb": mounted.read_ahead_kb})

    def killed_installation(self) -> None:
        """Kill the first installation while the service begins; complete it after a mount of the service."""
        existing = [*self.used, *self.idle]
        change = Change(self.first, self.tree, 0)
        row: Row = {"part": "installation", "moment": MOMENTS[-1].name}
        row["killed_s"] = round(change.kill_at(MOMENTS[-1].reached), 1)
        row["state"] = dpkg_state()
        wait_for("the service", lambda: self.daemon.active, SERVICE_S)
        new = self.mount("c", "vers=4.2,nosharecache")
        tuned(BUILT_IN_KB, new, seconds=SERVICE_S)
        row["completed"] = list(complete(self.first, self.tree))
        run("systemctl", "restart", UNIT)
        self._all_have(KERNEL_KB)
        rows = status_rows()
        faults = [str(each.point) for each in existing if rows[str(each.point)]["hold"] != "existing"]
        if new.read_ahead_kb != BUILT_IN_KB or rows[str(new.point)]["hold"] is not None:
            faults.append(str(new.point))
        self.sound &= not faults
        save(row | {"held": len(existing), "faults": faults})

    def purged(self) -> list[str]:
        """Purge, and return the paths that stay or differ. Raises CommandError."""
        run("dpkg", "--purge", "nfstuned", timeout=INSTALL_S)
        left = [path for path in paths(*CHECKED) if "nfstuned" in path]
        return left + difference(self.rules, view())


def unsound(row: Row) -> bool:
    """Whether a kill had an effect on a value or on a file's data, or an effect that stayed.

    A kill of the service can meet the command that masks udev's rule. The unit ignores its failure: the
    service sets its values again after the rule.
    """
    faults = [fault for fault in row["faults"] if (row["part"], fault) != ("service", NOT_MASKED)]
    return bool(row.get("wrong") or row.get("io_errors") or faults)


def orphans() -> set[str]:
    """Return the compiled files without a source, which nothing loads."""
    sources = ((path, path.parents[1] / f"{path.name.partition('.')[0]}.py") for path in compiled())
    return {str(path) for path, source in sources if not source.exists()}


def _is_recorded(mounted: Mounted) -> bool:
    inode = (BDI / mounted.device / "read_ahead_kb").stat().st_ino
    record = State(Root()).get(mounted.device)
    return record is not None and record.bdi == inode


def paths(*folders: str) -> Iterator[str]:
    """Yield each file and folder below the folders."""
    for folder in folders:
        for place, names, files in os.walk(folder):
            yield from (f"{place}/{name}" for name in (*names, *files))


def save(row: Row) -> None:
    with RESULTS.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(f"lab: {row}", flush=True)


def main(part: str) -> int:
    """Carry out a part; return the exit status: 0 where nothing was wrong."""
    proof = Proof()
    try:
        _carry_out(part, proof)
    except (CommandError, AssertionError) as error:
        print(f"@failed {error}", flush=True)
        return 1
    finally:
        proof.use.end()
        print("\n".join(("lab: wrong:", *proof.use.wrong[:20], *proof.use.io_errors[:20])), flush=True)
    use = {"mounts": 2 + IDLE, "looks": proof.use.looks, "blocks": proof.use.blocks, "undone": proof.undone}
    values = {"kb": KB, "kernel_kb": KERNEL_KB}
    save({"part": "run", "date": time.strftime("%Y-%m-%d", time.gmtime()), **use, **values})
    return 0 if proof.sound else 1


def _carry_out(part: str, proof: Proof) -> None:
    for number, moment in enumerate(PARTS[part]):
        for old, new in ((proof.first, proof.tree), (proof.tree, proof.first)):
            proof.killed_change(old, new, moment)
            if number % RECORDS_AT == 0:
                proof.undo_and_apply()
    if part != REST:
        return
    proof.newer_configuration()
    proof.killed_starts()
    proof.held_values()
    with proof.use.changing():
        proof.undo()
        left = proof.purged()
        proof.killed_installation()
        left += proof.purged()
    proof.sound &= not left
    save({"part": "purge", "left": left})


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
