"""What nfstuned and other tools say of reads, each asked as its users ask it, its own figures added up."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.lab.kit.daemon import Daemon, nfstuned_json
from tests.lab.kit.metrics import series, total
from tests.lab.kit.shell import attempt, run, wait_for
from tests.lab.kit.unit import let_tick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Say = Callable[[], "Figures"]

INTERVAL_S = 60
"""Of nfsiostat: the load has to begin and end in it, in emulation."""
_PATIENCE_S = 280
"""For what starts services: less than a guest may be silent."""
_EXPORTER = "127.0.0.1:9101"
_PMDA = Path("/var/lib/pcp/pmdas/nfsclient")
_PMCD_OPTIONS = Path("/etc/pcp/pmcd/pmcd.options")
_PMCD_PATIENT = "-q 60\n-t 60\n"
"""An agent that has not replied for 5 s would be given up, and in emulation its start may take longer."""


@dataclass(frozen=True)
class Figures:
    """Of reads, what somebody counted; None where it does not say."""

    entries: float | None
    """How many mounts, superblocks or exports it lists."""
    read_bytes: float | None
    """What programs read."""
    server_bytes: float | None
    """What the server sent for it; with nfsiostat also the headers of requests and replies."""
    requests: float | None
    """READ and READ_PLUS."""
    connections: float | None = None

    def since(self, before: Figures) -> Figures:
        """Return what was counted in between; entries and connections are what there is."""
        return Figures(
            self.entries,
            _grown(before.read_bytes, self.read_bytes),
            _grown(before.server_bytes, self.server_bytes),
            _grown(before.requests, self.requests),
            self.connections,
        )


def _grown(before: float | None, now: float | None) -> float | None:
    return None if before is None or now is None else now - before


@contextlib.contextmanager
def nfstuned(points: Sequence[str]) -> Iterator[Say]:
    """The installed service, asked with `nfstuned samples`."""
    del points
    daemon = Daemon()
    daemon.clean()
    daemon.configure('[daemon]\nsample_interval = "2s"\n')
    since = f"@{time.time():.0f}"
    daemon.start()
    try:
        let_tick(daemon)

        def say() -> Figures:
            let_tick(daemon)
            return _samples(since)

        yield say
    finally:
        daemon.clean()


def _samples(since: str) -> Figures:
    found: Any = nfstuned_json("samples", "--since", since)["samples"]
    last = {one["transport"]["group"]: one["transport"]["connections"] for one in found}
    return Figures(
        len({one["device"] for one in found}),
        sum(one["read_bytes_per_s"] * one["interval_s"] for one in found),
        sum(one["server_read_bytes_per_s"] * one["interval_s"] for one in found),
        sum(one["kinds"]["read"]["per_s"] * one["interval_s"] for one in found if "read" in one["kinds"]),
        sum(last.values()),
    )


@contextlib.contextmanager
def nfsiostat(points: Sequence[str]) -> Iterator[Say]:
    """nfs-utils' own, over an interval."""
    with tempfile.NamedTemporaryFile("r", prefix="lab-nfsiostat-") as output:
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        argv = ["nfsiostat", str(INTERVAL_S), "2", *points]
        with Path(output.name).open("w") as stdout:
            process = subprocess.Popen(argv, stdout=stdout, stderr=subprocess.STDOUT, env=environment)

        def listed() -> list[str]:
            return re.split(r"^.* mounted on .*:$", Path(output.name).read_text(), flags=re.MULTILINE)[1:]

        try:
            # The report of the time before is complete when the last mount's writes are.
            wait_for(
                "nfsiostat's first report", lambda: sum("write:" in one for one in listed()) == len(points)
            )

            def say() -> Figures:
                if process.poll() is not None:
                    raise ValueError(f"the load took longer than nfsiostat's interval of {INTERVAL_S} s")
                process.wait(2 * INTERVAL_S)
                return _iostat(listed()[len(points) :])

            yield say
        finally:
            process.kill()
            process.wait()


def _iostat(mounts: Sequence[str]) -> Figures:
    """Return the figures of a report; its rates are of the interval as it was asked for."""
    rows = [
        re.search(r"^read: +ops/s +kB/s .*\n +([0-9.]+) +([0-9.]+) ", one, re.MULTILINE) for one in mounts
    ]
    known = [row for row in rows if row is not None]
    if len(known) != len(rows):
        raise ValueError(f"no line of reads in nfsiostat's report: {mounts}")
    ops = sum(float(row[1]) for row in known) * INTERVAL_S
    wire = sum(float(row[2]) for row in known) * INTERVAL_S * 1024
    return Figures(len(known), None, wire, ops)


@contextlib.contextmanager
def mountstats(points: Sequence[str]) -> Iterator[Say]:
    """nfs-utils' own, with --since."""
    with tempfile.NamedTemporaryFile("w", prefix="lab-mountstats-") as before:
        before.write(Path("/proc/self/mountstats").read_text())
        before.flush()

        def say() -> Figures:
            asked = ("--since", before.name, *points)
            bytes_of = run("mountstats", "mountstats", "--nfs", *asked)
            ops_of = run("mountstats", "mountstats", "--rpc", *asked)
            return Figures(
                bytes_of.count("Stats for "),
                sum(_all(r"applications read (\d+) bytes via ", bytes_of, 2 * len(points))),
                sum(_all(r"client read (\d+) bytes via NFS READ", bytes_of, len(points))),
                sum(map(float, re.findall(r"^READ(?:_PLUS)?:\n\t(\d+) ops ", ops_of, re.MULTILINE))),
            )

        yield say


def _all(pattern: str, text: str, number: int) -> list[float]:
    found = re.findall(pattern, text)
    if len(found) != number:
        raise ValueError(f"{len(found)} of {number} times {pattern!r} in: {text}")
    return [float(one) for one in found]


@contextlib.contextmanager
def node_exporter(points: Sequence[str]) -> Iterator[Say]:
    """Debian's, with its collector of mountstats."""
    del points
    argv = ["prometheus-node-exporter", "--collector.disable-defaults", "--collector.mountstats"]
    with subprocess.Popen([*argv, f"--web.listen-address={_EXPORTER}", "--log.level=error"]) as process:
        try:
            wait_for("node_exporter answers", lambda: _scraped() is not None)
            before = _exported()
            yield lambda: _exported().since(before)
        finally:
            process.terminate()


def _scraped() -> str | None:
    try:
        with urllib.request.urlopen(f"http://{_EXPORTER}/metrics", timeout=20) as answer:
            return str(answer.read().decode())
    except OSError:
        return None


def _exported() -> Figures:
    found = series(_scraped() or "")
    name = "node_mountstats_nfs_{}_total".format
    reads = (
        total(found, name("operations_requests"), operation=operation) for operation in ("READ", "READ_PLUS")
    )
    entries = sum(1 for each, _ in found if each == name("read_bytes"))
    if not entries:
        raise ValueError(f"node_exporter shows no mounts: {sorted({each for each, _ in found})}")
    programs = total(found, name("read_bytes")) + total(found, name("direct_read_bytes"))
    return Figures(entries, programs, total(found, name("total_read_bytes")), sum(reads))


@contextlib.contextmanager
def pcp(points: Sequence[str]) -> Iterator[Say]:
    """Debian's, with its agent for NFS clients, which is in the package and has to be installed."""
    del points
    with _PMCD_OPTIONS.open("a") as file:
        file.write(_PMCD_PATIENT)
    run("systemctl", "start", "pmcd", timeout=_PATIENCE_S)
    try:
        run("sh", "-c", f"cd {_PMDA} && exec ./Install </dev/null", timeout=_PATIENCE_S)
        before = _fetched()
        yield lambda: _fetched().since(before)
    finally:
        attempt("systemctl", "stop", "pmcd", timeout=_PATIENCE_S)


def _fetched() -> Figures:
    normal, direct = _values("bytes.read.normal"), _values("bytes.read.direct")
    if not normal:
        raise ValueError("PCP shows no mounts")
    # An operation that its agent does not know has no value, and the agent no metric.
    reads = _values("ops.read.ops")
    return Figures(
        len(normal),
        sum(normal) + sum(direct),
        sum(_values("bytes.read.server")),
        sum(reads) if reads else None,
    )


def _values(name: str) -> list[float]:
    said = run("pminfo", "-f", f"nfsclient.{name}", timeout=_PATIENCE_S)
    return [float(value) for value in re.findall(r'^ +inst \[\d+ or ".*"\] value (\d+)$', said, re.MULTILINE)]
