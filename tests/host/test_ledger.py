from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.core.image import plan_files
from nfstuned.errors import ParseError
from nfstuned.host.files.ledger import (
    Ledger,
    digest_at,
    missing_folders,
    parse_installed,
    put,
    render_installed,
    take,
    take_folders,
)
from nfstuned.host.files.write import NEW
from nfstuned.host.image_root import ImageRoot
from nfstuned.model.change import (
    Content,
    FileStep,
    Installed,
    Link,
    Placement,
    Work,
    digest,
    encoded,
    is_file,
)

LIST = "etc/list.json"
LEFT = f".0123456789abcdef{NEW}"
"""The name of a file that a kill left."""

DIGEST = "a" * 64
WRITTEN = Installed({"usr/local/share/man/man1/nfstuned.1": (DIGEST,)}, ("usr/local/lib/x",))
BAKED = Installed(
    {"etc/a.wants/b": (digest(Link("/usr/lib/b\n")),), "etc/c": (DIGEST, digest(b"c"))},
    before={"etc/c": "not UTF-8: \udcff\n"},
)


@pytest.fixture
def root(tmp_path: Path) -> ImageRoot:
    (tmp_path / "etc").mkdir()
    return ImageRoot(str(tmp_path))


def write(root: ImageRoot, replaced: dict[str, str] | None = None, **contents: Content) -> Installed:
    """Write files of etc/a, and return the list."""
    ledger = Ledger(root, LIST)
    wanted = {f"etc/a/{name}": content for name, content in contents.items()}
    found = ledger.digests(wanted)
    steps = (
        tuple(Placement(path, FileStep.WRITE) for path in wanted)
        if replaced
        else plan_files(wanted, found, ledger.known, "it")
    )
    ledger.carry_out(Work(steps, wanted, found, replaced or {}))
    return Ledger(root, LIST).known


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_the_list_has_each_wanted_file_and_each_new_folder(root: ImageRoot, tmp_path: Path) -> None:
    installed = write(root, one=b"1", two=Link("/one"))
    assert installed.folders == ("etc/a",)
    assert set(installed.digests) == {"etc/a/one", "etc/a/two"}
    assert names(tmp_path) == {"etc", "etc/a", "etc/a/one", "etc/a/two", LIST}
    assert set(write(root, one=b"new").digests) == {"etc/a/one"}
    assert names(tmp_path) == {"etc", "etc/a", "etc/a/one", LIST}


def test_a_text_that_was_replaced_is_put_back(root: ImageRoot, tmp_path: Path) -> None:
    (tmp_path / "etc/a").mkdir()
    (tmp_path / "etc/a/one").write_text("old")
    write(root, {"etc/a/one": "old"}, one=b"new")
    assert (tmp_path / "etc/a/one").read_text() == "new"
    ledger = Ledger(root, LIST)
    work = Work((Placement("etc/a/one", FileStep.REMOVE),), {}, ledger.digests())
    assert ledger.finished(work) == set()
    ledger.carry_out(work)
    assert ledger.finished(work) == {"etc/a/one"}
    assert (tmp_path / "etc/a/one").read_text() == "old"
    assert names(tmp_path) == {"etc", "etc/a", "etc/a/one"}


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_anything_but_a_file_is_no_list(kind: str, root: ImageRoot, tmp_path: Path) -> None:
    (tmp_path / LIST).mkdir() if kind == "folder" else (tmp_path / LIST).symlink_to("/nowhere")
    with pytest.raises(ParseError, match=f"^/{LIST}: is not a regular file"):
        Ledger(root, LIST)


def test_a_digest_differs_for_nothing_a_file_and_anything_else(root: ImageRoot, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    found = [digest_at(root, name) for name in ("file", "etc", "link", "absent", "file/below")]
    assert found == [digest(b"text"), "", "-> file", None, None]


@pytest.mark.parametrize(("old", "new"), [(b"old", b"new"), (Link("/lib/b"), Link("/usr/lib/b"))])
def test_no_changed_file_is_replaced(old: Content, new: Content, root: ImageRoot, tmp_path: Path) -> None:
    put(root, "etc/a/b", old, None)
    with pytest.raises(FileExistsError) as raised:
        put(root, "etc/a/b", new, None)
    assert raised.value.filename == "/etc/a/b"
    with pytest.raises(OSError, match="was changed meanwhile"):
        put(root, "etc/a/b", new, digest(b"another text"))
    assert (digest_at(root, "etc/a/b"), names(tmp_path)) == (digest(old), {"etc", "etc/a", "etc/a/b"})
    put(root, "etc/a/b", new, digest(old))
    assert (digest_at(root, "etc/a/b"), names(tmp_path)) == (digest(new), {"etc", "etc/a", "etc/a/b"})


@pytest.mark.parametrize("how", ["put", "tidy"])
@pytest.mark.parametrize("kind", ["file", "link"])
def test_only_a_file_that_a_kill_left_goes(how: str, kind: str, root: ImageRoot, tmp_path: Path) -> None:
    (tmp_path / "etc/a").mkdir()
    left, other = tmp_path / "etc/a" / LEFT, tmp_path / "etc/a" / f".b{NEW}"
    left.write_text("ha") if kind == "file" else left.symlink_to("/lib/b")
    other.write_text("mine")
    if how == "put":
        put(root, "etc/a/b", b"new", None)
    else:
        listed = Installed(dict.fromkeys(("etc/a/b", "etc/absent/c", "no/folder"), ("0" * 64,)))
        (tmp_path / LIST).write_text(render_installed(listed))
        Ledger(root, LIST).tidy()
    assert names(tmp_path / "etc/a") - {"b"} == {other.name}


def test_folders_are_made_and_those_that_are_empty_removed(root: ImageRoot, tmp_path: Path) -> None:
    missing = missing_folders(root, ["etc/local/share/man/x", "etc/local/lib/x"])
    assert missing == ("etc/local", "etc/local/share", "etc/local/share/man", "etc/local/lib")
    put(root, "etc/local/share/man/x", b"new", None)
    take_folders(root, missing)
    assert (tmp_path / "etc/local/share/man/x").exists()
    take(root, "etc/local/share/man/x")
    take(root, "etc/local/share/man/x")
    take_folders(root, missing)
    assert names(tmp_path) == {"etc"}


def test_a_link_to_nowhere_as_a_folder_is_no_way_out(root: ImageRoot, tmp_path: Path) -> None:
    outside = tmp_path.parent / "outside"
    (tmp_path / "etc/a").symlink_to(f"../../../../../../..{outside}")
    with pytest.raises(FileNotFoundError):
        put(root, "etc/a/b", b"new", None)
    assert not outside.exists()


def shaped(files: str, folders: str = "[]", before: str = "{}") -> str:
    return f'{{"schema": "nfstuned.installed/1", "files": {files}, "folders": {folders}, "before": {before}}}'


@pytest.mark.parametrize("installed", [WRITTEN, BAKED, Installed()])
def test_a_list_is_read_back_as_it_was_written(installed: Installed) -> None:
    assert parse_installed(render_installed(installed), "list") == installed


def test_digests_of_links_differ_from_files_and_from_each_other() -> None:
    found = {digest(b""), digest(b"/a"), digest(b"-> /a"), digest(Link("/a")), digest(Link("/b"))}
    assert len(found) == 5
    assert is_file(digest(b""))
    assert not any(is_file(other) for other in (digest(Link("/a")), "", None))


def test_a_text_that_was_read_has_its_bytes_again() -> None:
    data = b"a\xff\n"
    assert encoded(data.decode("utf-8", "surrogateescape")) == data


def test_a_list_of_another_version_or_that_is_cut_off_anywhere_is_refused() -> None:
    with pytest.raises(ParseError, match=r"list: its schema is 'nfstuned\.installed/2'"):
        parse_installed(shaped("{}").replace("/1", "/2"), "list")
    text = render_installed(WRITTEN).rstrip()
    for end in range(len(text)):
        with pytest.raises(ParseError, match="list: "):
            parse_installed(text[:end], "list")


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        shaped("[]"),
        shaped('{"a": []}'),
        shaped('{"a": ["0"]}'),
        shaped('{"a": "aa"}'),
        shaped('{"a": ["-> "]}'),
        shaped('{"\\ud800": ["-> a"]}'),
        shaped("{}", folders="[1]"),
        shaped("{}", folders='["\\ud800"]'),
        shaped("{}", before='{"a": 1}'),
        shaped("{}", before="[]"),
        shaped("{}", before='{"a": "\\ud800"}'),
    ],
)
def test_a_list_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="list: "):
        parse_installed(text, "list")


@pytest.mark.parametrize("value", ["[" * 100_000, "[" * 900 + "]" * 900])
def test_a_list_that_is_nested_deep_is_refused_in_plain_words(value: str) -> None:
    for text in (value, f'{{"schema": "nfstuned.installed/1", "files": {{"a": {value}}}, "folders": []}}'):
        with pytest.raises(ParseError) as raised:
            parse_installed(text, "list")
        assert "recursion" not in str(raised.value)
