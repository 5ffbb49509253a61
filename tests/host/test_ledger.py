from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.core.image.files import plan_files
from nfstuned.errors import ParseError
from nfstuned.host.files.ledger import Ledger
from nfstuned.host.image_root import ImageRoot
from nfstuned.model.files import Content, Installed, Link, Placement, Step, Work

LIST = "etc/list.json"


@pytest.fixture
def root(tmp_path: Path) -> ImageRoot:
    (tmp_path / "etc").mkdir()
    return ImageRoot(str(tmp_path))


def write(root: ImageRoot, replaced: dict[str, str] | None = None, **contents: Content) -> Installed:
    """Write files of etc/a, and return the list."""
    ledger = Ledger(root, LIST)
    known, wanted = ledger.known(), {f"etc/a/{name}": content for name, content in contents.items()}
    found = ledger.digests(tuple(wanted), known)
    steps = (
        tuple(Placement(path, Step.WRITE) for path in wanted)
        if replaced
        else plan_files(wanted, found, known, "it")
    )
    ledger.carry_out(Work(steps, wanted, found, known), replaced)
    return ledger.known()


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_what_is_written_is_in_the_list_with_the_folders_that_were_made(
    root: ImageRoot, tmp_path: Path
) -> None:
    installed = write(root, one=b"1", two=Link("/one"))
    assert installed.folders == ("etc/a",)
    assert set(installed.digests) == {"etc/a/one", "etc/a/two"}
    assert names(tmp_path) == {"etc", "etc/a", "etc/a/one", "etc/a/two", LIST}


def test_what_is_not_wanted_any_more_goes_from_both(root: ImageRoot, tmp_path: Path) -> None:
    write(root, one=b"1", two=b"2")
    assert set(write(root, one=b"new").digests) == {"etc/a/one"}
    assert names(tmp_path) == {"etc", "etc/a", "etc/a/one", LIST}


def test_a_text_that_was_replaced_is_put_back(root: ImageRoot, tmp_path: Path) -> None:
    (tmp_path / "etc/a").mkdir()
    (tmp_path / "etc/a/one").write_text("old")
    installed = write(root, {"etc/a/one": "old"}, one=b"new")
    assert (tmp_path / "etc/a/one").read_text() == "new"
    ledger = Ledger(root, LIST)
    ledger.take_back([Placement("etc/a/one", Step.REMOVE)], installed, ledger.digests((), installed))
    assert (tmp_path / "etc/a/one").read_text() == "old"
    assert names(tmp_path) == {"etc", "etc/a", "etc/a/one"}


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_is_no_file_is_no_list(kind: str, root: ImageRoot, tmp_path: Path) -> None:
    (tmp_path / LIST).mkdir() if kind == "folder" else (tmp_path / LIST).symlink_to("/nowhere")
    with pytest.raises(ParseError, match=f"^/{LIST}: is no regular file"):
        Ledger(root, LIST).known()
