"""The soak: the service for hours under mixed load, outages, rivals and restarts, and its judgement.

The arguments are hours and a seed. Leaves `soak.jsonl` among the results: a line for each event and each ten
seconds, and at last the summary. A line a minute goes to the terminal, for a guest that is lost. The observer
reads /sys itself; the service's own words count only as far as they must fit what it reads.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit import judge, trouble
from tests.lab.kit.daemon import UNIT, status_rows
from tests.lab.kit.judge import Fate, Settings, StallEntry, Values, growth, quantile
from tests.lab.kit.mounts import BDI, SUPERBLOCKS, requests_of
from tests.lab.kit.server import Server
from tests.lab.kit.shell import run
from tests.lab.kit.trouble import ACTORS, World
from tests.lab.kit.tunnel import tunnel
from tests.lab.kit.unit import process_status

RESULTS = Path("/results/soak.jsonl")
LOOK_S, METER_S, STATUS_S, SAY_S = 0.05, 10.0, 120.0, 60.0
REST_S = 300.0
"""For the last stalls to end, when the actors have stopped."""
_TICKS = os.sysconf("SC_CLK_TCK")
_NAMES = {message.id: message.name for message in Message}
_ENDS = {"STALLED": False, "STALL_ENDED": True}
_FIELDS = "MESSAGE,MESSAGE_ID,NFSTUNED_MOUNT_POINT"


@dataclass(eq=False)
class Recorder:
    """Keeps each event as a line of JSON, with the seconds since the begin, and counts the kinds."""

    began: float = field(default_factory=time.monotonic)
    counts: Counter[str] = field(default_factory=Counter)
    troubles: list[dict[str, Any]] = field(default_factory=list)
    """Events that alone make the soak fail."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, kind: str, **fields: object) -> None:
        row = {"t": round(time.monotonic() - self.began, 3), "kind": kind}
        row |= {
            name: round(value, 3) if isinstance(value, float) else value for name, value in fields.items()
        }
        with self._lock, RESULTS.open("a") as file:
            file.write(json.dumps(row) + "\n")
            self.counts[kind] += 1

    def trouble(self, kind: str, **fields: object) -> None:
        """Keep an event that must not be; print it at once."""
        self.say(kind, **fields)
        if len(self.troubles) < judge.MOST_WRONG:
            self.troubles.append({"kind": kind, **fields})
        at = time.monotonic() - self.began
        print(f"soak: {at:.0f} s: {kind}: {json.dumps(fields)}", flush=True)


@dataclass(eq=False)
class Follower:
    """Reads the service's journal as it grows: later, journald may have dropped the entries."""

    world: World
    recorder: Recorder
    counts: Counter[str] = field(default_factory=Counter)
    stalls: list[StallEntry] = field(default_factory=list)
    left: set[str] = field(default_factory=set)
    """Mounts that the service says it has left to another writer."""
    version: str = ""
    _cursor: str = ""
    _process: subprocess.Popen[str] | None = None
    _ending: bool = False

    def run(self) -> None:
        while not self._ending:
            where = ("--after-cursor", self._cursor) if self._cursor else ("--since", "now")
            argv = ["journalctl", "-f", "--no-tail", "-q", "-o", "json", "-u", UNIT, *where]
            argv.append(f"--output-fields={_FIELDS}")
            with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as self._process:
                assert self._process.stdout is not None
                for line in self._process.stdout:
                    self._take(json.loads(line))
            time.sleep(0.5)

    def end(self) -> None:
        run("journalctl", "--sync")
        time.sleep(2)
        self._ending = True
        if self._process is not None:
            self._process.terminate()

    def _take(self, entry: dict[str, str]) -> None:
        self._cursor = entry["__CURSOR"]
        name, text = _NAMES.get(entry.get("MESSAGE_ID", ""), "other"), entry.get("MESSAGE", "")
        at, point = int(entry["__MONOTONIC_TIMESTAMP"]) / 1e6, entry.get("NFSTUNED_MOUNT_POINT", "")
        self.counts[name] += 1
        if name in _ENDS:
            self.stalls.append(StallEntry(point, at, _ENDS[name]))
        if name in {"CONFIG_LOADED", "CONFIG_INVALID"}:
            self.world.configurations.append(name == "CONFIG_LOADED")
        if name == "STARTED":
            self.version = text.removeprefix("nfstuned ")
        if name == "READ_AHEAD_LEFT":
            self.left.add(point)
        if name in {"CYCLE_FAILED", "READ_AHEAD_FAILED"}:
            self.recorder.trouble("failed", message=name, text=text)
        elif name != "SAMPLE":
            self.recorder.say("entry", message=name, point=point, text=text[:200])


@dataclass(eq=False)
class Observer:
    """Reads the value of each mount from sysfs, again and again."""

    world: World
    recorder: Recorder
    longest_gap_s: float = 0.0
    """Between two looks: so long the guest, or this program, stood still."""
    ended: bool = False
    _reported: int = 0

    def run(self) -> None:
        before = time.monotonic()
        while not self.ended:
            time.sleep(LOOK_S)
            values = self.world.values
            with self.world.lock:
                for used in self.world.live:
                    # A mount whose value cannot be read is gone, and its next look is none.
                    with suppress(OSError):
                        used.watched.look()
                        values.look(used.point, time.monotonic(), used.watched.values[-1][1])
                    del used.watched.values[:-1]
                new = list(values.wrong.values())[self._reported :]
            for wrong in new:
                self._reported += 1
                self.recorder.trouble("wrong value", **asdict(wrong))
            now = time.monotonic()
            self.longest_gap_s, before = max(self.longest_gap_s, now - before), now


@dataclass(eq=False)
class Meter:
    """Measures the service's process, compares its status with sysfs, and watches the other devices."""

    world: World
    recorder: Recorder
    rows: list[dict[str, Any]] = field(default_factory=list)
    pids: list[int] = field(default_factory=list)
    listed: list[tuple[float, frozenset[str]]] = field(default_factory=list)
    """The mounts with a request in the kernel's list, by time. Empty before Linux 6.5."""
    _disks: dict[str, str] = field(default_factory=lambda: _disk_values())

    def measure(self) -> dict[str, Any]:
        show = run("systemctl", "show", UNIT, "--property=MainPID,NRestarts").split()
        pid, restarts = (int(word.partition("=")[2]) for word in sorted(show))
        if pid not in self.pids:
            self.pids.append(pid)
        row: dict[str, Any] = {"pid": pid, "restarts": restarts, "mounts": len(self.world.live)}
        with suppress(OSError):
            status = process_status(pid)
            row |= {"rss_kb": int(status["VmRSS"].split()[0]), "threads": int(status["Threads"])}
            row |= {"anon_kb": int(status["RssAnon"].split()[0])}
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            row |= {"pss_kb": next(int(line.split()[1]) for line in rollup.splitlines() if "Pss:" in line)}
            row |= {"fds": len(os.listdir(f"/proc/{pid}/fd"))}
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            row |= {"cpu_s": (int(stat[11]) + int(stat[12])) / _TICKS}
        self.recorder.say("meter", **row)
        self.rows.append({"t": time.monotonic() - self.recorder.began, **row})
        with self.world.lock:
            devices = {used.watched.device: used.point for used in self.world.live}
        # /sys/fs/nfs itself is older than the folders in it.
        if any((SUPERBLOCKS / device).exists() for device in devices):
            points = (point for device, point in devices.items() if _is_listed(device))
            self.listed.append((time.monotonic(), frozenset(points)))
        if (disks := _disk_values()) != self._disks:
            self.recorder.trouble("other device", before=self._disks, now=disks)
            self._disks = disks
        return row

    def compare(self) -> bool:
        """Hold the status to sysfs, its value and its target; return False during a reload or a contest.

        The command reads the configuration's file: while that is invalid, it shows no target.
        """
        if not self.world.calm.acquire(blocking=False):
            return False
        try:
            self._compare()
        finally:
            self.world.calm.release()
        return True

    def _compare(self) -> None:
        before = self._settled()
        try:
            rows = status_rows()
        except (AssertionError, ValueError, subprocess.TimeoutExpired) as error:
            self.recorder.trouble("status", why=f"{type(error).__name__}: {error}"[:300])
            return
        after = self._settled()
        for point, (kb, kind) in before.items():
            row = rows.get(point)
            if after.get(point) != (kb, kind) or row is None:
                continue
            shown = (row["read_ahead_kb"], row["read_ahead_target_kb"])
            self.recorder.counts["compared"] += 1
            # A loop may have moved the value there and back meanwhile: then the next turn compares.
            if shown != (kb, kb):
                self.recorder.trouble("status", point=point, mount=kind, sysfs=kb, shown=shown)

    def _settled(self) -> dict[str, tuple[int, str]]:
        """Return the values that are right, and were not disturbed within the grace."""
        now, found = time.monotonic(), {}
        with self.world.lock:
            for used in self.world.live:
                judged = self.world.values.mounts[used.point]
                settled = judged.is_right and now - judged.disturbed > judge.GRACE_S
                if settled and judged.fate is Fate.ANSWERED and len(self.world.values.in_force) == 1:
                    found[used.point] = (used.watched.values[-1][1], judged.kind)
        return found


def _is_listed(device: str) -> bool:
    """Return whether the RPC client of a superblock has a request in the kernel's list."""
    try:
        return bool(requests_of(device))
    except OSError:  # unmounted meanwhile
        return False


def _disk_values() -> dict[str, str]:
    """Return the read-ahead of each block device: no file system over a network has such a number."""
    files = (folder / "read_ahead_kb" for folder in BDI.iterdir() if not folder.name.startswith("0:"))
    return {file.parent.name: file.read_text().strip() for file in files}


def _guarded(recorder: Recorder, name: str, work: Callable[[], object]) -> threading.Thread:
    """Start a thread; its end by an error makes the soak fail."""

    def guard() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - no error of a thread may go unseen
            recorder.trouble("the soak's own error", actor=name, why=f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=guard, daemon=True, name=name)
    thread.start()
    return thread


def main(hours: float, seed: int) -> int:
    """Soak for so long; return the exit status: 0 without a wrong value, stall, restart or growth."""
    print(f"soak: {hours:g} hours on {platform.release()}, seed {seed}", flush=True)
    settings, server, recorder = Settings(), Server(), Recorder()
    world = World(server, Values(settings), recorder.say)
    server.start()
    trouble.lay_out(world)
    # A kernel that hangs says where: the console is among the results.
    Path("/proc/sys/kernel/printk").write_text("7")
    with tunnel():
        follower = Follower(world, recorder)
        _guarded(recorder, "journal", follower.run)
        _guarded(recorder, "writers", world.writers.run)
        time.sleep(2)
        world.daemon.start(settings.text())
        observer, meter = Observer(world, recorder), Meter(world, recorder)
        watching = _guarded(recorder, "observer", observer.run)
        turns = [Random(f"{seed} {number}") for number, _ in enumerate(ACTORS)]  # noqa: S311 - no secrets
        actors = [
            _guarded(recorder, actor.__name__, partial(actor, world, random))
            for actor, random in zip(ACTORS, turns, strict=True)
        ]
        began = time.monotonic()
        _watch(meter, follower, began + hours * 3600)
        world.stop.set()
        for actor in actors:
            actor.join(REST_S)
            if actor.is_alive():
                recorder.trouble("the soak's own error", actor=actor.name, why="it does not end")
        lasted_s = time.monotonic() - began
        _rest(world, follower)
        meter.compare()
        meter.measure()
        observer.ended = True
        watching.join()
        follower.end()
        for used in list(world.live):
            trouble.unmount(world, used)
        world.writers.kill()
        summary = _summary((recorder, world, follower, observer, meter), lasted_s)
    summary |= {"release": platform.release(), "seed": seed, "hours": round(lasted_s / 3600, 3)}
    recorder.say("summary", **summary)
    for line in summary["faults"]:
        print(f"soak: {line} (seed {seed})", flush=True)
    print(f"soak: {json.dumps({k: v for k, v in summary.items() if k != 'faults'})}", flush=True)
    return 1 if summary["faults"] else 0


def _watch(meter: Meter, follower: Follower, end: float) -> None:
    """Measure until the end, with a line a minute."""
    compared = said = began = time.monotonic()
    while (now := time.monotonic()) < end:
        row = meter.measure()
        if now - said >= SAY_S:
            said = now
            world, recorder = meter.world, meter.recorder
            print(
                f"soak: {now - began:.0f} s, {end - now:.0f} left: RSS {row.get('rss_kb')} KiB, "
                f"{row.get('fds')} fds, CPU {row.get('cpu_s')} s, {row['mounts']} mounts, "
                f"{len(world.values.first_s)} made, {len(world.outages)} outages, "
                f"{sum(follower.counts.values())} entries, {len(recorder.troubles)} troubles",
                flush=True,
            )
        if now - compared >= STATUS_S and meter.compare():
            compared = now
        time.sleep(max(0.0, METER_S - (time.monotonic() - now)))


def _rest(world: World, follower: Follower) -> None:
    """Wait until the last stalls are over, and the last values had their time."""
    end = time.monotonic() + REST_S
    time.sleep(judge.GRACE_S + judge.MARGIN_S)
    while judge.unended(_mounted(world, follower)) and time.monotonic() < end:
        time.sleep(2)


def _mounted(world: World, follower: Follower) -> list[StallEntry]:
    here = {used.point for used in world.live}
    return [entry for entry in follower.stalls if entry.point in here]


Parts = tuple[Recorder, World, Follower, Observer, Meter]


def _summary(parts: Parts, lasted_s: float) -> dict[str, Any]:
    recorder, world, follower, observer, meter = parts
    values, hours, began = world.values, lasted_s / 3600, recorder.began
    reported, missed = judge.due(world.outages, world.waits, follower.stalls)
    unlisted = [one for one in missed if meter.listed and not judge.is_listed(one, meter.listed)]
    for wait in unlisted:
        missed.remove(wait)
        since = wait.began - began
        recorder.say("unlisted", point=wait.point, since=since, took_s=wait.ended - wait.began)
    servers, addresses = set(world.addresses.values()), world.addresses
    waiting, broken = judge.waiting(world.waits, servers), judge.broken(world.outages, servers)
    made_up = judge.outside(waiting, addresses, follower.stalls)
    lone = judge.outside(broken, addresses, follower.stalls)
    time_s = (began, began + lasted_s)
    unended = judge.unended(_mounted(world, follower))
    alive = [row for row in meter.rows if "fds" in row]
    later = [row for row in alive if row["t"] >= lasted_s / 10]
    keys = ("rss_kb", "pss_kb", "anon_kb", "fds")
    both = {key: judge.trends([(row["t"], row[key]) for row in later]) for key in keys}
    restarts = len(meter.pids) - 1 + max(row["restarts"] for row in meter.rows)
    faults = [
        f"{sum(1 for one in recorder.troubles if one['kind'] == kind)} times: {kind}"
        for kind in dict.fromkeys(one["kind"] for one in recorder.troubles)
    ]
    faults += [f"a stall without an entry: {one.point}, from {one.began - began:.0f} s on" for one in missed]
    faults += [f"a stall was made up: {one.point}, at {one.at - began:.0f} s" for one in made_up]
    faults += [f"a stall has no end: {one.point}, at {one.at - began:.0f} s" for one in unended]
    faults += [f"left to a rival without a word: {point}" for point in sorted(values.left - follower.left)]
    faults += [f"the service was restarted {restarts} times"] if restarts else []
    lost = [kind for kind in ("reload lost", "stuck") if recorder.counts[kind]]
    faults += [f"{recorder.counts[kind]} times: {kind}" for kind in lost]
    # RSS falls when the kernel reclaims pages of files, and PSS rises when other programs drop shared pages.
    if growing := judge.grows((later[-1]["t"] - later[0]["t"]) / 3600, *both["anon_kb"]):
        faults.append(f"the memory grows: {growing}")
    cpu = growth([(row["t"], row["cpu_s"]) for row in alive])
    return {
        "faults": faults,
        "version": follower.version,
        "events": dict(recorder.counts),
        "entries": dict(follower.counts),
        "writes": sum(
            follower.counts[f"READ_AHEAD_{word}"] for word in ("SET", "ADAPTED", "CONTESTED", "RESTORED")
        ),
        "wrong": len(values.wrong) + sum(recorder.counts[kind] for kind in ("status", "other device")),
        "missed": len(missed),
        "due": len(reported) + len(missed),
        "due_s": judge.DUE_S,
        "unlisted": len(unlisted) if meter.listed else None,
        "made_up": len(made_up),
        "made_up_part": round(judge.outside_part(waiting, *time_s), 3),
        "outside_outages": len(lone),
        "outside_outages_part": round(judge.outside_part(broken, *time_s), 3),
        "reported_stalls": follower.counts["STALLED"],
        "restarts": restarts,
        "first_ms": [round(quantile(values.first_s, part) * 1e3, 1) for part in (0.5, 0.99, 1)],
        "again_ms": [round(quantile(values.again_s, part) * 1e3, 1) for part in (0.5, 0.99, 1)],
        "mounts": len(values.first_s),
        "through_tls": len(world.tls),
        "trends": {key: [round(part, 2) for part in whole] for key, (whole, _) in both.items()},
        "later": {key: [round(part, 2) for part in half] for key, (_, half) in both.items()},
        "judged_by": "anon_kb",
        **{key: [later[0][key], later[-1][key], max(row[key] for row in alive)] for key in keys},
        "cpu_percent": round(100 * sum(rate for _, rate in cpu) / max(1, len(cpu)), 2),
        "entries_an_hour": round(sum(follower.counts.values()) / hours),
        "moved_bytes": world.moved_bytes,
        "longest_gap_s": round(observer.longest_gap_s, 2),
    }


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2])))
