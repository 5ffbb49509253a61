"""bench's guard puts back what it was told of, and what it did not put back is never called put back."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from nfstuned.host.bench import fio, guard, guard_child
from nfstuned.model.bench import Job, Pattern


@pytest.fixture
def keeper(tmp_path: Path) -> guard.Guard:
    """A guard of a folder that is no mount, and that is made."""
    made = guard.Guard(str(tmp_path / "records"), str(tmp_path))
    made.folder("/")
    inode, problem = guard.ask("make", made.path, 30)
    assert problem == ""
    made.files(int(inode))
    return made


def kill(keeper: guard.Guard) -> None:
    """Kill the guard, as the kernel does where memory ends; what is sent to it then finds nobody."""
    os.kill(keeper._process.pid, signal.SIGKILL)  # noqa: SLF001 - nobody else knows it
    keeper._process.wait(10)  # noqa: SLF001 - as above


def test_a_guard_puts_all_back_and_says_nothing(keeper: guard.Guard) -> None:
    assert keeper.end() == ()
    assert not Path(keeper.path).exists()
    assert not Path(keeper.record).exists()


def test_only_the_files_of_fio_go(keeper: guard.Guard) -> None:
    place = Path(keeper.path)
    job = Job("reader", Pattern.READ, 1 << 16, threads=4, files=2, file_bytes=1 << 20)
    (form,) = [word for word in fio.arguments(job, keeper.path) if word.startswith("--filename_format=")]
    name = form.partition("=")[2].replace("$jobnum", "3").replace("$filenum", "1")
    (place / name).write_text("random")
    (place / "notes").write_text("somebody's")
    (place / "1-1-1.0.0").mkdir()
    assert keeper.end() == (f"{place}: Directory not empty",)
    assert sorted(path.name for path in place.iterdir()) == ["1-1-1.0.0", "notes"]


def test_another_folder_of_its_name_keeps_its_files(keeper: guard.Guard) -> None:
    """Whoever may write beside bench's folder may also rename it."""
    place = Path(keeper.path)
    place.rename(place.with_name("moved"))
    place.mkdir()
    (place / "1-1-1.0.0").write_text("somebody's")
    first, second = keeper.end()
    assert first == f"{place}: is not the folder that bench made: nothing in it was removed"
    assert second == f"{place}: Directory not empty"
    assert (place / "1-1-1.0.0").read_text() == "somebody's"
    assert Path(keeper.record).exists()


def test_of_a_folder_whose_making_nobody_answered_for_no_file_goes(tmp_path: Path) -> None:
    keeper = guard.Guard(str(tmp_path / "records"), str(tmp_path))
    keeper.folder("/")
    Path(keeper.path).mkdir()
    file = Path(keeper.path) / "1-1-1.0.0"
    file.write_text("somebody's")
    assert keeper.end() == (f"{keeper.path}: Directory not empty",)
    assert file.exists()


def test_a_guard_that_was_killed_has_put_nothing_back(keeper: guard.Guard, tmp_path: Path) -> None:
    kill(keeper)
    (left,) = keeper.end()
    assert left == (
        f"the changes in {keeper.record}: the guard has ended, "
        "and the next bench of the same folder puts them back"
    )
    assert Path(keeper.path).exists()
    lines = Path(keeper.record).read_text().splitlines()
    owner = {**json.loads(lines[0]), "began": "another"}  # this test did not end, as bench has then
    Path(keeper.record).write_text("\n".join((json.dumps(owner), *lines[1:], "")))
    assert list(guard.leftovers(str(tmp_path / "records"), str(tmp_path))) == [keeper.record]
    assert guard.clean_up(keeper.record) == ""
    assert not Path(keeper.path).exists()


def test_the_read_ahead_is_back_before_anything_that_a_dead_server_can_delay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "read_ahead_kb"
    file.write_text("15360\n")
    values: dict[object, str] = {}

    def wait(item: Mapping[str, object]) -> None:
        values[item["kind"]] = file.read_text().split()[0]

    for kind in guard_child.PUT_BACK.keys() - {"read-ahead"}:
        monkeypatch.setitem(guard_child.PUT_BACK, kind, wait)
    lines: list[dict[str, object]] = [{"kind": kind} for kind in guard_child.PUT_BACK if kind != "read-ahead"]
    lines.append({"kind": "read-ahead", "file": str(file), "inode": file.stat().st_ino, "kb": 128})
    record = tmp_path / "record"
    record.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert guard_child.undo_record(str(record)) == ""
    assert set(values.values()) == {"128"}
    assert values.keys() == {"program", "mounted", "point", "files", "empty-folder"}


def test_a_killed_guard_is_told_nothing_more(keeper: guard.Guard) -> None:
    kill(keeper)
    with pytest.raises(OSError, match=r"\.jsonl: the guard has ended$"):
        keeper.program(os.getpid())
    keeper.end()


def test_an_answer_that_nobody_waited_for_is_nothing_that_was_left(keeper: guard.Guard) -> None:
    """^C comes between a line for the guard and its answer."""
    stdin = keeper._process.stdin  # noqa: SLF001 - the guard's own end
    assert stdin is not None
    stdin.write(json.dumps({"kind": "owner"}) + "\n")
    stdin.flush()
    assert keeper.end() == ()


def test_where_the_mount_is_gone_the_next_bench_of_the_folder_is_named(tmp_path: Path) -> None:
    keeper = guard.Guard(str(tmp_path / "records"), str(tmp_path / "folder"))
    keeper.folder(str(tmp_path))
    (left,) = keeper.end()
    assert left == (f"{keeper.path}: still on the server: the next bench of the same folder removes it")
    assert Path(keeper.record).exists()


def test_what_a_guard_still_puts_back_is_left_to_it(keeper: guard.Guard) -> None:
    left = guard.clean_up(keeper.record)
    assert left.startswith("its guard (process ")
    assert left.endswith(f"still puts back the changes in {keeper.record}: try again later")
    assert Path(keeper.path).exists()
    assert keeper.end() == ()
