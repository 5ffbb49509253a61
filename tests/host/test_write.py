from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nfstuned.host.files.write import demand_place, write_file
from tests.users import NOBODY

REFUSALS: tuple[Callable[[str], object], ...] = (demand_place, lambda place: write_file(place, ["new"]))
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "page.html"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_lines_are_written_in_utf_8(file: Path) -> None:
    write_file(str(file), ["é", "b\udcff"])
    assert file.read_bytes() == "é\nb\\udcff\n".encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~_umask()
    assert names(file.parent) == ["page.html"]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_old_file_stays_until_all_is_written(file: Path) -> None:
    file.write_text("old\n")

    def lines() -> Iterator[str]:
        yield "new"
        assert file.read_text() == "old\n"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_file(str(file), lines())
    assert file.read_text() == "old\n"
    assert names(file.parent) == ["page.html"]
    write_file(str(file), ["new"])
    assert file.read_text() == "new\n"


@pytest.mark.parametrize(("mode", "owner"), [(0o600, None), (0o640, None), (0o664, None), (0o644, NOBODY)])
def test_a_file_that_is_there_keeps_its_mode_and_owner(file: Path, mode: int, owner: int | None) -> None:
    file.write_text("old\n")
    file.chmod(mode)
    if owner is not None:
        if os.geteuid() != 0:
            pytest.skip("only root may give files away")
        os.chown(file, owner, owner)
    before = file.stat()
    write_file(str(file), ["new"])
    after = file.stat()
    assert file.read_text() == "new\n"
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


@pytest.mark.parametrize(("kind", "text"), [("link", "new\n"), ("second name", "old\n")])
def test_a_link_leads_to_its_file_and_a_second_name_keeps_its_text(file: Path, kind: str, text: str) -> None:
    target = file.with_name("target")
    target.write_text("old\n")
    file.symlink_to("target") if kind == "link" else os.link(target, file)
    write_file(str(file), ["new"])
    assert file.is_symlink() is (kind == "link")
    assert (file.read_text(), target.read_text()) == ("new\n", text)


def test_links_in_a_circle_are_an_error(file: Path) -> None:
    file.symlink_to("page.html")
    with pytest.raises(OSError, match="Too many levels"):
        write_file(str(file), ["new"])


def test_a_pipe_is_written_to(file: Path) -> None:
    os.mkfifo(file)
    reader = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    write_file(str(file), ["line"])
    assert os.read(reader, 100) == b"line\n"
    os.close(reader)
    assert stat.S_ISFIFO(file.stat().st_mode)


@pytest.mark.parametrize("name", [".", "absent/page.html", "page.html/page.html"])
def test_a_place_without_a_folder_is_refused_before_the_work(file: Path, name: str) -> None:
    demand_place(str(file))
    assert names(file.parent) == []
    for refuse in REFUSALS:
        with pytest.raises(OSError, match="directory"):
            refuse(str(file.parent / name))
    assert names(file.parent) == []


def test_a_file_is_no_folder(file: Path) -> None:
    file.write_text("old\n")
    for name in (f"{file}/page.html", f"{file}/more/page.html"):
        with pytest.raises(NotADirectoryError):
            write_file(name, ["new"])
    assert file.read_text() == "old\n"


@pytest.mark.usefixtures("as_user")
def test_a_folder_of_somebody_else_is_refused_before_the_work() -> None:
    with pytest.raises(PermissionError):
        demand_place("/etc/page.html")


@as_root
@pytest.mark.parametrize("mode", [0o1777, 0o777, 0o755])
def test_a_link_of_another_user_is_not_followed(file: Path, mode: int) -> None:
    victim = file.parent / "victim"
    victim.write_text("precious\n")
    shared = file.parent / "shared"
    shared.mkdir()
    shared.chmod(mode)
    for name, target in (("page.html", victim), ("folder", file.parent), ("null", Path("/dev/null"))):
        (shared / name).symlink_to(target)
        os.lchown(shared / name, NOBODY, NOBODY)
    for path in ("page.html", "folder/victim", "null"):
        for refuse in REFUSALS:
            with pytest.raises(OSError, match="symbolic link of another user"):
                refuse(str(shared / path))
    assert victim.read_text() == "precious\n"
    assert names(shared) == ["folder", "null", "page.html"]


@as_root
@pytest.mark.parametrize("make", [Path.touch, os.mkfifo])
def test_another_users_file_in_a_shared_folder_is_refused(tmp_path: Path, make: object) -> None:
    """The page would be that user's, or stand in a pipe that nobody reads."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    assert callable(make)
    make(shared / "page.html")
    os.chown(shared / "page.html", NOBODY, NOBODY)
    for refuse in REFUSALS:
        with pytest.raises(PermissionError, match="belongs to another user"):
            refuse(str(shared / "page.html"))


def test_a_descriptor_is_written_to(file: Path) -> None:
    fd = os.open(file, os.O_WRONLY | os.O_CREAT)
    os.write(fd, b"before\n")
    for name in ("/dev/fd", "/proc/self/fd"):
        demand_place(f"{name}/{fd}")
        write_file(f"{name}/{fd}", ["line"])
    os.close(fd)
    assert file.read_text() == "before\nline\nline\n"
    assert names(file.parent) == ["page.html"]
    write_file("/dev/null", ["line"])
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


KILLED = """
import os, signal, sys
from nfstuned.host.files import write
from nfstuned.host.files.write import write_file
if sys.argv[2] == "named":
    write._FDS = "/nowhere"
def lines():
    yield "x" * 100_000
    os.kill(os.getpid(), signal.SIGKILL)
write_file(sys.argv[1], lines())
"""


@pytest.mark.parametrize("kind", ["nameless", "named"])
def test_the_next_run_removes_the_files_of_a_killed_writer(file: Path, kind: str) -> None:
    file.write_text("old\n")
    done = subprocess.run([sys.executable, "-c", KILLED, str(file), kind], check=False)
    assert done.returncode == -9
    assert file.read_text() == "old\n"
    assert len(names(file.parent)) == (1 if kind == "nameless" else 2)
    write_file(str(file), ["new"])
    assert names(file.parent) == ["page.html"]


def test_a_file_that_another_run_writes_is_left_to_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfstuned.host.files.write._FDS", "/nowhere")
    other = file.with_name("other.html")

    def lines() -> Iterator[str]:
        write_file(str(other), ["other"])
        yield "line"

    write_file(str(file), lines())
    assert (file.read_text(), other.read_text()) == ("line\n", "other\n")
    assert names(file.parent) == ["other.html", "page.html"]
