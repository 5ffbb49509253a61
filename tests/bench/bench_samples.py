"""Print the cost of reading a day of samples: python -m tests.bench.bench_samples [MOUNTS].

200 mounts and a sample of each every 60 s, of eight operations, from a file of JSON lines and, as root, from
a journal that systemd-journald has written. Time is of the whole command; memory is the peak of its own
(RssAnon). The journal's library also maps the journal's files, page by page, which is the kernel's
cache of them and counts in RSS, more than once where its windows overlap.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import MappingProxyType

from nfstuned.core.samples.sample import to_line
from nfstuned.model.samples import OpRate, Sample, TransportRate
from tests.host.journald import record, why_not

ROOT = Path(__file__).parents[2]
MOUNTS, INTERVAL_S, DAY_S = 200, 60, 86400
OPS = ("READ", "WRITE", "GETATTR", "LOOKUP", "ACCESS", "OPEN", "CLOSE", "SEQUENCE")
SCRIPT = (
    "import sys; from nfstuned.cli.app import main; from nfstuned.host.root import Root; "
    "sys.exit(main(sys.argv[2:], Root(sys.argv[1])))"
)


def day(mounts: int) -> Iterator[Sample]:
    """A day that ends now; no two samples of it are alike."""
    begin = time.time() - DAY_S + INTERVAL_S
    for step in range(DAY_S // INTERVAL_S):
        for mount in range(mounts):
            some = 1.0 + ((step * mounts + mount) % 9973) / 7.0
            op = OpRate(some, 1.7 + some / 1e3, 0.013 * some, 1.9 + some / 1e3, 0.0, 0.0)
            yield Sample(
                time=begin + step * INTERVAL_S,
                interval_s=60.000123,
                device=f"0:{40 + mount}",
                mount_points=(f"/mnt/share{mount}",),
                source=f"account{mount % 9}.file.core.windows.net:/account{mount % 9}/share{mount}",
                read_bytes_per_s=some * 1e5,
                write_bytes_per_s=some * 3e4,
                server_read_bytes_per_s=some * 1.1e5,
                server_write_bytes_per_s=some * 3e4,
                over_fetch_ratio=1.1,
                ops=MappingProxyType(dict.fromkeys(OPS, op)),
                transport=TransportRate(f"v4.1 tcp 10.0.0.{mount % 9}:2049", 4, 1.5, 0.25, 0.5, 1.5, 64, 0.0),
            )


def measure(tree: Path, *args: str) -> str:
    """Return the time and the memory of a command; its output goes nowhere."""
    command = [sys.executable, "-c", SCRIPT, f"{tree}/", "samples", *args]
    started, most = time.monotonic(), 0
    with Path(os.devnull).open("wb") as nowhere:
        process = subprocess.Popen(command, stdout=nowhere, cwd=ROOT)
        while process.poll() is None:
            most = max(most, own_kib(process.pid))
            time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"{' '.join(args)} ended with {process.returncode}")
    return f"{time.monotonic() - started:.1f} s, {most / 1024:.0f} MiB"


def own_kib(pid: int) -> int:
    """Return the anonymous memory of a process in KiB; 0 when it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:")), 0)


def main(arguments: Sequence[str]) -> None:
    """Measure every format from both sources."""
    mounts = int(arguments[0]) if arguments else MOUNTS
    number = mounts * DAY_S // INTERVAL_S
    with tempfile.TemporaryDirectory(prefix="nfstuned-bench-") as folder:
        tree = Path(folder)
        file = tree / "samples.jsonl"
        with file.open("wb") as lines:
            lines.writelines(map(to_line, day(mounts)))
        print(f"{number} samples, {file.stat().st_size / number:.0f} bytes a line")
        for form in ("text", "json", "csv"):
            print(f"file, {form}: {measure(tree, '--file', str(file), '--format', form)}")
        file.unlink()
        reason = why_not()
        if reason:
            print(f"journal: not measured, {reason}")
            return
        journal = tree / "var/log/journal"
        record(journal, day(mounts))
        size = sum(path.stat().st_size for path in journal.rglob("*.journal"))
        print(f"journal of {size / 1e6:.0f} MB, {size / number:.0f} bytes an entry")
        for form in ("text", "json", "csv"):
            print(f"journal, {form}: {measure(tree, '--format', form)}")


if __name__ == "__main__":
    main(sys.argv[1:])
