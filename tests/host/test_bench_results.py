"""What is kept of measurements: the newest, for their user alone, and no other files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nfstuned.errors import ParseError
from nfstuned.host.bench import results


def test_a_document_is_kept_for_its_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "bench-results"
    path = Path(results.save(str(folder), 1_790_000_000.5, "{}\n"))
    assert path.read_text() == "{}\n"
    assert path.name.startswith("20260921T141320Z-")
    assert (path.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [file.name for file in folder.iterdir()] == [path.name]


def test_a_folder_that_others_may_read_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    results.save(str(tmp_path), 0.0, "x")
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_the_newest_stay_and_what_else_lies_there_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "MOST", 3)
    (tmp_path / "my-notes.json").write_text("mine")
    for second in range(6):
        results.save(str(tmp_path), second, str(second))
    assert [Path(path).read_text() for path in results.newest(str(tmp_path))] == ["5", "4", "3"]
    assert (tmp_path / "my-notes.json").read_text() == "mine"


def test_their_size_is_bounded_and_the_new_document_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "MOST_BYTES", 250)
    for second in range(4):
        results.save(str(tmp_path), second, str(second) * 100)
    assert [Path(path).read_text()[0] for path in results.newest(str(tmp_path))] == ["3", "2"]
    results.save(str(tmp_path), 9, "9" * 1000)
    assert [Path(path).read_text()[0] for path in results.newest(str(tmp_path))] == ["9"]


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("elsewhere")
    with pytest.raises(OSError, match="link"):
        results.save(str(tmp_path / "link"), 0.0, "x")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_users_folder_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    with pytest.raises(PermissionError, match="another user's"):
        results.save(str(folder), 0.0, "x")
    assert list(folder.iterdir()) == []


def test_where_nothing_was_kept_there_is_nothing(tmp_path: Path) -> None:
    assert list(results.newest(str(tmp_path / "none"))) == []


def test_what_is_no_document_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "LARGEST", 10)
    file = tmp_path / "file"
    file.write_bytes(b"x" * 11)
    with pytest.raises(ParseError, match="more than"):
        results.read_document(str(file))
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ParseError, match="not UTF-8"):
        results.read_document(str(file))
    file.write_bytes(b"\xef\xbb\xbf{}")
    assert results.read_document(str(file)) == "{}"
