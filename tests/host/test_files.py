from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.host.files.installed import (
    baked_text,
    contents,
    digest_at,
    missing_folders,
    put,
    sweep,
    take,
    take_folders,
)
from nfstuned.host.image_root import ImageRoot
from nfstuned.model.files import FILES, RULE, Link
from nfstuned.parse.etc.installed import digest
from tests.check import hosts

NAME = "usr/local/share/man/man8/nfstuned.8"


@pytest.fixture
def root(tmp_path: Path) -> ImageRoot:
    return ImageRoot(str(tmp_path))


def test_each_file_of_this_installation_has_a_place_below_the_prefix() -> None:
    texts = contents("usr/local", "/opt/nfstuned/bin/nfstuned")
    assert set(texts) == {f"usr/local/{place}" for place in FILES.values()}
    unit = texts["usr/local/lib/systemd/system/nfstuned.service"]
    assert unit.count(b"/opt/nfstuned/bin/nfstuned") == 4
    assert b"/usr/bin/nfstuned" not in unit


def test_a_digest_tells_nothing_from_what_is_no_file(root: ImageRoot, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("file")
    assert digest_at(root, "file") == digest(b"text")
    found = [digest_at(root, name) for name in ("folder", "link", "absent", "file/below")]
    assert found == ["", "-> file", None, None]


def test_what_appears_meanwhile_is_not_overwritten(root: ImageRoot, tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(b"somebody else's")
    with pytest.raises(FileExistsError) as raised:
        put(root, NAME, b"new", None)
    assert raised.value.filename == f"/{NAME}"
    assert [(one.name, one.read_bytes()) for one in path.parent.iterdir()] == [
        (path.name, b"somebody else's")
    ]


def test_what_is_changed_meanwhile_is_not_overwritten(root: ImageRoot, tmp_path: Path) -> None:
    put(root, NAME, b"old", None)
    (tmp_path / NAME).write_bytes(b"edited")
    with pytest.raises(OSError, match="was changed meanwhile"):
        put(root, NAME, b"new", digest(b"old"))
    assert (tmp_path / NAME).read_bytes() == b"edited"


def test_what_a_kill_left_beside_a_file_is_in_nobodys_way(root: ImageRoot, tmp_path: Path) -> None:
    (tmp_path / NAME).parent.mkdir(parents=True)
    (tmp_path / NAME).with_name(".nfstuned.8.nfstuned-new").write_bytes(b"ha")
    put(root, NAME, b"new", None)
    assert [one.name for one in (tmp_path / NAME).parent.iterdir()] == ["nfstuned.8"]


def test_a_link_is_made_and_replaced_as_a_file_is(root: ImageRoot, tmp_path: Path) -> None:
    put(root, "etc/a.wants/b", Link("/lib/b"), None)
    with pytest.raises(FileExistsError):
        put(root, "etc/a.wants/b", Link("/usr/lib/b"), None)
    with pytest.raises(OSError, match="was changed meanwhile"):
        put(root, "etc/a.wants/b", Link("/usr/lib/b"), digest(b"a file"))
    put(root, "etc/a.wants/b", Link("/usr/lib/b"), digest(Link("/lib/b")))
    assert (tmp_path / "etc/a.wants/b").readlink() == Path("/usr/lib/b")
    assert len(list((tmp_path / "etc/a.wants").iterdir())) == 1


def test_what_a_kill_left_is_swept_away_and_nothing_else(root: ImageRoot, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    for name in (".a.nfstuned-new", ".b.nfstuned-new", "a"):
        (tmp_path / "etc" / name).write_text("x")
    for name in ("etc/a", "etc/absent", "etc/a/below", "no/folder"):
        sweep(root, name)
    assert {one.name for one in (tmp_path / "etc").iterdir()} == {".b.nfstuned-new", "a"}


def test_the_rule_of_those_without_the_service_is_at_hand() -> None:
    assert baked_text(RULE) == (Path(__file__).parents[2] / RULE).read_bytes()


def test_folders_are_made_and_those_that_are_empty_removed(root: ImageRoot, tmp_path: Path) -> None:
    (tmp_path / "usr").mkdir()
    missing = missing_folders(root, [NAME, "usr/local/lib/x"])
    assert missing == (
        "usr/local",
        "usr/local/share",
        "usr/local/share/man",
        "usr/local/share/man/man8",
        "usr/local/lib",
    )
    put(root, NAME, b"new", None)
    take_folders(root, missing)
    assert (tmp_path / NAME).exists()
    take(root, NAME)
    take(root, NAME)
    take_folders(root, missing)
    assert list((tmp_path / "usr").iterdir()) == []


def test_a_link_to_nowhere_in_the_place_of_a_folder_is_no_way_out(root: ImageRoot, tmp_path: Path) -> None:
    outside = tmp_path.parent / "outside"
    (tmp_path / "usr").mkdir()
    (tmp_path / "usr/local").symlink_to(f"../../../../../../..{outside}")
    with pytest.raises(FileNotFoundError):
        put(root, NAME, b"new", None)
    assert not outside.exists()


def test_the_host_that_shows_the_rule_has_the_rule_that_is_written() -> None:
    text = hosts.text("image-daemonless", "etc/udev/rules.d/99-nfstuned.rules")
    assert text.encode() == baked_text(RULE)
