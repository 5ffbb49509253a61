"""Samples agree with fio, the server and the sockets: each byte and each request once."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nfstuned.core.samples.rates import make_look, rates
from nfstuned.core.samples.sample import kinds
from nfstuned.host.observe import observe_stanzas, observe_superblocks
from nfstuned.host.root import Root
from tests.lab.kit.load import Job, fio, nfsd, sockets

if TYPE_CHECKING:
    from nfstuned.model.samples import Look, Sample
    from tests.lab.kit.mounts import Mounts
    from tests.lab.kit.server import Server

pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("quiet_udev", "stopped_daemon")]
SIZE = 4 << 20
JOBS = (
    Job("read", "1M", direct=False, size="4M"),
    Job("read", "1M", direct=True, size="4M"),
    Job("randread", "4k", direct=False, size="1M"),
    Job("randread", "4k", direct=True, size="1M"),
    Job("write", "1M", direct=False, size="4M"),
    Job("write", "1M", direct=True, size="4M"),
    Job("randwrite", "4k", direct=False, size="1M"),
    Job("randwrite", "4k", direct=True, size="1M"),
)
FEW = (JOBS[1], JOBS[2], JOBS[4], JOBS[7])
"""Both ways, sizes and patterns, direct and buffered: for more than one connection."""
HEADERS = 1000
"""Bytes of TCP payload that a request and its reply have beside their data, at the most."""


def seen() -> Look:
    root = Root()
    return make_look(
        observe_superblocks(root, deep=False), observe_stanzas(root) or (), time.time(), time.monotonic()
    )


@pytest.mark.parametrize(("version", "nconnect"), [("vers=3,nolock", 1), ("vers=4.1", 4), ("vers=4.2", 16)])
def test_a_sample_agrees_with_fio_the_server_and_the_sockets(
    version: str, nconnect: int, mount: Mounts
) -> None:
    Path("/srv/a/load").write_bytes(os.urandom(SIZE))
    mounted = mount("a", f"{version},nconnect={nconnect}")
    for job in JOBS if nconnect == 1 else FEW:
        before, counted, carried = seen(), nfsd(), sockets()
        asked = fio(mounted, job)
        (sample,) = rates(before, seen())
        counted, carried = nfsd() - counted, sockets() - carried
        output = f"{job}: {asked}, {counted}, {carried}, {sample}"
        print(output)
        assert programs(sample) == (asked.read_bytes, asked.write_bytes), output
        assert server_bytes(sample) == (counted.read_bytes, counted.write_bytes), output
        assert requests(sample) == (counted.reads, counted.writes), output
        every = whole(sample, sum(op.per_s for op in sample.ops.values()))
        assert counted.read_bytes <= carried.received <= counted.read_bytes + HEADERS * every, output
        assert counted.write_bytes <= carried.sent <= counted.write_bytes + HEADERS * every, output
        assert sample.transport.connections == nconnect
    assert sockets().number == nconnect


def test_bytes_seen_at_several_places_are_counted_once(mount: Mounts, server: Server) -> None:
    """A bind mount, the same export twice, and ten shares of one server."""
    shares = [f"s{number}" for number in range(10)]
    server.export(*shares)
    for share in shares:
        Path(f"/srv/{share}/load").write_bytes(bytes(SIZE))
    mounts = [mount(share, "vers=4.1,nconnect=4") for share in shares]
    mount.bind(mounts[0])
    mount(shares[0], "vers=4.1,nconnect=4")
    before, counted = seen(), nfsd()
    for mounted in mounts:
        with (mounted.point / "load").open("r+b", buffering=0) as file:
            file.write(bytes(SIZE))
            os.fsync(file)
    samples = rates(before, seen())
    counted = nfsd() - counted
    assert len(samples) == len(shares)
    assert tuple(map(sum, zip(*map(programs, samples), strict=True))) == (0, len(shares) * SIZE)
    assert tuple(map(sum, zip(*map(server_bytes, samples), strict=True))) == (0, counted.write_bytes)
    assert tuple(map(sum, zip(*map(requests, samples), strict=True))) == (0, counted.writes)
    assert {sample.transport for sample in samples} == {samples[0].transport}
    assert samples[0].transport.connections == sockets().number == 4
    assert len(samples[0].mount_points) == 3
    assert [name for sample in samples[1:] for name in sample.ops if name == "SEQUENCE"] == []


def programs(sample: Sample) -> tuple[int, int]:
    return whole(sample, sample.read_bytes_per_s), whole(sample, sample.write_bytes_per_s)


def server_bytes(sample: Sample) -> tuple[int, int]:
    return whole(sample, sample.server_read_bytes_per_s), whole(sample, sample.server_write_bytes_per_s)


def requests(sample: Sample) -> tuple[int, int]:
    ops = kinds(sample)
    reads, writes = (whole(sample, ops[kind].per_s) if kind in ops else 0 for kind in ("read", "write"))
    return reads, writes


def whole(sample: Sample, per_s: float) -> int:
    """Return a rate's total over its interval: the kernel counted whole bytes and requests."""
    return round(per_s * sample.interval_s)
