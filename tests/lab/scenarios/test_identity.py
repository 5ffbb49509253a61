"""Clients that call themselves alike take each other's sessions away; with identifiers, none does."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nfstuned.model.kernel import MountStats
from nfstuned.parse.proc.mountstats import parse_mountstats
from tests.lab.kit.clones import Clone, clone
from tests.lab.kit.server import AZURE, Server

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev")]
WORK_S, ROUNDS = 10.0, 5
"""At least: a busy machine gets few rounds into so much time."""
OPTIONS = {"4.0": "vers=4.0", "4.1": "vers=4.1"}
BEGUN = {"4.0": "SETCLIENTID_CONFIRM", "4.1": "CREATE_SESSION"}


@pytest.fixture
def clones(server: Server, tmp_path: Path) -> Iterator[tuple[Clone, Clone]]:
    """Two clients called localhost, each with a machine id, addresses and mounts of its own."""
    assert server.running
    with contextlib.ExitStack() as stack:
        yield (
            stack.enter_context(clone(1, "1" * 32, tmp_path)),
            stack.enter_context(clone(2, "2" * 32, tmp_path)),
        )


def work(clones: tuple[Clone, Clone], version: str) -> list[int]:
    """Have each client mount and write now and then; return how often each began again with the server."""
    for client in clones:
        client.mount(f"{AZURE}:/srv/a", OPTIONS[version])
    began, rounds = time.monotonic(), 0
    while time.monotonic() - began < WORK_S or rounds < ROUNDS:
        rounds += 1
        for client in clones:
            client.write()
    begun = [_begun(client, BEGUN[version]) for client in clones]
    for client in clones:
        client.umount()
    return begun


def _begun(client: Clone, operation: str) -> int:
    stanzas = parse_mountstats(client.enter("cat", "/proc/self/mountstats"))
    (mine,) = [one for one in stanzas if isinstance(one, MountStats)]
    counters = mine.ops[operation]
    return counters.ops - (counters.errors or 0)


@pytest.mark.release
@pytest.mark.parametrize("version", ["4.1", "4.0"])
def test_sessions_are_lost_before_and_stay_with_the_unit(clones: tuple[Clone, Clone], version: str) -> None:
    assert min(work(clones, version)) >= 3
    for client in clones:
        assert client.identifier == "(null)"
        client.start_unit()
    expected = [hashlib.sha256(f"{char * 32} nfs client\n".encode()).hexdigest() for char in "12"]
    assert [client.identifier for client in clones] == expected
    # NFSv4.0 confirms its id twice when it mounts.
    assert max(work(clones, version)) <= 2


@pytest.mark.release
def test_an_identifier_that_somebody_set_stays(clones: tuple[Clone, Clone]) -> None:
    client = clones[0]
    client.identify("mine")
    client.start_unit()
    assert client.identifier == "mine"
