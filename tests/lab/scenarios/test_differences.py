"""bench calls no noise an effect, and says what a read-ahead that is too large costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit.bench import HERE, SHORT, compared, left, measured, outcomes
from tests.lab.kit.clones import clone
from tests.lab.kit.daemon import nfstuned
from tests.lab.kit.link import shaped

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.kit.mounts import Mounts
    from tests.lab.kit.server import Server

THIN = ("netem", "delay", "5ms", "rate", "40mbit", "limit", "100000")
pytestmark = [
    pytest.mark.release,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("quiet_udev", "stopped_daemon"),
]


def test_readers_that_a_large_read_ahead_hurts_are_told_so_with_what_it_fetched_in_vain(
    server: Server, tmp_path: Path, say: Callable[[object], None]
) -> None:
    before = set(left(server.path("a")))  # Other files' tests have mounted it.
    words = ("--suite", "streams", "--compare", "--size", "48M", "--runtime", "1")
    with clone(1, "0123456789abcdef0123456789abcdef", tmp_path) as far, shaped(far, *THIN):
        far.mount("sa1.file.core.windows.net:/srv/a", "vers=4.1,nconnect=4")
        command = ("nfstuned", "bench", HERE, "--yes", "--format", "json", *words)
        document = measured(far.enter(*command, timeout=600))
        far.umount()
    (found,) = document["differences"]
    few, many = (result["over_fetch"]["median"] for result in document["results"])
    say((found["outcome"], found["ratio"], few, many))
    assert (found["outcome"], document["proposed_read_ahead_kb"]) == ("slower", 128)
    assert many > 1.5 * few
    assert set(left(server.path("a"))) <= before


@pytest.mark.timeout(2400)
def test_an_unchanged_mount_has_no_difference(
    mount: Mounts, server: Server, say: Callable[[object], None], *, full: bool
) -> None:
    before = set(left(server.path("a")))
    mounted = mount("a", "vers=4.1")
    with_target = Path("/etc/nfstuned/nfstuned.toml")
    with_target.parent.mkdir(exist_ok=True)
    # What is compared is the kernel's value with nearly the same one.
    with_target.write_text("[profile.azure-files]\nread_ahead_kb = 132\n")
    try:
        for turn in range(20 if full else 1):
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


@pytest.mark.usefixtures("server")
def test_small_reads_one_at_a_time_gain_nothing_from_connections(
    tmp_path: Path, say: Callable[[object], None], *, full: bool
) -> None:
    """The mount has one connection: it is compared with as many as its profile asks for."""
    with clone(1, "0123456789abcdef0123456789abcdef", tmp_path) as far:
        far.mount("sa1.file.core.windows.net:/srv/a", "vers=4.1")
        words = ("--suite", "latency", "--compare", "--job", "read-4k-alone")
        found = compared(far, *words, "--runtime", "4" if full else "1")
        far.umount()
    say(found)
    assert found["read-4k-alone"][0] == "no difference"
