"""Print how long a check takes, from the shell to the verdict: python -m tests.bench.bench_check [ROUNDS]."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.check import hosts
from tests.host.servers import dns_server

if TYPE_CHECKING:
    from collections.abc import Sequence

MOUNTS, SHARES = 500, 10
"""Shares of 50 storage accounts."""
AZURE_TAG = "7783-7084-3265-9085-8269-3286-77\n"
SERVICE = Path(__file__).parents[2] / "systemd/nfstuned.service"
COMMAND = "import sys; from nfstuned.cli.app import main; from nfstuned.host.root import Root as R; "
"""The program `nfstuned`, over a tree instead of /."""


def many(tree: Path) -> None:
    """Turn a host with one mount into one with MOUNTS of them, each in fstab, on an Azure VM."""
    multiply(tree / "proc/1/mountinfo", " /mnt/share ")
    multiply(tree / "etc/fstab", " /mnt/share ")
    multiply(tree / "run/mount/utab", "TARGET=/mnt/share")
    multiply(tree / "proc/1/net/nfsfs/volumes", " 0:46 ")
    multiply(tree / "proc/1/net/nfsfs/servers", "sa1.", SHARES)
    stats = tree / "proc/1/mountstats"
    before, device, stanza = stats.read_text().partition("device sa1.")
    stats.write_text(before + "".join(variant(device + stanza, n) for n in range(MOUNTS)))
    for number in range(MOUNTS):
        folder = tree / f"sys/class/bdi/0:{1000 + number}"
        folder.mkdir()
        (folder / "read_ahead_kb").write_text("15360\n")
    tag = tree / "sys/class/dmi/id/chassis_asset_tag"
    tag.parent.mkdir(parents=True, exist_ok=True)
    tag.write_text(AZURE_TAG)


def multiply(file: Path, mark: str, every: int = 1) -> None:
    """Repeat the line that has a mark, once for each `every` mounts."""
    lines = file.read_text().splitlines(keepends=True)
    (line,) = [line for line in lines if mark in line]
    rest = [other for other in lines if other != line]
    file.write_text("".join([*rest, *(variant(line, n) for n in range(0, MOUNTS, every))]))


def variant(text: str, number: int) -> str:
    """Return a text about one mount as it is about the mount of that number."""
    account, address = number // SHARES, f"10.10.11.{number // SHARES}"
    changes = {
        "sa1.file": f"sa{account}.file",
        "/sa1/share": f"/sa{account}/share{number}",
        "/mnt/share": f"/mnt/share{number}",
        "10.10.10.10": address,
        "0a0a0a0a": f"0a0a0b{account:02x}",
        "0:46 ": f"0:{1000 + number} ",
        "64 27 ": f"{1000 + number} 27 ",
    }
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


def report(name: str, command: Sequence[str], rounds: int) -> str:
    """Print a command's times: median, best, and CPU; return its output."""
    times, used = [], []
    for _ in range(rounds):
        start, before = time.perf_counter(), cpu_s()
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        times.append(1000 * (time.perf_counter() - start))
        used.append(1000 * (cpu_s() - before))
        if done.returncode > 1 or "Traceback" in done.stderr:
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    wall = f"median {statistics.median(times):5.0f} ms, best {min(times):5.0f} ms"
    print(f"{name:42} {wall}, processor {min(used):5.0f} ms")
    return done.stdout.strip()


def cpu_s() -> float:
    """Return the CPU time of all children that ended, which a busy machine changes least."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def check(tree: Path) -> list[str]:
    """Return the command that checks a tree."""
    script = f"{COMMAND} sys.exit(main(['check', '--offline'], R({str(tree)!r})))"
    return [sys.executable, "-c", script]


def check_names(tree: Path, port: int) -> list[str]:
    """Return the command that checks a tree and asks a name server on the loopback."""
    asks = "from functools import partial; from nfstuned.host.network import answers; "
    asks += f"answers.LiveOutside = partial(answers.LiveOutside, dns_port={port}); "
    return [sys.executable, "-c", f"{COMMAND} {asks} sys.exit(main(['check'], R({str(tree)!r})))"]


def main() -> None:
    """Measure a check and, as a scale, two other programs that verify files."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory() as folder:
        ordinary = hosts.load("clean").build(Path(folder) / "ordinary")
        large = hosts.load("clean").build(Path(folder) / "large")
        many(large)
        configured = hosts.load("clean").build(Path(folder) / "configured")
        (configured / "etc/nfstuned").mkdir(exist_ok=True)
        (configured / "etc/nfstuned/nfstuned.toml").write_text('[daemon]\nsample_interval = "5m"\n')
        (ordinary / "etc/resolv.conf").write_text("nameserver 127.0.0.1\n")
        verdict = report("check: an ordinary host", check(ordinary), rounds)
        with dns_server({"sa1.file.core.windows.net": (("A", "127.0.0.1"),)}) as port:
            report("check: with names and a port to ask for", check_names(ordinary, port), rounds)
        report("check: with a configuration to validate", check(configured), rounds)
        whole = report(f"check: {MOUNTS} mounts, {MOUNTS} fstab entries", check(large), rounds)
        table = ["--verify", "--tab-file", str(large / "etc/fstab")]
        report(f"findmnt --verify: {MOUNTS} fstab entries", ["findmnt", *table], rounds)
        report("systemd-analyze verify: one unit", ["systemd-analyze", "verify", str(SERVICE)], rounds)
        report("python -c pass", [sys.executable, "-c", "pass"], rounds)
        print(f"verdicts: {verdict.splitlines()[-1]!r} and {whole.splitlines()[-1]!r}")


if __name__ == "__main__":
    main()
