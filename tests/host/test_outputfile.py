from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from nfstuned.host.files.output import demand_place, write_file


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


def test_what_was_there_stays_until_all_is_written(file: Path) -> None:
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


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_there_keeps_who_may_read_it(file: Path, mode: int) -> None:
    file.write_text("old\n")
    file.chmod(mode)
    write_file(str(file), ["new"])
    assert file.read_text() == "new\n"
    assert stat.S_IMODE(file.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_that_is_there_keeps_its_owner(file: Path) -> None:
    file.write_text("old\n")
    os.chown(file, 65534, 65534)
    write_file(str(file), ["new"])
    assert (file.stat().st_uid, file.stat().st_gid) == (65534, 65534)


def test_a_link_keeps_leading_to_its_file(file: Path) -> None:
    target = file.with_name("target")
    target.write_text("old\n")
    file.symlink_to("target")
    write_file(str(file), ["new"])
    assert file.is_symlink()
    assert target.read_text() == "new\n"


def test_a_pipe_is_written_to(file: Path) -> None:
    os.mkfifo(file)
    reader = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    write_file(str(file), ["line"])
    assert os.read(reader, 100) == b"line\n"
    os.close(reader)
    assert stat.S_ISFIFO(file.stat().st_mode)


@pytest.mark.parametrize("name", [".", "absent/page.html"])
def test_what_cannot_be_written_is_an_os_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(OSError, match="directory"):
        write_file(str(tmp_path / name), ["line"])
    assert names(tmp_path) == []


def test_a_place_that_cannot_be_is_told_before(file: Path) -> None:
    demand_place(str(file))
    assert names(file.parent) == []
    for name in (str(file.parent), f"{file}/page.html"):
        with pytest.raises(OSError, match="directory"):
            demand_place(name)


@pytest.mark.usefixtures("as_user")
def test_a_folder_of_somebody_else_is_told_before() -> None:
    with pytest.raises(PermissionError):
        demand_place("/etc/page.html")
