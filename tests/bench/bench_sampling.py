"""Print the cost of a sample every 10 s, and node_exporter's: python -m tests.bench.bench_sampling [MOUNTS].

The service's own tick on a tree of a host with 200 NFSv4.1 mounts: its look at all superblocks, the sample,
and an entry in the journal for each mount in use, which goes nowhere here. node_exporter has its collector of
mountstats alone and is asked as often; its CPU time is its own metric, and includes the text of all counters,
where nfstuned sends changes. Where it is not installed, Debian's package is downloaded and unpacked next to
the tree; without it, a line says that its half is left out. The tree's files are written before anybody reads
them: neither figure has the time that a kernel takes to print them.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nfstuned.daemon.reporter import Reporter
from nfstuned.daemon.sampler import Sampler
from nfstuned.daemon.tuner import Tuner
from nfstuned.host.config import builtin_policy
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Journal
from tests.bench.bench_mountstats import DATA, lease, stanza

MOUNTS, INTERVAL_S = 200, 10
ROUNDS, SCRAPES = 25, 3
USED = ("READ", "WRITE", "GETATTR", "ACCESS", "LOOKUP", "OPEN", "CLOSE", "COMMIT")
PACKAGE = "prometheus-node-exporter"
CPU = re.compile(r"^process_cpu_seconds_total (\S+)$", re.MULTILINE)


def host(tree: Path, mounts: int) -> None:
    """Write the kernel's files of so many mounts of one server, but for their counters."""
    lines = (DATA / "mountinfo").read_text().splitlines(keepends=True)
    mine = next(line for line in lines if " sa1." in line)
    process, bdis = tree / "proc/1", tree / "sys/class/bdi"
    (process / "net/nfsfs").mkdir(parents=True)
    (tree / "proc/self").symlink_to("1")
    rows, shown = [], []
    for n in range(mounts):
        (bdis / f"0:{100 + n}").mkdir(parents=True)
        (bdis / f"0:{100 + n}/read_ahead_kb").write_text("128\n")
        line = placed(mine.split(" ", 1)[1], n).replace(" 0:46 ", f" 0:{100 + n} ", 1)
        shown.append(f"{1000 + n} {line}")
        rows.append(f"v4 0a0a0a0a  801 {f'0:{100 + n}':<12} e:0                               no \n")
    (process / "mountinfo").write_text("".join([*(line for line in lines if " nfs" not in line), *shown]))
    (process / "net/nfsfs/volumes").write_text("NV SERVER   PORT DEV          FSID  FSC\n" + "".join(rows))


def placed(text: str, n: int) -> str:
    """The mount of another share at a place of its own: node_exporter takes those of one share for one."""
    return text.replace(".net:/a ", f".net:/a{n} ", 1).replace(" /mnt/2 ", f" /mnt/{n} ", 1)


def counters(tree: Path, used: Sequence[int], step: int) -> None:
    """Write the counters at a step: of each mount so many operations of `used` have grown since the last."""
    idle = stanza() if step < 1 else lease(stanza())
    parts = []
    for n, operations in enumerate(used):
        text = placed(idle, n)
        for name in USED[:operations]:
            ops = 70_000 + (step * (n + 7))
            line = rf"\1: {ops} {ops} 0 9394752 73400320 {4433 + ops} {91242 + ops} {99679 + ops} 0"
            text = re.sub(rf"( {name}): .*", line, text)
        moved = 8388608 + step * operations * 4096
        parts.append(text.replace("bytes:\t8388608 8388608", f"bytes:\t{moved} {moved}"))
    (tree / "proc/1/mountstats").write_text("".join(parts))


def ticks(tree: Path, used: Sequence[int]) -> tuple[float, float, int]:
    """Return the mean CPU seconds of a look and of a sample, and how many entries one sample had."""
    entries = 0

    def write(*fields: bytes) -> None:
        nonlocal entries
        entries += os.write(nowhere, b"\n".join(fields)) > 0

    nowhere = os.open(os.devnull, os.O_WRONLY)
    root, journal = Root(str(tree)), Journal(write)
    reporter = Reporter(journal)
    tuner = Tuner(root, reporter, time.monotonic)
    sampler = Sampler(root, journal, reporter)
    tuner.policy = policy = builtin_policy()
    looked = sampled = 0.0
    for step in range(-1, ROUNDS):
        counters(tree, used, step)
        start = time.process_time()
        tuner.look(deep=False)
        middle = time.process_time()
        sampler.sample(tuner.snapshot, policy)
        if step < 0:  # the first look tunes, and has nothing to compare with
            entries = 0
            continue
        looked, sampled = looked + middle - start, sampled + time.process_time() - middle
    os.close(nowhere)
    return looked / ROUNDS, sampled / ROUNDS, entries // ROUNDS


def exporter(folder: Path) -> str | None:
    """Return the path of node_exporter; None where it can be neither found nor downloaded."""
    installed = shutil.which(PACKAGE) or shutil.which("node_exporter")
    if installed or not shutil.which("apt-get"):
        return installed
    subprocess.run(["apt-get", "-qq", "download", PACKAGE], cwd=folder, capture_output=True, check=False)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder / "unpacked"], check=True)
        return str(folder / f"unpacked/usr/bin/{PACKAGE}")
    return None


@contextmanager
def served(program: str, tree: Path) -> Iterator[Callable[[], str]]:
    """Run node_exporter on the tree, and yield a function that asks it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    options = ("--collector.disable-defaults", "--collector.mountstats", "--log.level=error")
    argv = [program, *options, f"--path.procfs={tree}/proc", f"--web.listen-address={address}"]
    process = subprocess.Popen(argv)

    def ask() -> str:
        with urllib.request.urlopen(f"http://{address}/metrics") as answer:
            found: str = answer.read().decode()
        return found

    try:
        for _ in range(100):
            try:
                ask()
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        yield ask
    finally:
        process.terminate()
        process.wait()


def scrapes(program: str, tree: Path, used: Sequence[int]) -> float:
    """Return the mean CPU seconds of a scrape."""
    with served(program, tree) as ask:
        begun = spent(ask())
        for step in range(SCRAPES):
            counters(tree, used, step)
            text = ask()
        if text.count("node_mountstats_nfs_age_seconds_total{") != len(used):
            raise SystemExit(f"node_exporter does not show {len(used)} mounts")
        # An answer does not include its own time: this request is for the time of the last.
        return (spent(ask()) - begun) / (SCRAPES + 1)


def spent(text: str) -> float:
    """Return the CPU seconds that node_exporter says it took since it began."""
    found = CPU.search(text)
    if found is None:
        raise SystemExit("node_exporter does not report its CPU time")
    return float(found[1])


def share(seconds: float) -> str:
    """Return CPU time of each interval as a part of one processor."""
    return f"{100 * seconds / INTERVAL_S:8.3f} %"


def main() -> None:
    mounts = int(sys.argv[1]) if len(sys.argv) > 1 else MOUNTS
    print(f"{mounts} NFSv4.1 mounts, nconnect=4: CPU time each {INTERVAL_S} s, and that of one processor")
    columns = f"{'look':>11} {'sample':>11} {'together':>10} {'node_exporter':>16}"
    print(f"{'':<40} {columns}")
    situations = {
        "no mount in use": [0] * mounts,
        "10 % in use, 8 operations each": [8 if n % 10 == 0 else 0 for n in range(mounts)],
        "all in use, 8 operations each": [8] * mounts,
    }
    with tempfile.TemporaryDirectory(prefix="nfstuned-bench-") as name:
        program = exporter(Path(name))
        for number, (situation, used) in enumerate(situations.items()):
            tree = Path(name) / str(number)
            host(tree, mounts)
            looked, sampled, entries = ticks(tree, used)
            if entries != sum(operations > 0 for operations in used):
                raise SystemExit(f"the bench does not measure its situation: {entries} entries")
            theirs = scrapes(program, tree, used) if program else 0.0
            beside = f"{theirs * 1e3:6.1f} ms {share(theirs)}" if program else "not to be had"
            times = f"{looked * 1e3:8.1f} ms {sampled * 1e3:8.1f} ms {share(looked + sampled)}"
            print(f"{situation:<40} {times} {beside}", flush=True)


if __name__ == "__main__":
    main()
