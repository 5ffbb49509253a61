"""Mounts that only bench sees, with a file system that needs no server: and that nothing is left of them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nfstuned.host.bench import guard
from nfstuned.host.bench.guard import OwnMountError, OwnMounts
from nfstuned.host.root import Root
from nfstuned.model.bench import OwnMount

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
SMALL = OwnMount("small", "tmpfs", "size=1M", synchronous=False, connections=1)
LARGER = OwnMount("larger", "tmpfs", "size=2M", synchronous=True, connections=4)


@contextmanager
def own_mounts(tmp_path: Path) -> Iterator[OwnMounts]:
    keeper = guard.Guard(str(tmp_path / "records"), str(tmp_path))
    try:
        yield OwnMounts(Root(str(tmp_path)), keeper)
    finally:
        assert keeper.end() == ()


def gone(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return not holds()


def process_of(own: OwnMounts) -> int:
    return int(own.path.split("/")[2])


def mounts_of(own: OwnMounts) -> list[str]:
    rows = Path(f"/proc/{process_of(own)}/mounts").read_text().splitlines()
    return [row for row in rows if row.split(" ")[1] == own.point]


def test_the_host_does_not_see_the_mount_and_bench_reaches_it(tmp_path: Path) -> None:
    name = os.uname().nodename
    with own_mounts(tmp_path) as own:
        own.have(SMALL)
        assert own.point not in Path("/proc/self/mounts").read_text()
        Path(own.path, "file").write_text("x")
        assert list(Path(own.point).iterdir()) == []
        assert mounts_of(own)[0].startswith("small ")
        own.have(SMALL)
        assert Path(own.path, "file").exists()
        own.have(LARGER)
        assert [row.split(" ")[0] for row in mounts_of(own)] == ["larger"]
        assert "sync" in mounts_of(own)[0]
        own.have(None)
        assert mounts_of(own) == []
    assert os.uname().nodename == name


def test_at_its_end_process_mount_and_folder_are_gone(tmp_path: Path) -> None:
    with own_mounts(tmp_path) as own:
        own.have(SMALL)
        process = Path(f"/proc/{process_of(own)}")
    assert not process.exists()
    assert not Path(own.point).parent.exists()
    assert list((tmp_path / "records").iterdir()) == []


def test_bench_that_is_killed_leaves_neither_mount_nor_folder(tmp_path: Path) -> None:
    """To the guard, bench is the pipes that end with it."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        keeper = guard.Guard(str(tmp_path / "records"), str(tmp_path))
        own = OwnMounts(Root(str(tmp_path)), keeper)
        own.have(SMALL)
        os.write(write, f"{process_of(own)} {own.point}".encode())
        time.sleep(60)
        os._exit(0)
    pid, _, point = os.read(read, 1000).decode().partition(" ")
    assert Path(point).is_dir()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read)
    os.close(write)
    assert gone(lambda: Path(point).exists())
    assert gone(lambda: Path(f"/proc/{pid}/mounts").exists())
    assert gone(lambda: any((tmp_path / "records").iterdir()))


def test_what_guard_and_bench_left_goes_at_the_next_start(tmp_path: Path) -> None:
    point = tmp_path / "run/nfstuned-bench/1-2"
    point.mkdir(parents=True)
    record = tmp_path / "record"
    record.write_text(f'{{"kind": "point", "path": "{point}"}}\n')
    assert guard.clean_up(str(record)) == ""
    assert not point.parent.exists()
    assert not record.exists()


def test_a_refusal_names_what_was_tried(tmp_path: Path) -> None:
    nothing = OwnMount("server:/a", "nosuchfs", "vers=4.1", synchronous=False, connections=1)
    with own_mounts(tmp_path) as own:
        with pytest.raises(OwnMountError, match=r"mounting server:/a with vers=4\.1: No such device"):
            own.have(nothing)
        own.have(SMALL)
        assert len(mounts_of(own)) == 1


def test_a_mount_in_use_is_waited_for_and_never_detached(tmp_path: Path) -> None:
    with own_mounts(tmp_path) as own:
        own.have(SMALL)
        file = os.open(f"{own.path}/file", os.O_CREAT | os.O_RDWR)
        child = os.fork()
        if not child:
            time.sleep(0.5)
            os._exit(0)
        os.close(file)
        began = time.monotonic()
        own.have(None)
        os.waitpid(child, 0)
        assert time.monotonic() - began > 0.3


def test_where_the_guard_was_killed_that_is_the_only_error(tmp_path: Path) -> None:
    keeper = guard.Guard(str(tmp_path / "records"), str(tmp_path))
    own = OwnMounts(Root(str(tmp_path)), keeper)
    os.kill(keeper.pid, signal.SIGKILL)
    os.waitid(os.P_PID, keeper.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(OwnMountError, match="the guard has ended"):
        own.have(SMALL)
    keeper.end()
