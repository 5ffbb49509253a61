"""Samples read back from files as they are found on hosts, and from a journal that journald has written."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from nfstuned.core.samples.sample import to_line
from nfstuned.errors import ParseError
from nfstuned.host.root import Root
from nfstuned.host.telemetry.history import LONGEST, changes, from_files, from_journal
from nfstuned.host.telemetry.sinks import append
from nfstuned.model.samples import Sample, SampleFile
from tests.host.journald import Told, demand_journald, record
from tests.parse.test_samples import SAMPLE
from tests.tree import put
from tests.users import NOBODY, rights_of

DATA = Path(__file__).parents[1] / "parse/data"
LATIN = replace(SAMPLE, mount_points=(os.fsdecode(b"/srv/\xff a"),), time=SAMPLE.time + 60)


def numbered(*numbers: int) -> list[Sample]:
    return [replace(SAMPLE, time=float(number)) for number in numbers]


def text(samples: Sequence[Sample]) -> bytes:
    return b"".join(map(to_line, samples))


def times(path: Path | str, since_s: float | None = None) -> list[float]:
    found = list(from_files(str(path), since_s))
    assert all(isinstance(item, Sample) for item in found)
    return [item.time for item in found if isinstance(item, Sample)]


def problems(path: Path) -> list[str]:
    return [str(item) for item in from_files(str(path), None) if isinstance(item, ParseError)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "samples.jsonl"


class TestFiles:
    def test_what_the_daemon_wrote_and_put_aside_comes_back_in_its_order(self, tmp_path: Path) -> None:
        put(tmp_path / "proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
        samples = numbered(*range(1000, 1030))
        target = SampleFile("/samples.jsonl", 3 * len(to_line(samples[0])), 10)
        assert append(Root(str(tmp_path)), target, [to_line(sample) for sample in samples]).lines == 30
        assert (tmp_path / "samples.jsonl.9").exists()
        assert list(from_files(str(tmp_path / "samples.jsonl"), None)) == samples

    def test_what_logrotate_put_aside_counts_compressed_or_not(self, file: Path) -> None:
        file.write_bytes(text(numbered(6)))
        file.with_name("samples.jsonl.1").write_bytes(text(numbered(5)))
        file.with_name("samples.jsonl.2.gz").write_bytes(gzip.compress(text(numbered(4))))
        file.with_name("samples.jsonl.10.gz").write_bytes(gzip.compress(text(numbered(3))))
        file.with_name("samples.jsonl-20260702").write_bytes(text(numbered(2)))
        file.with_name("samples.jsonl-20260701.gz").write_bytes(gzip.compress(text(numbered(1))))
        for other in ("samples.jsonl.bak", "samples.jsonl.1.swp", "other.jsonl.1", "samples.jsonl~"):
            file.with_name(other).write_bytes(b"nonsense")
        assert times(file) == [1, 2, 3, 4, 5, 6]
        assert times(file.with_name("samples.jsonl.1")) == [5]
        file.unlink()
        assert times(file) == [1, 2, 3, 4, 5]

    def test_other_kinds_of_files_are_reported_and_not_waited_for(self, file: Path, tmp_path: Path) -> None:
        """In a folder that others may write to; the file itself may be a pipe, for whoever names it."""
        file.write_bytes(text(numbered(5)))
        (tmp_path / "another").write_bytes(text(numbered(4)))
        file.with_name("samples.jsonl.1").symlink_to("another")
        os.mkfifo(file.with_name("samples.jsonl.2"))
        file.with_name("samples.jsonl.3").mkdir()
        file.with_name("samples.jsonl.4").write_bytes(text(numbered(1)))
        assert times_of(file) == [1, 5]
        assert problems(file) == [
            f"{file}.3: a directory instead of a file: not read",
            f"{file}.2: a fifo instead of a file: not read",
            f"{file}.1: a link instead of a file: not read",
        ]

    def test_a_rotation_in_the_middle_loses_nothing(self, file: Path) -> None:
        file.write_bytes(text(numbered(2)))
        file.with_name("samples.jsonl.1").write_bytes(text(numbered(1)))
        found = from_files(str(file), None)
        first = next(found)
        file.rename(file.with_name("samples.jsonl.1"))
        file.write_bytes(text(numbered(3)))
        assert [item.time for item in (first, *found) if isinstance(item, Sample)] == [1, 2]

    def test_a_sample_that_several_files_have_comes_once(self, file: Path) -> None:
        """A copy that was made while the file grew; a file that was put together in another order."""
        other = [replace(sample, device="0:99") for sample in numbered(3)]
        file.write_bytes(text([*numbered(3, 4, 5), *other]))
        file.with_name("samples.jsonl.1").write_bytes(text(numbered(2, 3, 4)))
        file.with_name("samples.jsonl.2").write_bytes(text(numbered(1, 2, 5)))
        assert times(file) == [1, 2, 5, 3, 4, 3]

    def test_a_byte_order_mark_costs_no_sample(self, file: Path) -> None:
        marked = b"\xef\xbb\xbf" + text(numbered(1, 2))
        file.write_bytes(marked + b"\xef\xbb\xbf" + text(numbered(3)))
        assert times(file) == [1, 2, 3]
        assert times(file, 2.0) == [2, 3], "those that are new enough"

    def test_a_damaged_line_costs_itself_alone(self, file: Path) -> None:
        file.write_bytes(
            text(numbered(1)) + b'{"time": 3\n\n' + text(numbered(2)) + b"\xff\n" + to_line(SAMPLE)[:90]
        )
        assert times_of(file) == [1, 2]
        first, second, third = problems(file)
        assert first.startswith(f"{file}:2: not JSON (")
        assert second.startswith(f"{file}:5: not UTF-8: ")
        assert third.startswith(f"{file}:6: not JSON (")

    @pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
    def test_a_file_of_another_encoding_says_what_makes_it_readable(self, file: Path, encoding: str) -> None:
        """So PowerShell writes what is redirected to a file."""
        file.write_bytes(f"\ufeff{text(numbered(1, 2)).decode()}".encode(encoding))
        assert times_of(file) == []
        remedy = "iconv -f UTF-16 -t UTF-8 FILE | nfstuned samples --file -"
        assert problems(file) == [f"{file}: UTF-16 is not supported here: {remedy}"]

    @pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
    def test_a_saved_mountstats_is_refused_with_what_reads_it(self, file: Path, mark: bytes) -> None:
        file.write_bytes(mark + (DATA / "6.12/mountstats").read_bytes())
        with pytest.raises(
            OSError, match="is a saved mountstats, not samples: nfstuned top --file /"
        ) as error:
            from_files(str(file), None)
        assert error.value.filename == str(file)

    def test_a_line_without_an_end_is_not_kept_in_memory(self, file: Path) -> None:
        file.write_bytes(b"x" * (2 * LONGEST + 7) + b"\n" + text(numbered(1)))
        assert problems(file) == [f"{file}:1: longer than {LONGEST} bytes"]
        assert times_of(file) == [1]
        file.write_bytes(b"x" * (LONGEST + 1))
        assert problems(file) == [f"{file}:1: longer than {LONGEST} bytes"]

    def test_a_file_that_is_being_compressed_counts_once(self, file: Path) -> None:
        file.with_name("samples.jsonl.1").write_bytes(text(numbered(1)))
        file.with_name("samples.jsonl.1.gz").write_bytes(gzip.compress(text(numbered(1)))[:20])
        file.write_bytes(text(numbered(2)))
        assert times(file) == [1, 2]

    @pytest.mark.parametrize(
        ("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
    )
    def test_every_compression_is_read(self, file: Path, suffix: str, pack: Callable[[bytes], bytes]) -> None:
        older = file.with_name(f"samples.jsonl.1{suffix}")
        older.write_bytes(pack(text(numbered(1))))
        file.write_bytes(text(numbered(2)))
        assert times(file) == [1, 2]
        for damaged in (pack(text(numbered(1)))[:-20] + b"x" * 20, pack(text(numbered(1)))[:-20]):
            older.write_bytes(damaged)
            assert times_of(file) in ([1, 2], [2])
            assert [problem.partition(": ")[2][:7] for problem in problems(file)] == ["damaged"]

    @pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd is not installed (Debian's package zstd)")
    def test_a_compression_that_is_not_read_is_said_with_its_remedy(self, file: Path) -> None:
        file.with_name("samples.jsonl.1").write_bytes(text(numbered(1)))
        subprocess.run(["zstd", "-q", "--rm", f"{file}.1"], check=True)
        file.write_bytes(text(numbered(2)))
        assert times_of(file) == [2]
        assert problems(file) == [
            f"{file}.1.zst: zstd is not supported here: zstd -dc FILE | nfstuned samples --file -"
        ]

    def test_stdin_is_a_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text(numbered(1, 2)))))
        assert times("-") == [1, 2]

    @pytest.mark.parametrize("name", ["absent.jsonl", "absent/samples.jsonl", "."])
    def test_what_cannot_be_read_is_an_os_error_at_once(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(OSError, match=r"No such file|Is a directory"):
            from_files(str(tmp_path / name), None)


def times_of(file: Path) -> list[float]:
    return [item.time for item in from_files(str(file), None) if isinstance(item, Sample)]


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with a real journal: two samples of root's, and one that a user without rights sent."""
    tree = tmp_path_factory.mktemp("journal")
    record(tree / "var/log/journal", [SAMPLE, LATIN], forged=[replace(SAMPLE, source="forged:/x")])
    return tree


@pytest.fixture(params=["library", "journalctl"])
def _by_library_or_tool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "journalctl":
        monkeypatch.setitem(sys.modules, "systemd.journal", None)


class TestJournal:
    @pytest.mark.usefixtures("_by_library_or_tool")
    def test_what_was_sent_comes_back_where_it_is_new_enough(self, journal: Path) -> None:
        for since_s in (None, time.time() - 3600):
            assert list(from_journal(Root(str(journal)), since_s)) == [SAMPLE, LATIN]
        assert list(from_journal(Root(str(journal)), time.time() + 3600)) == []

    @pytest.mark.parametrize("closed", ["folder", "file"])
    def test_a_journal_that_a_user_may_not_read_is_not_empty(self, readable: Path, closed: str) -> None:
        file = put(readable / "var/log/journal/3d1219c7/system.journal")
        (file.parent if closed == "folder" else file).chmod(0)
        with (
            rights_of(NOBODY),
            pytest.raises(OSError, match=r"sudo, or add the user to the group systemd-journal"),
        ):
            from_journal(Root(str(readable)), None)
        file.parent.chmod(0o700)

    def test_a_host_without_a_journal_says_what_else_there_is(self, tmp_path: Path) -> None:
        demand_journald()
        with pytest.raises(OSError, match=r"no journal in /var/log/journal .* --file FILE"):
            from_journal(Root(str(tmp_path)), None)


@pytest.mark.usefixtures("_by_library_or_tool")
def test_changes_are_told_with_what_they_are_about(tmp_path: Path) -> None:
    told: list[Told] = [
        ("STARTED", "nfstuned 1", {"version": "1"}),
        ("READ_AHEAD_SET", "changed", {"device": "0:43", "mount_point": "/srv/a b"}),
        ("EVENTS_LOST", "not a change", {"reason": "x"}),
    ]
    record(tmp_path / "var/log/journal", [SAMPLE], told=told)
    found = list(changes(Root(str(tmp_path)), None))
    assert [(event.name, event.text, event.device, event.mount_point) for event in found] == [
        ("STARTED", "nfstuned 1", "", ""),
        ("READ_AHEAD_SET", "changed", "0:43", "/srv/a b"),
    ]
    assert all(abs(event.time - time.time()) < 3600 for event in found)
    assert list(changes(Root(str(tmp_path)), time.time() + 3600)) == []
