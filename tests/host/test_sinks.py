"""The files of the service: metrics that a child replaces; samples where a disk is full, or a file moves."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.host.files.write import NEW
from nfstuned.host.root import Root
from nfstuned.host.telemetry.sinks import MetricsFile, append
from nfstuned.model.samples import Appended, SampleFile
from tests.tree import put
from tests.users import NOBODY, rights_of


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A host whose mountinfo shows no network file system, and its folder /srv."""
    put(tmp_path / "proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    (tmp_path / "srv").mkdir()
    return tmp_path


def made(host: Path) -> MetricsFile:
    return MetricsFile(Root(str(host)), "/srv/nfstuned.prom")


def end_of(file: MetricsFile) -> str:
    end = time.monotonic() + 10
    while (reason := file.finished()) is None:
        assert time.monotonic() < end, "it was not written in time"
        time.sleep(0.005)
    return reason


def written(host: Path, data: bytes = b"x") -> str:
    file = made(host)
    file.write(lambda: data)
    return end_of(file)


@pytest.mark.usefixtures("umask_077")
def test_a_file_is_replaced_whole_and_everybody_may_read_it(host: Path) -> None:
    path, data = host / "srv/nfstuned.prom", b"nfstuned_mounts 1\n" * 100_000
    path.write_text("old")
    assert written(host, data) == ""
    assert path.read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert os.listdir(path.parent) == ["nfstuned.prom"]


@pytest.mark.parametrize("kind", ["link", "second name", "pipe", "folder"])
def test_files_next_to_it_are_neither_written_to_nor_waited_for(host: Path, kind: str) -> None:
    """Whoever may write to the folder can put them there: root's file under a second name, for example."""
    victim = host / "victim"
    victim.write_text("mine")
    for name in (f"nfstuned.prom{NEW}", f".nfstuned.prom{NEW}"):
        other = host / "srv" / name
        if kind == "link":
            other.symlink_to(victim)
        elif kind == "second name":
            os.link(victim, other)
        elif kind == "pipe":
            os.mkfifo(other)
        else:
            other.mkdir()
    assert written(host) == ""
    assert (host / "srv/nfstuned.prom").read_text() == "x"
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("kind", ["link", "second name"])
def test_the_name_itself_leads_to_no_other_file(host: Path, kind: str) -> None:
    path, victim = host / "srv/nfstuned.prom", host / "victim"
    victim.write_text("mine")
    if kind == "link":
        path.symlink_to(victim)
        if os.geteuid() != 0:
            pytest.skip("only root may give a link away")
        os.lchown(path, NOBODY, NOBODY)
    else:
        os.link(victim, path)
    assert written(host) == ("Too many levels of symbolic links" if kind == "link" else "")
    assert victim.read_text() == "mine"


def test_a_write_that_hangs_holds_nobody_up_and_can_still_end(host: Path) -> None:
    """A fifo without a writer stands for a disk that does not answer."""
    file, fifo = made(host), host / "fifo"
    os.mkfifo(fifo)
    began = time.monotonic()
    file.write(fifo.read_bytes)
    assert file.finished() is None
    assert time.monotonic() - began < 1
    fifo.write_bytes(b"x")  # the disk answers
    assert end_of(file) == ""
    assert (host / "srv/nfstuned.prom").read_bytes() == b"x"


def test_a_mistake_of_nfstuned_leaves_the_old_file(host: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (host / "srv/nfstuned.prom").write_text("old")
    file = made(host)
    file.write(lambda: bytes(1 // int("0")))
    assert end_of(file).startswith("an error in nfstuned; ")
    assert "ZeroDivisionError" in capfd.readouterr().err
    assert (host / "srv/nfstuned.prom").read_text() == "old"


FILE = "/var/log/nfstuned/samples.jsonl"
MOUNTS = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
LINE = b'{"number": %d}\n'


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return tree(tmp_path)


def tree(folder: Path, mounts: str = MOUNTS) -> Root:
    put(folder / "proc/self/mountinfo", mounts)
    (folder / "var/log/nfstuned").mkdir(parents=True)
    return Root(str(folder))


def file_of(root: Root) -> Path:
    return Path(root.path(FILE.lstrip("/")))


def write(root: Root, *numbers: int, most: int = 0, keep: int = 2) -> Appended:
    return append(root, SampleFile(FILE, most, keep), [LINE % number for number in numbers])


def test_lines_are_appended_to_a_file_that_everybody_may_read(root: Root) -> None:
    assert write(root, 1, 2) == Appended(2)
    assert write(root, 3) == Appended(1)
    assert file_of(root).read_bytes() == b"".join(LINE % number for number in (1, 2, 3))
    assert stat.S_IMODE(file_of(root).stat().st_mode) == 0o644


def test_a_file_that_has_another_name_is_not_written_to(root: Root) -> None:
    """Whoever may write to the folder can give a file of root's that name too."""
    victim = Path(root.path("etc-crontab"))
    victim.write_text("precious\n")
    os.link(victim, file_of(root))
    assert write(root, 1) == Appended(0, "it has a second name (a hard link)")
    assert victim.read_text() == "precious\n"


def test_each_line_is_one_write_to_the_end(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    real = os.write

    def watched(fd: int, text: bytes) -> int:
        written.append(text)
        return real(fd, text)

    monkeypatch.setattr("nfstuned.host.telemetry.sinks.os.write", watched)
    write(root, 1, 2)
    assert written == [LINE % 1, LINE % 2]


def test_a_file_that_was_moved_removed_or_emptied_begins_with_the_next_line(root: Root) -> None:
    """With copytruncate, logrotate empties it: there is no hole in front of the next line."""
    write(root, 1)
    moved = file_of(root).rename(file_of(root).with_suffix(".moved"))
    write(root, 2)
    file_of(root).unlink()
    write(root, 3)
    assert moved.read_bytes() == LINE % 1
    assert file_of(root).read_bytes() == LINE % 3
    os.truncate(file_of(root), 0)
    write(root, 4)
    assert file_of(root).read_bytes() == LINE % 4


@pytest.mark.parametrize("left", range(1, len(LINE % 1)))
def test_a_line_that_a_crash_cut_short_never_touches_the_next(root: Root, left: int) -> None:
    file_of(root).write_bytes(LINE % 1 + (LINE % 2)[:left])
    write(root, 3, 4)
    assert (
        file_of(root).read_bytes() == LINE % 1 + (LINE % 2)[:left].rstrip(b"\n") + b"\n" + LINE % 3 + LINE % 4
    )


class TestRotation:
    def test_the_file_is_put_aside_before_it_would_be_too_large(self, root: Root) -> None:
        size = len(LINE % 1)
        write(root, *range(1, 8), most=2 * size, keep=2)
        contents = {path.name: path.read_bytes() for path in file_of(root).parent.iterdir()}
        assert contents == {
            "samples.jsonl": LINE % 7,
            "samples.jsonl.1": LINE % 5 + LINE % 6,
            "samples.jsonl.2": LINE % 3 + LINE % 4,
        }

    def test_files_of_a_larger_keep_go_with_the_next_rotation(self, root: Root) -> None:
        write(root, *range(8), most=len(LINE % 1), keep=6)
        for number, names in ((1, ["samples.jsonl", "samples.jsonl.1"]), (0, ["samples.jsonl"])):
            write(root, 8 + number, most=len(LINE % 1), keep=number)
            assert sorted(path.name for path in file_of(root).parent.iterdir()) == names
        assert file_of(root).read_bytes() == LINE % 8

    def test_a_line_larger_than_the_file_may_be_has_one_of_its_own(self, root: Root) -> None:
        assert write(root, 1, 2, most=3) == Appended(2)
        assert file_of(root).read_bytes() == LINE % 2

    @pytest.mark.parametrize(("mode", "next_mode"), [(0o640, 0o640), (0o6777, 0o666)])
    def test_the_next_file_has_the_mode_of_the_last_and_is_no_program(
        self, root: Root, mode: int, next_mode: int
    ) -> None:
        write(root, 1)
        file_of(root).chmod(mode)
        write(root, 2, most=1)
        assert stat.S_IMODE(file_of(root).stat().st_mode) == next_mode

    @given(st.lists(st.binary(min_size=1, max_size=30), max_size=30), st.integers(30, 100), st.integers(0, 3))
    def test_no_line_is_torn_and_the_disk_s_use_is_bounded(
        self, tmp_path_factory: pytest.TempPathFactory, texts: list[bytes], most: int, keep: int
    ) -> None:
        root = tree(tmp_path_factory.mktemp("tree"))
        lines = [text.hex().encode()[:29] + b"\n" for text in texts]
        assert append(root, SampleFile(FILE, most, keep), lines) == Appended(len(lines))
        files = sorted(file_of(root).parent.iterdir(), reverse=True)
        files = [*(f for f in files if f.suffix != ".jsonl"), file_of(root)]
        assert len(files) <= keep + 1
        assert all(file.stat().st_size <= most for file in files)
        left = b"".join(file.read_bytes() for file in files)
        assert b"".join(lines).endswith(left)


class TestTrouble:
    def test_a_folder_that_may_not_be_written_is_a_reason(self, readable: Path) -> None:
        root = tree(readable)
        file_of(root).parent.chmod(0o555)
        with rights_of(NOBODY):
            assert write(root, 1) == Appended(0, "Permission denied")
        file_of(root).parent.chmod(0o755)
        assert write(root, 1) == Appended(1)

    @pytest.mark.parametrize("kind", ["folder", "fifo"])
    def test_what_is_no_file_is_a_reason_and_no_wait(self, root: Root, kind: str) -> None:
        if kind == "fifo":
            os.mkfifo(file_of(root))
        else:
            file_of(root).mkdir()
        said = {"fifo": "it is not a regular file", "folder": "Is a directory"}
        assert write(root, 1) == Appended(0, said[kind])

    @pytest.mark.parametrize("link", ["var/log/nfstuned/samples.jsonl", "var/log/nfstuned"])
    def test_a_symbolic_link_is_not_followed(self, root: Root, tmp_path: Path, link: str) -> None:
        place = tmp_path / link
        if place.exists():
            place.rmdir()
        place.symlink_to(tmp_path)
        assert write(root, 1) == Appended(0, f"/{link} is a symbolic link; name its target")

    @pytest.mark.parametrize(
        ("point", "fstype"),
        [("/var", "nfs4"), ("/var/log", "cifs"), ("/var/log/nfstuned", "fuse.sshfs"), (FILE, "nfs")],
    )
    def test_a_network_file_system_is_not_touched(self, tmp_path: Path, point: str, fstype: str) -> None:
        root = tree(tmp_path, MOUNTS + f"30 22 0:40 / {point} rw - {fstype} server:/x rw\n")
        done = write(root, 1)
        assert done == Appended(0, f"{point} is on {fstype}, which may not answer; use a local folder")
        assert not file_of(root).exists()

    @pytest.mark.parametrize("point", ["/var/log/nfs", "/srv", f"{FILE}.d", "/var"])
    def test_mounts_next_to_it_or_below_a_local_one_do_not_matter(self, tmp_path: Path, point: str) -> None:
        rows = f"30 22 0:40 / {point} rw - nfs4 server:/x rw\n"
        rows += "31 30 0:41 / /var rw - tmpfs tmpfs rw\n" if point == "/var" else ""
        assert write(tree(tmp_path, MOUNTS + rows), 1) == Appended(1)


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Root]:
    """A root whose folder for samples is a file system of one page."""
    root = tree(tmp_path)
    folder = file_of(root).parent
    command = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a tmpfs")
    yield root
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_has_only_whole_lines_until_there_is_room(full: Root) -> None:
    done = write(full, *range(1000))
    assert done.reason == "No space left on device"
    assert file_of(full).read_bytes() == b"".join(LINE % number for number in range(done.lines))
    assert 200 < done.lines < 300
    assert write(full, 10**30) == Appended(0, "No space left on device")
    os.truncate(file_of(full), 0)
    assert write(full, 7) == Appended(1)
    assert file_of(full).read_bytes() == LINE % 7
    write(full, *range(1000))
    assert write(full, 8, most=1, keep=0) == Appended(1), "a rotation makes room"


def test_a_limit_of_the_process_cuts_no_line(root: Root, tmp_path: Path) -> None:
    script = (
        "import sys; from nfstuned.host.root import Root; from tests.host.test_sinks import write; "
        "print(write(Root(sys.argv[1]), *range(100)))"
    )
    done = subprocess.run(
        # -B: what Python compiled would be cut off too, and every later run would read that.
        [sys.executable, "-B", "-c", script, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
    )
    assert "Appended(lines=7, reason='No space left on device')" in done.stdout
    assert file_of(root).read_bytes() == b"".join(LINE % number for number in range(7))
