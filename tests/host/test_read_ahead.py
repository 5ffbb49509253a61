"""Applying and undoing over a tree of files; the kernel's own part is in tests/lab/scenarios."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from nfstuned.host import read_ahead
from nfstuned.host.read_ahead import (
    FIRST_START,
    RECORDS,
    Bdi,
    State,
    apply_action,
    hold_existing,
    identities,
    identity,
    restore,
    undo,
    write,
)
from nfstuned.host.root import Root
from nfstuned.model.mounts import Action, Hold, Record, Result
from tests.tree import put


@pytest.fixture
def root(tmp_path: Path) -> Root:
    for device in ("0:43", "0:44"):
        put(tmp_path / "sys/class/bdi" / device / "read_ahead_kb", "128\n")
    root = Root(str(tmp_path))
    State(root).prepare()
    return root


def value(root: Root, device: str) -> str:
    return Path(root.path(f"sys/class/bdi/{device}/read_ahead_kb")).read_text().strip()


@pytest.mark.parametrize(
    ("call", "step"),
    [
        ("fstat", lambda root: Bdi(root, "0:43")),
        ("fchmod", lambda root: State(root).put(Record("0:43", 1, 128, 15360))),
    ],
)
def test_a_call_that_fails_leaves_no_file_open(
    root: Root, call: str, step: Callable[[Root], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.listdir("/proc/self/fd")
    with monkeypatch.context() as failing:
        failing.setattr(os, call, Mock(side_effect=OSError(errno.EIO, "Input/output error")))
        with pytest.raises(OSError, match="Input/output"):
            step(root)
    assert os.listdir("/proc/self/fd") == before


def action(root: Root, device: str = "0:43", new_kb: int = 15360) -> Action:
    inode = identity(root, device)
    assert inode is not None
    return Action("read-ahead", device, inode, "/mnt/a", 128, new_kb, "because")


def put_value(root: Root, device: str, text: str) -> None:
    """Write as the kernel does: the same inode, nothing left of the old text."""
    Path(root.path(f"sys/class/bdi/{device}/read_ahead_kb")).write_text(text)


def test_a_value_is_set_and_the_first_original_survives_later_changes(root: Root) -> None:
    for new_kb in (15360, 16384):
        assert apply_action(root, State(root), action(root, new_kb=new_kb)).result is Result.DONE
        assert value(root, "0:43") == str(new_kb)
        assert State(root).get("0:43") == Record("0:43", action(root).bdi, 128, new_kb)


@pytest.mark.parametrize("gone", [True, False])
def test_a_superblock_that_is_gone_is_skipped_and_no_next_one_touched(root: Root, *, gone: bool) -> None:
    planned = action(root)
    file = Path(root.path("sys/class/bdi/0:43/read_ahead_kb"))
    file.unlink() if gone else os.replace(put(file.with_name("other"), "512\n"), file)
    assert apply_action(root, State(root), planned).result is Result.SKIPPED
    assert gone or value(root, "0:43") == "512"
    assert State(root).get("0:43") is None


def test_a_value_that_the_kernel_refuses_is_a_failure(root: Root) -> None:
    file = Path(root.path("sys/class/bdi/0:43/read_ahead_kb"))
    file.unlink()
    file.symlink_to("/dev/full")
    planned = Action("read-ahead", "0:43", os.stat("/dev/full").st_ino, "/mnt/a", 128, 15360, "because")
    outcome = apply_action(root, State(root), planned)
    assert outcome.result is Result.FAILED
    assert "No space left" in outcome.reason


def test_a_rivals_value_that_is_read_back_is_not_recorded_as_its_own(root: Root) -> None:
    class Contested(Bdi):
        def read_kb(self) -> int:
            put_value(root, "0:43", "128\n")
            return super().read_kb()

    planned = action(root)
    with Contested(root, "0:43") as bdi:
        outcome = write(bdi, State(root), planned)
    assert (outcome.result, outcome.reason) == (Result.FAILED, "it was 128 KiB when it was read back")
    assert State(root).all()["0:43"].written_kb == planned.new_kb


@pytest.fixture
def tuned(root: Root) -> State:
    """The records of two superblocks with nfstuned's values."""
    state = State(root)
    for device, new_kb in (("0:43", 15360), ("0:44", 1024)):
        apply_action(root, state, action(root, device, new_kb))
        put_value(root, device, value(root, device) + "\n")
    return state


def test_undo_puts_every_value_back_once(root: Root, tuned: State) -> None:
    # An editor's copy is no record.
    Path(root.path("run/nfstuned/read-ahead/0:43~")).write_text("[1, 128, 15360, false]")
    outcomes = undo(root, tuned)
    assert [outcome.action.device for outcome in outcomes] == ["0:43", "0:44"]
    assert tuned.get("0:43") == Record("0:43", action(root).bdi, 128, 128, hold=Hold.UNDONE)
    assert undo(root, tuned) == ()


def test_restore_puts_every_value_back_and_forgets_that_it_did(root: Root, tuned: State) -> None:
    undone = Record("0:45", 1, 128, 128, hold=Hold.UNDONE)
    tuned.put(undone)
    outcomes = restore(root, tuned)
    assert [outcome.result for outcome in outcomes] == [Result.DONE, Result.DONE]
    assert tuned.all() == {"0:45": undone}, "the administrator's own undo is kept"


class Refusing(Bdi):
    def write_kb(self, value: int) -> None:
        raise OSError(errno.EIO, f"no {value}")


def test_a_write_that_fails_leaves_no_record_of_a_value_that_was_not_set(
    root: Root, tuned: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the old value would be another writer's at the next look."""
    known = tuned.all()
    tuned.drop("0:43")
    put_value(root, "0:43", "128\n")
    with monkeypatch.context() as patch:
        patch.setattr(read_ahead, "Bdi", Refusing)
        assert apply_action(root, tuned, action(root)).result is Result.FAILED
        assert tuned.get("0:43") == Record("0:43", action(root).bdi, 128, 128)
        assert apply_action(root, tuned, action(root, "0:44", 2048)).result is Result.FAILED
        assert tuned.get("0:44") == known["0:44"]
        assert [outcome.result for outcome in undo(root, tuned)][-1] is Result.FAILED
        assert tuned.get("0:44") == known["0:44"]
    assert apply_action(root, tuned, action(root)).result is Result.DONE
    assert tuned.get("0:43") == known["0:43"]


def test_a_record_that_cannot_be_dropped_at_the_stop_holds_nothing(
    root: Root, tuned: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(State, "drop", refuse)
    with pytest.raises(OSError, match="Read-only"):
        restore(root, tuned)
    assert tuned.get("0:43") == Record("0:43", action(root).bdi, 128, 128)
    assert value(root, "0:44").split()[0] == "128"


def test_undo_leaves_others_values_and_forgets_an_unmounted_superblock(root: Root, tuned: State) -> None:
    put_value(root, "0:43", "4096\n")
    tuned.put(Record("0:44", 1, 128, 15360))
    changed, unmounted = undo(root, tuned)
    assert changed.result is unmounted.result is Result.SKIPPED
    assert "4096" in changed.reason
    assert value(root, "0:43") == "4096"
    assert tuned.get("0:44") is None


def test_a_record_takes_the_place_of_a_longer_one_also_where_somebody_removed_the_folder(root: Root) -> None:
    state = State(root)
    for record in (Record("0:43", 2**63, 2**40, 2**40), Record("0:43", 1, 128, 128, hold=Hold.UNDONE)):
        state.put(record)
        assert state.get("0:43") == record
    shutil.rmtree(root.path("run/nfstuned/read-ahead"))
    state.put(record)
    assert state.get("0:43") == record


def test_a_record_of_version_0_1_keeps_its_hold(root: Root) -> None:
    Path(root.path("run/nfstuned/read-ahead/0:43")).write_text("[1, 128, 128, true]")
    assert State(root).get("0:43") == Record("0:43", 1, 128, 128, Hold.UNDONE)


def read_by_the_first_release(text: str) -> tuple[int, int, bool] | None:
    """Return the original value, the written value and the hold as 0.1.0 reads a record, or None."""
    try:
        bdi, original, written, undone = json.loads(text)
    except (TypeError, ValueError):
        return None
    return (
        (original, written, undone is True) if type(bdi) is type(original) is type(written) is int else None
    )


RECORDED = {
    Record("0:43", 7, 128, 15360): (128, 15360, False),
    Record("0:43", 7, 128, 512, adapted_kb=512): (128, 512, False),
    Record("0:43", 7, 128, 128, hold=Hold.UNDONE): (128, 128, True),
    Record("0:43", 7, 4096, 4096, hold=Hold.EXISTING): (4096, -1, True),
}


@pytest.mark.parametrize("record", RECORDED, ids=str)
def test_the_first_release_finds_the_original_value_and_the_hold_of_a_record(
    root: Root, record: Record
) -> None:
    State(root).put(record)
    assert State(root).get("0:43") == record
    text = Path(root.path(f"{RECORDS}/0:43")).read_text()
    assert read_by_the_first_release(text) == RECORDED[record]


def test_an_interrupted_installation_that_is_completed_holds_no_superblock_of_the_service(root: Root) -> None:
    state = State(root)
    apply_action(root, state, action(root))
    put(Path(root.path(FIRST_START)), "")
    hold_existing(root, state)
    assert state.get("0:43") == Record("0:43", action(root).bdi, 128, 15360)
    held = state.get("0:44")
    assert held is not None
    assert held.hold is Hold.EXISTING


@pytest.mark.parametrize("call", ["stat", "open", "pread", "write"])
def test_a_first_start_that_cannot_hold_a_superblock_is_repeated(
    root: Root, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    put(Path(root.path(FIRST_START)), "")
    with monkeypatch.context() as failing:
        real = getattr(os, call)

        def fail(file: object, *rest: object, **options: object) -> object:
            if call in {"stat", "open"} and "0:44" not in str(file):
                return real(file, *rest, **options)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), file)

        failing.setattr(os, call, fail)
        with pytest.raises(OSError, match="Too many open files"):
            hold_existing(root, State(root))
    hold_existing(root, State(root))
    assert {device: record.hold for device, record in State(root).all().items()} == {
        "0:43": Hold.EXISTING,
        "0:44": Hold.EXISTING,
    }
    assert not root.exists(FIRST_START)


@pytest.mark.parametrize("text", ["", "[", "[1, 2]", '["a", 1, 2, false]', "null", "[1, 2, 3]"])
def test_a_record_that_is_not_whole_counts_as_none(root: Root, text: str) -> None:
    Path(root.path("run/nfstuned/read-ahead/0:43")).write_text(text)
    assert State(root).get("0:43") is None
    assert State(root).all() == {}


def test_identities_are_those_of_anonymous_devices_only(root: Root, tmp_path: Path) -> None:
    for device in ("7:0", "btrfs-1", "0:45-fuseblk"):
        put(tmp_path / "sys/class/bdi" / device / "read_ahead_kb", "128\n")
    assert set(identities(root)) == {"0:43", "0:44"}


@pytest.mark.usefixtures("umask_077")
def test_everyone_may_read_what_was_there_before_whatever_the_umask_is(tmp_path: Path) -> None:
    """`nfstuned status` is for all users."""
    state = State(Root(str(tmp_path)))
    state.prepare()
    state.put(Record("0:43", 7, 128, 15360))
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in (RECORDS, f"{RECORDS}/0:43")]
    assert modes == [0o755, 0o644]
    assert stat.S_IMODE((tmp_path / "run/nfstuned").stat().st_mode) == 0o755
