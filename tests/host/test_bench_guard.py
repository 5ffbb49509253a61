"""bench's guard puts back everything that was announced, and names the rest."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from nfstuned.host.bench import fio
from nfstuned.host.bench.guard import POINT, Changes, Guard, Restorer, new_record, restore_leftovers
from nfstuned.model.bench import Job, OwnMount, Pattern

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
SMALL = asdict(OwnMount("small", "tmpfs", "size=1M", synchronous=False))
LARGER = asdict(OwnMount("larger", "tmpfs", "size=2M", synchronous=True))


def new_guard(folder: Path) -> Guard:
    return Guard(new_record(str(folder / "records")), str(folder))


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    """A guard of a folder that is no mount, and that is made."""
    made = new_guard(tmp_path)
    made.ask("make", made.folder, "/")
    return made


@contextmanager
def restoring(folder: Path) -> Iterator[Guard]:
    made = new_guard(folder)
    try:
        yield made
    finally:
        assert made.end() == ()
    assert not Path(made.record).exists()


def kill(guard: Guard) -> None:
    """Kill the guard, as the kernel does where memory ends."""
    os.kill(guard.pid, signal.SIGKILL)
    os.waitid(os.P_PID, guard.pid, os.WEXITED | os.WNOWAIT)


def gone(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return not holds()


def mounts_of(guard: Guard) -> list[str]:
    rows = Path(f"/proc/{guard.pid}/mounts").read_text().splitlines()
    return [row for row in rows if row.split(" ")[0] in {"small", "larger"}]


def test_the_space_of_a_folder_needs_no_record(tmp_path: Path) -> None:
    with restoring(tmp_path) as guard:
        assert guard.space(str(tmp_path)) > 0
        assert list((tmp_path / "records").iterdir()) == []
        with pytest.raises(OSError, match=r"/none: No such file or directory"):
            guard.ask("space", str(tmp_path / "none"))


def test_only_the_files_of_fio_go(guard: Guard) -> None:
    place = Path(guard.folder)
    job = Job("reader", Pattern.READ, 1 << 16, threads=4, files=2, file_bytes=1 << 20)
    (form,) = [word for word in fio.arguments(job, guard.folder) if word.startswith("--filename_format=")]
    name = form.partition("=")[2].replace("$jobnum", "3").replace("$filenum", "1")
    (place / name).write_text("random")
    (place / "notes").write_text("somebody's")
    (place / "1-1-1.0.0").mkdir()
    assert guard.end() == (f"{place}: Directory not empty",)
    assert sorted(path.name for path in place.iterdir()) == ["1-1-1.0.0", "notes"]


def test_another_folder_of_its_name_keeps_its_files(guard: Guard) -> None:
    """Whoever may write to the folder above may also rename bench's folder."""
    place = Path(guard.folder)
    place.rename(place.with_name("moved"))
    place.mkdir()
    (place / "1-1-1.0.0").write_text("somebody's")
    assert guard.end() == (f"{place}: is not the folder that bench made: nothing in it was removed",)
    assert (place / "1-1-1.0.0").read_text() == "somebody's"
    assert Path(guard.record).exists()


def test_a_folder_that_bench_did_not_make_keeps_its_files(tmp_path: Path) -> None:
    guard = new_guard(tmp_path)
    Path(guard.folder).mkdir()
    file = Path(guard.folder) / "1-1-1.0.0"
    file.write_text("somebody's")
    with pytest.raises(OSError, match="File exists"):
        guard.ask("make", guard.folder, "/")
    assert guard.end() == (f"{guard.folder}: Directory not empty",)
    assert file.exists()


def test_the_next_bench_puts_back_the_changes_of_a_killed_guard(guard: Guard, tmp_path: Path) -> None:
    value = tmp_path / "read_ahead_kb"
    value.write_text("15360\n")
    guard.ask("keep_read_ahead", str(value), value.stat().st_ino, 128)
    kill(guard)
    with pytest.raises(OSError, match="the guard has ended"):
        guard.ask("unmount")
    (left,) = guard.end()
    assert left == (
        f"the changes in {guard.record}: the guard has ended, "
        "and the next bench of the same folder puts them back"
    )
    assert Path(guard.folder).exists()
    assert restore_leftovers(str(tmp_path / "records"), "/another") == ""
    assert restore_leftovers(str(tmp_path / "records"), str(tmp_path)) == ""
    assert value.read_text().startswith("128\n")
    assert not Path(guard.folder).exists()
    assert not Path(guard.record).exists()


def test_another_superblock_of_the_same_number_keeps_its_read_ahead(tmp_path: Path) -> None:
    value = tmp_path / "read_ahead_kb"
    value.write_text("15360\n")
    with restoring(tmp_path) as guard:
        guard.ask("keep_read_ahead", str(value), value.stat().st_ino + 1, 128)
    assert value.read_text() == "15360\n"


def test_the_read_ahead_is_back_before_slow_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value = tmp_path / "read_ahead_kb"
    value.write_text("15360\n")
    seen: list[str] = []
    for step in ("_end_program", "unmount", "_remove_folder"):
        monkeypatch.setattr(Restorer, step, lambda _: seen.append(value.read_text().split()[0]))
    restorer = Restorer(str(tmp_path / "record"), str(tmp_path))
    restorer.changes = Changes(str(tmp_path), bdi=str(value), bdi_inode=value.stat().st_ino, kb=128)
    assert restorer.put_back() == []
    assert seen == ["128"] * 3


def test_a_guard_puts_everything_back_also_where_nobody_has_read_its_answer(guard: Guard) -> None:
    """^C comes between an order and its answer."""
    stdin: Any = guard._process.stdin  # noqa: SLF001 - the guard's own end
    stdin.write('["unmount"]\n')
    stdin.flush()
    assert guard.end() == ()
    assert not Path(guard.folder).exists()
    assert not Path(guard.record).exists()


def test_where_the_mount_is_gone_the_next_bench_of_the_folder_is_named(tmp_path: Path) -> None:
    guard = new_guard(tmp_path)
    guard.ask("make", guard.folder, str(tmp_path))
    Path(guard.folder).rmdir()
    (left,) = guard.end()
    assert left == f"{guard.folder}: still on the server: the next bench of the same folder removes it"
    assert Path(guard.record).exists()


def test_a_record_is_left_to_the_guard_that_still_works(guard: Guard, tmp_path: Path) -> None:
    left = restore_leftovers(str(tmp_path / "records"), str(tmp_path))
    assert (
        left == f"{guard.record}: another bench of this folder runs, or restores its changes: try again later"
    )
    assert Path(guard.folder).exists()
    assert guard.end() == ()


@pytest.mark.parametrize("text", ["", "{", "7\n", '{"kind": "owner"}\n', '{"target": "/data'])
def test_a_record_that_was_cut_or_is_another_programs_is_left(tmp_path: Path, text: str) -> None:
    for name in ("1.json", "2.jsonl"):
        (tmp_path / name).write_text(text)
    assert restore_leftovers(str(tmp_path), "/data") == ""
    assert len(list(tmp_path.iterdir())) == 2


def test_a_program_ends_in_its_time_and_with_the_guard(tmp_path: Path) -> None:
    with restoring(tmp_path) as guard:
        assert guard.run(["sh", "-c", "echo figures; echo why >&2; exit 3"], 30) == ("figures\n", "why")
        assert guard.run(["sleep", "60"], 0.2)[1].startswith("no end within 0 s: the server does not answer")
        assert guard.run(["true"], 30) == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["bench", "guard"])
def test_no_program_outlives_a_killed_bench_or_guard(tmp_path: Path, victim: str) -> None:
    """To the guard, bench is the pipes that end with it."""
    child = os.fork()
    if not child:
        with suppress(OSError):
            guard = new_guard(tmp_path)
            (tmp_path / "guard").write_text(str(guard.pid))
            guard.run(["sh", "-c", f"echo $$ > {tmp_path}/program; exec sleep 60"], 60)
        os._exit(0)
    program = tmp_path / "program"
    assert gone(lambda: not program.exists() or not program.read_text())
    os.kill(child if victim == "bench" else int((tmp_path / "guard").read_text()), signal.SIGKILL)
    assert gone(lambda: Path(f"/proc/{program.read_text().strip()}/cmdline").exists())
    os.waitpid(child, 0)


@only_root
def test_no_other_program_sees_the_mount(tmp_path: Path) -> None:
    name = os.uname().nodename
    with restoring(tmp_path) as guard:
        guard.ask("mount", SMALL)
        assert " /run tmpfs rw" in mounts_of(guard)[0]
        assert guard.run(["sh", "-c", f"echo x > {POINT}/file; uname -n"], 30) == (
            f"{name}-nfstuned-bench\n",
            "",
        )
        assert not Path(POINT, "file").exists()
        guard.ask("unmount")
        guard.ask("mount", LARGER)
        assert [row.split(" ")[0] for row in mounts_of(guard)] == ["larger"]
        assert "sync" in mounts_of(guard)[0]
        guard.ask("unmount")
        assert mounts_of(guard) == []
    assert os.uname().nodename == name


@only_root
def test_a_refusal_has_the_kernels_reason(tmp_path: Path) -> None:
    with restoring(tmp_path) as guard:
        with pytest.raises(OSError, match=r"^mounting small with size=1M: No such device$"):
            guard.ask("mount", {**SMALL, "fstype": "nosuchfs"})
        guard.ask("mount", SMALL)
        assert len(mounts_of(guard)) == 1


@only_root
def test_an_unmount_waits_for_a_user_of_the_mount_and_never_detaches_it(tmp_path: Path) -> None:
    with restoring(tmp_path) as guard:
        guard.ask("mount", SMALL)
        file = os.open(f"/proc/{guard.pid}/root{POINT}/file", os.O_CREAT | os.O_RDWR)
        child = os.fork()
        if not child:
            time.sleep(0.5)
            os._exit(0)
        os.close(file)
        began = time.monotonic()
        guard.ask("unmount")
        os.waitpid(child, 0)
        assert time.monotonic() - began > 0.3
