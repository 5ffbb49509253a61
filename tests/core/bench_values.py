"""Measurements for tests: two settings compared, a search, and a vendor's jobs; no chance in them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone

from nfstuned.host.bench.documents import suite
from nfstuned.model.bench import Bench, BenchSetting, Delivered, Job, MeasuredMount, Run

MOUNT = MeasuredMount(
    mount_point="/data",
    source="sa1.file.core.windows.net:/sa1/share",
    fstype="nfs4",
    profile="azure-files",
    options="rw,vers=4.1,rsize=1048576,wsize=1048576,hard,nconnect=4",
    read_ahead_kb=128,
    connections=4,
    kernel="6.12.48+deb13-amd64",
    fio="fio-3.39",
    host="client",
)
OLD, NEW = BenchSetting("kernel's default", 128), BenchSetting("profile azure-files", 15360)
AS_IT_IS = BenchSetting("as it is")
CURVE = {128: 12e6, 256: 25e6, 1024: 80e6, 2048: 140e6, 4096: 186e6, 8192: 190e6, 15360: 188e6}
VENDORS_RATES = {4096: 9e6, 8192: 18e6, 65536: 120e6, 1048576: 300e6}
WOBBLE = (1.0, 0.98, 1.02, 0.97, 1.03, 0.99, 1.01)
"""Each run's part of the median, by its turn."""


def measured(
    name: str, settings: tuple[BenchSetting, ...], rate: Callable[[Job, BenchSetting], float]
) -> Bench:
    """Return a measurement of a suite; a request takes as long as its bytes do."""
    chosen = suite(name, full=False)
    runs = []
    for job in chosen.jobs:
        for setting in settings:
            for turn in range(1, chosen.repeats + 1):
                speed = rate(job, setting) * WOBBLE[(turn - 1) % len(WOBBLE)]
                latency = 1e3 * job.block_bytes * job.depth * job.threads / speed
                delivered = Delivered(speed, speed / job.block_bytes, latency, 2 * latency, job.runtime_s)
                runs.append(Run(job.name, setting.name, turn, delivered, over_fetch=1.05))
    began = datetime.fromtimestamp(1_790_000_000, timezone.utc)
    return Bench(began, MOUNT, chosen, settings, tuple(runs))


COMPARED = measured(
    "quick", (OLD, NEW), lambda job, setting: 2e5 if job.direct else CURVE[setting.read_ahead_kb or 0]
)
SEARCHED = measured(
    "read-ahead",
    tuple(BenchSetting(f"{kb} KiB", kb) for kb in CURVE),
    lambda job, setting: CURVE[setting.read_ahead_kb or 0] * (1 if job.threads == 1 else 1.3),
)
VENDORS = measured(
    "azure-files",
    (AS_IT_IS,),
    lambda job, _: VENDORS_RATES[job.block_bytes] * (1 if job.pattern.reads else 0.6),
)
