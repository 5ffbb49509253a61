"""`nfstuned bench` under numbers of connections, on mounts of its own that need no server.

An overlay of the folder stands for the second NFS mount, and the kernel's counters of it are
made up. The lab has the real ones.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from nfstuned.app import bench as app
from nfstuned.host.bench.guard import POINT, Guard
from nfstuned.host.root import Root
from nfstuned.model.bench import OwnMount
from nfstuned.model.kernel import Mount, Stanza
from tests.cli.conftest import MakeHost, Run
from tests.cli.test_bench import QUICK, mounted_at

WORDS = (*QUICK, "--job", "read-4k", "--suite", "nconnect", "--format", "json")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts"),
    pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed"),
    pytest.mark.skipif(
        "\toverlay\n" not in Path("/proc/filesystems").read_text(), reason="the kernel has no overlayfs"
    ),
]


@pytest.fixture
def measure(host: MakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Run]]:
    """A measurement of a folder that is the mount of Azure Files, and whose second mount is an overlay."""
    folder = tmp_path / "mount"
    for each in (folder, tmp_path / "upper", tmp_path / "work"):
        each.mkdir()
    made = mounted_at(folder, host)
    layers = f"lowerdir={folder},upperdir={tmp_path / 'upper'},workdir={tmp_path / 'work'}"

    def overlay(_mount: Mount, connections: int) -> OwnMount:
        return OwnMount(str(connections), "overlay", layers, synchronous=False)

    monkeypatch.setattr(app, "own_mount", overlay)
    yield lambda *more: made.run("bench", str(folder), *WORDS, *more)
    assert list(folder.iterdir()) == []
    assert list((made.tree / "var/lib/nfstuned/bench").iterdir()) == []


def counts(monkeypatch: pytest.MonkeyPatch, carrying: int | None = None, shown: int | None = None) -> None:
    """Have each look at the second mount show more requests, on all of its connections or on so many."""
    looks = count(1)

    mounted: list[int] = []

    def ask(guard: Guard, order: str, *arguments: Any, **options: float) -> Any:  # noqa: ANN401 - as Guard's
        if order == "mount":
            mounted.append(int(arguments[0]["source"]))
        return real(guard, order, *arguments, **options)

    def stanza(_root: Root, _guard: Guard) -> Stanza:
        number, step = shown or mounted[-1], next(looks) * 1000
        lines = [
            f"tcp 0 1 1 0 0 {step if n < (carrying or number) else 1} {step} 0 {step} 0 2 0 0"
            for n in range(number)
        ]
        return Stanza("overlay", POINT, 5, None, "\n".join(lines).encode(), b"", whole=True)

    real = Guard.ask
    monkeypatch.setattr(Guard, "ask", ask)
    monkeypatch.setattr(app, "own_stanza", stanza)


@pytest.mark.parametrize(("more", "number"), [((), 4), (("--nconnect", "8"), 8)])
def test_each_job_runs_under_both_numbers_on_mounts_of_its_own(
    measure: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...], number: int
) -> None:
    """The read-ahead of the measured mount stays: no hanging second mount can delay its restoring."""
    counts(monkeypatch)
    monkeypatch.delattr(app, "Bdi")
    run = measure(*more)
    assert run.status == 0, run.err
    assert "mounts the folder a second time" in run.err
    document = run.document
    assert [setting["connections"] for setting in document["settings"]] == [1, number]
    assert [one["problem"] for one in document["runs"]] == ["", ""]
    assert all(one["delivered"]["bytes_per_s"] > 0 for one in document["runs"])


def test_idle_connections_do_not_count(measure: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> None:
    counts(monkeypatch, carrying=1)
    document = measure().document
    problems = {one["setting"]: one["problem"] for one in document["runs"]}
    assert problems == {
        "1 connection": "",
        "4 connections": "connections used by its requests: 1 instead of 4",
    }
    assert [one["setting"] for one in document["results"]] == ["1 connection"]


def test_no_old_connection_is_measured(measure: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> None:
    counts(monkeypatch, shown=4)
    run = measure()
    reason = "with nconnect=1 it has 4 connections: it shares another mount's"
    assert (run.status, reason in run.err) == (2, True)
