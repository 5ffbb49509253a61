"""bench finds the effects that vendors publish, and reports no noise as one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit.bench import HERE, SHORT, compared, left, measured, outcomes
from tests.lab.kit.clones import clone, shaped
from tests.lab.kit.daemon import nfstuned

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.kit.mounts import Mounts
    from tests.lab.kit.server import Server

RTT_20_MS = ("netem", "delay", "10ms", "limit", "100000")
SHARE = "d"
"""No other scenario of its boot leaves anything on it."""
TURNS = 3
PER_FLOW = ("fq", "maxrate", "40mbit")
"""As a cloud holds each connection by itself: 4.7 MB/s of data a connection."""
pytestmark = [
    pytest.mark.release,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("quiet_udev", "stopped_daemon"),
]


def test_at_a_distance_read_ahead_is_worth_a_multiple_and_random_reads_gain_nothing(
    server: Server, tmp_path: Path, say: Callable[[object], None]
) -> None:
    with clone(1, "0123456789abcdef0123456789abcdef", tmp_path) as far, shaped(far, *RTT_20_MS):
        far.mount(f"sa1.file.core.windows.net:/srv/{SHARE}", "vers=4.1,nconnect=4")
        found = outcomes(measured(far.enter("nfstuned", "bench", HERE, *SHORT, "--compare", timeout=600)))
        far.umount()
    say(found)
    assert found["sequential-read"][0] == "faster"
    assert found["sequential-read"][1] >= 3
    assert found["random-read-4k"][0] == "no difference"
    assert left(server.path(SHARE)) == []


@pytest.mark.parametrize("version", ["4.1", "3"])
def test_where_each_connection_is_held_four_carry_nearly_four_times_as_much(
    server: Server, tmp_path: Path, say: Callable[[object], None], version: str
) -> None:
    jobs = ("read-64k", "write-1024k")
    with clone(1, "0123456789abcdef0123456789abcdef", tmp_path) as held, shaped(held, *PER_FLOW):
        held.mount(f"sa1.file.core.windows.net:/srv/{SHARE}", f"vers={version},nconnect=4")
        before = held.enter("cat", "/proc/self/mounts")
        words = ("--suite", "nconnect", "--runtime", "8")
        found: dict[str, tuple[str, float]] = {}
        for job in jobs:
            found |= compared(held, *words, "--job", job)
        assert held.enter("cat", "/proc/self/mounts") == before
        held.umount()
    say(found)
    assert found.keys() == set(jobs)
    for outcome, ratio in found.values():
        assert (outcome, ratio >= 3.3) == ("faster", True)
    assert left(server.path(SHARE)) == []


@pytest.mark.timeout(2400)
def test_an_unchanged_mount_has_no_difference(
    mount: Mounts, server: Server, say: Callable[[object], None]
) -> None:
    before = set(left(server.path("a")))
    mounted = mount("a", "vers=4.1")
    with_target = Path("/etc/nfstuned/nfstuned.toml")
    with_target.parent.mkdir(exist_ok=True)
    # The comparison is of the kernel's value with nearly the same one.
    with_target.write_text("[profile.azure-files]\nread_ahead_kb = 132\n")
    try:
        for turn in range(TURNS):
            document = measured(
                nfstuned(
                    "bench", str(mounted.point), *SHORT, "--compare", "--runtime", "1", timeout=300
                ).stdout
            )
            found = outcomes(document)
            say(f"{turn + 1}: {found}")
            assert {outcome for outcome, _ in found.values()} == {"no difference"}
    finally:
        with_target.unlink()
    assert set(left(server.path("a"))) <= before
