"""A file with a new text: its attributes, refusals, and the files after a refusal."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
import struct
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from nfstuned.host.files import replace as replacing
from nfstuned.host.files.replace import BACKUP, LinkError, Replaced, create, read_original
from nfstuned.host.files.write import NEW as TEMPORARY
from nfstuned.host.files.write import exchange, opened_folder
from nfstuned.host.root import UnusableError
from tests.host.replacing import command, lock
from tests.tree import put

OLD, NEW = b"old text\n", b"new text, which is longer\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "fstab"
    made.write_bytes(OLD)
    return made


def state(file: Path) -> tuple[int, ...]:
    """Return the values that a refusal must leave as they are."""
    now = file.lstat()
    return now.st_ino, now.st_mode, now.st_nlink, now.st_uid, now.st_size, now.st_mtime_ns


def replace(file: Path, text: bytes, wrong: Callable[[str], str] | None = None) -> Replaced:
    return replacing.replace_file(read_original(str(file)), text, lock(file), wrong)


def names(file: Path) -> set[str]:
    return {path.name for path in file.parent.iterdir()}


@pytest.mark.parametrize("exchanges", [True, False])
def test_the_new_text_has_a_backup(file: Path, monkeypatch: pytest.MonkeyPatch, *, exchanges: bool) -> None:
    if not exchanges:  # then the file is renamed
        monkeypatch.setattr(replacing, "exchange", lambda *_: False)
    done = replace(file, NEW)
    assert (done.problem, done.backup) == ("", str(file) + BACKUP)
    assert file.read_bytes() == NEW
    assert Path(str(done.backup)).read_bytes() == OLD
    assert names(file) == {"fstab", "fstab" + BACKUP}


def test_no_backup_is_ever_overwritten(file: Path) -> None:
    for text in (b"1", b"2", b"3"):
        assert replace(file, text).problem == ""
    kept = [file.parent / f"fstab{BACKUP}{end}" for end in ("", ".2", ".3")]
    assert [path.read_bytes() for path in kept] == [OLD, b"1", b"2"]
    file.write_bytes(b"2")
    assert replace(file, b"4").backup == str(kept[2])
    assert len(names(file)) == 4


def test_a_backup_that_is_no_file_stays(file: Path) -> None:
    (file.parent / f"fstab{BACKUP}").mkdir()
    (file.parent / f"fstab{BACKUP}.2").symlink_to(file)
    os.mkfifo(file.parent / f"fstab{BACKUP}.3")
    assert replace(file, NEW).backup == f"{file}{BACKUP}.4"


def test_mode_and_owner_stay(file: Path) -> None:
    file.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(file, 12, 34)
    before = file.stat()
    assert replace(file, NEW).problem == ""
    after = file.stat()
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)


def access_list() -> bytes:
    """Return the attribute of user::rw- user:1234:r-- group::r-- mask::r-- other::---."""
    entries = [(1, 6, -1), (2, 4, 1234), (4, 4, -1), (16, 4, -1), (32, 0, -1)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)


def give(path: Path, attribute: str, value: bytes) -> None:
    """Set an extended attribute; the test is skipped where the file system or the user cannot."""
    try:
        os.setxattr(path, attribute, value)
    except OSError as error:
        if error.errno not in {errno.ENOTSUP, errno.EPERM}:
            raise
        pytest.skip(f"no {attribute} here")


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("user.origin", b"x\0y"),
        ("security.selinux", b"system_u:object_r:etc_t:s0\0"),
        ("system.posix_acl_access", access_list()),
    ],
)
def test_extended_attributes_stay(file: Path, attribute: str, value: bytes) -> None:
    give(file, attribute, value)
    assert replace(file, NEW).problem == ""
    assert os.getxattr(file, attribute) == value


def test_a_folders_default_access_list_lets_nobody_in(file: Path) -> None:
    file.chmod(0o640)
    give(file.parent, "system.posix_acl_default", access_list())
    assert replace(file, NEW).problem == ""
    assert "system.posix_acl_access" not in os.listxattr(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.parametrize("how", ["written", "replaced", "touched mode", "removed", "made a link"])
def test_a_file_that_changed_meanwhile_is_left(file: Path, how: str) -> None:
    original = read_original(str(file))
    if how == "written":
        file.write_bytes(OLD.upper())
    elif how == "replaced":
        other = file.with_name("other")
        other.write_bytes(OLD)
        other.rename(file)
    elif how == "touched mode":
        file.chmod(0o600)
    else:
        file.unlink()
        if how == "made a link":
            file.symlink_to("/dev/null")
    before = state(file) if how != "removed" else None
    done = replacing.replace_file(original, NEW, lock(file))
    assert done.problem
    assert done.backup is None
    assert (state(file) if how != "removed" else None) == before
    assert names(file) == ({"fstab"} if before else set())


def test_it_is_looked_at_again_after_the_check(file: Path) -> None:
    def wrong(path: str) -> str:
        assert Path(path).read_bytes() == NEW
        file.write_bytes(b"somebody else\n")
        return ""

    assert "changed meanwhile" in replace(file, NEW, wrong).problem
    assert file.read_bytes() == b"somebody else\n"
    assert names(file) == {"fstab"}


def test_a_text_that_the_check_refuses_does_not_count(file: Path) -> None:
    before = state(file)
    assert replace(file, NEW, lambda _: "it is wrong").problem == "it is wrong"
    assert state(file) == before
    assert names(file) == {"fstab"}


def test_two_at_once_do_not_mix(file: Path) -> None:
    with open(lock(file), "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "another nfstuned" in replace(file, NEW).problem
    assert replace(file, NEW).problem == ""


def test_who_may_read_the_folder_can_hold_nothing_up(file: Path) -> None:
    with opened_folder(str(file.parent)) as fd:
        fcntl.flock(fd, fcntl.LOCK_EX)
        assert replace(file, NEW).problem == ""
    assert stat.S_IMODE(Path(lock(file)).stat().st_mode) == 0o600


def test_without_a_lock_nothing_is_changed(file: Path) -> None:
    Path(lock(file)).mkdir()
    before = state(file)
    problem = replace(file, NEW).problem
    assert problem == f"{lock(file)}: Is a directory, so that {file} is as it was"
    assert state(file) == before


def test_an_edit_at_the_last_moment_is_not_lost(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(place: int, one: str, other: str) -> bool:
        if not file.with_name("edited").exists():
            file.with_name("edited").write_bytes(b"")
            put(file.with_name("other"), b"somebody else\n").rename(file)
        return exchange(place, one, other)

    monkeypatch.setattr(replacing, "exchange", late)
    done = replace(file, NEW)
    assert "changed meanwhile" in done.problem
    assert file.read_bytes() == b"somebody else\n"
    assert names(file) == {"fstab", "edited", "fstab" + BACKUP}
    assert (done.backup, Path(str(file) + BACKUP).read_bytes()) == (str(file) + BACKUP, OLD)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), FileNotFoundError(errno.ENOENT, "gone")])
def test_the_only_old_text_stays(file: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """A server of NFS may answer ENOENT to the second try of a rename after its first answer was lost."""

    def late(place: int, one: str, other: str) -> bool:
        os.rename(one, other, src_dir_fd=place, dst_dir_fd=place)
        raise error

    monkeypatch.setattr(replacing, "exchange", late)
    done = replace(file, NEW)
    assert done.problem.startswith(f"{file} was changed, but may not outlive a power failure: ")
    assert done.problem.endswith(f"; the old file is {file}{BACKUP}")
    assert (file.read_bytes(), Path(str(done.backup)).read_bytes()) == (NEW, OLD)


@pytest.mark.parametrize("when", ["check", "exchange"])
def test_an_early_interrupt_leaves_nothing(file: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    if when == "exchange":
        monkeypatch.setattr(replacing, "exchange", interrupt)
    with pytest.raises(KeyboardInterrupt):
        replace(file, NEW, interrupt if when == "check" else None)
    assert (file.read_bytes(), names(file)) == (OLD, {"fstab"})


def test_a_file_that_a_killed_writer_left_is_removed(file: Path) -> None:
    (file.parent / f".0123456789abcdef{TEMPORARY}").write_bytes(b"half")
    assert replace(file, NEW).problem == ""
    assert names(file) == {"fstab", "fstab" + BACKUP}


def test_a_link_is_refused_unless_it_is_to_be_followed(file: Path) -> None:
    place = file.parent / "elsewhere"
    place.mkdir()
    real = file.rename(place / "real")
    file.symlink_to("elsewhere/real")
    with pytest.raises(LinkError, match="symbolic link to elsewhere/real"):
        read_original(str(file))
    done = replacing.replace_file(read_original(str(file), follow=True), NEW, lock(file))
    assert done.backup == str(real) + BACKUP
    assert file.is_symlink()
    assert real.read_bytes() == NEW


def test_anything_but_a_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name in ("fifo", "."):
        with pytest.raises(UnusableError):
            read_original(str(tmp_path / name))


@pytest.mark.usefixtures("as_user")
def test_without_rights_it_says_so_and_changes_nothing() -> None:
    before = state(Path("/etc/hostname"))
    with tempfile.TemporaryDirectory() as folder:
        done = replacing.replace_file(read_original("/etc/hostname"), b"never\n", f"{folder}/lock")
    assert done.problem == "/etc/hostname: Permission denied, so that it is as it was; run it as root"
    done = replacing.replace_file(read_original("/etc/hostname"), b"never\n", "/etc/nfstuned-test/lock")
    assert done.problem == (
        "/etc/nfstuned-test/lock: Permission denied, so that /etc/hostname is as it was; run it as root"
    )
    assert state(Path("/etc/hostname")) == before


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
def test_the_text_is_on_the_disk_before_it_counts_and_the_name_after(file: Path) -> None:
    log = file.parent.with_name(file.parent.name + ".log")
    calls = "fsync,rename,renameat,renameat2,link,linkat"
    subprocess.run(["strace", "-y", "-o", str(log), "-e", f"trace={calls}", *command(file, NEW)], check=True)
    lines = [line.partition("(")[::2] for line in log.read_text().splitlines() if "(" in line]
    assert [re.sub("at2?$", "", name) for name, _ in lines] == ["fsync", "link", "link", "rename", "fsync"]
    assert f"<{file.parent}/#" in lines[0][1]  # a file without a name
    assert f"<{file.parent}>" in lines[4][1]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return tmp_path / "conf.d" / "50-x.conf"


@pytest.mark.usefixtures("umask_077")
def test_it_is_made_with_its_folder_for_everyone_to_read(made: Path) -> None:
    """The lock's folder has the daemon's records, too, which `status` reads without rights."""
    locks = made.parents[1] / "run/nfstuned"
    assert create(str(made), NEW, str(locks / "replace.lock")) == ""
    assert made.read_bytes() == NEW
    assert stat.S_IMODE(made.stat().st_mode) == 0o644
    assert stat.S_IMODE(made.parent.stat().st_mode) == 0o755
    assert stat.S_IMODE(locks.stat().st_mode) == 0o755
    assert os.listdir(made.parent) == ["50-x.conf"]
    made.unlink()
    made.parent.chmod(0o700)
    assert create(str(made), NEW, lock(made)) == ""
    assert stat.S_IMODE(made.parent.stat().st_mode) == 0o700, "a folder that is there stays as it is"


def test_the_folder_above_is_not_made_and_one_that_leads_nowhere_is_reported(made: Path) -> None:
    far = made.parent / "more" / "x.conf"
    absent = "No such file or directory"
    assert create(str(far), NEW, f"{made.parent.parent}/lock") == f"{far}: {absent}, so that it is as it was"
    assert not made.parent.exists()
    made.parent.symlink_to("/nowhere/at/all")
    assert absent in create(str(made), NEW, lock(made))


@pytest.mark.parametrize("other", ["file", "link", "folder"])
def test_a_file_that_somebody_else_made_meanwhile_stays(made: Path, other: str) -> None:
    made.parent.mkdir()
    if other == "file":
        made.write_bytes(b"mine\n")
    elif other == "link":
        made.symlink_to("/nowhere")
    else:
        made.mkdir()
    before = made.lstat()
    assert create(str(made), NEW, lock(made)) == f"{made} was made meanwhile: look again"
    assert made.lstat() == before
    assert os.listdir(made.parent) == ["50-x.conf"]
