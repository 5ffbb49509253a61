from __future__ import annotations

import os
from pathlib import Path

from nfstuned.host.root import LARGEST, Root
from nfstuned.model.udev import UdevFile
from nfstuned.parse.udev_rules import read_ignored_files, read_rule_files, rule_texts
from tests.tree import put
from tests.users import NOBODY, rights_of


def test_lib_that_is_usr_lib_hides_nothing_and_is_not_hidden(tmp_path: Path) -> None:
    root = rules(tmp_path, "usr/lib/udev/rules.d/a.rules", "usr/lib/udev/rules.d/a.rule")
    (tmp_path / "lib").symlink_to("usr/lib")
    (file,) = read_rule_files(root)
    (ignored,) = read_ignored_files(root)
    assert (file.path, file.hides) == ("/usr/lib/udev/rules.d/a.rules", ())
    assert (ignored.path, ignored.hides) == ("/usr/lib/udev/rules.d/a.rule", ())


def test_what_this_user_may_not_read_is_no_mask(readable: Path) -> None:
    put(readable / "usr/lib/udev/rules.d/a.rules", "x")
    for name in "ab":
        put(readable / f"etc/udev/rules.d/{name}.rules", "y").chmod(0)
    with rights_of(NOBODY):
        seen = read_rule_files(Root(str(readable)))
    folder, hidden = "/etc/udev/rules.d", ("/usr/lib/udev/rules.d/a.rules",)
    first = UdevFile(f"{folder}/a.rules", "", hidden, unread=True)
    assert seen == (first, UdevFile(f"{folder}/b.rules", "", unread=True))


def test_a_file_that_is_too_large_is_no_mask(tmp_path: Path) -> None:
    with put(tmp_path / "etc/udev/rules.d/a.rules", "").open("r+b") as file:
        file.truncate(LARGEST + 1)
    assert read_rule_files(Root(str(tmp_path))) == (UdevFile("/etc/udev/rules.d/a.rules", "", unread=True),)


def rules(tmp_path: Path, *paths: str) -> Root:
    """Return a root with these files, each with its own path for a text."""
    for name in paths:
        put(tmp_path / name, name)
    return Root(str(tmp_path))


def paths(root: Root) -> list[str]:
    return [path for path, _ in rule_texts(root)]


def test_files_are_sorted_by_name_whatever_their_folder(tmp_path: Path) -> None:
    names = ["run/udev/rules.d/60-B.rules", "usr/local/lib/udev/rules.d/60-a.rules"]
    names += ["usr/lib/udev/rules.d/60-b.rules", "etc/udev/rules.d/99-a.rules"]
    root = rules(tmp_path, *reversed(names))
    assert paths(root) == [file.path for file in read_rule_files(root)] == [f"/{name}" for name in names]


def test_the_first_folders_file_of_a_name_hides_the_others(tmp_path: Path) -> None:
    folders = ("etc", "run", "usr/local/lib", "usr/lib", "lib")
    names = [f"{folder}/udev/rules.d/a.rules" for folder in folders]
    root = rules(tmp_path, *names)
    for number, name in enumerate(names):
        hidden = tuple(f"/{other}" for other in names[number + 1 :])
        assert rule_texts(root) == ((f"/{name}", name),)
        assert read_rule_files(root) == (UdevFile(f"/{name}", name, hidden),)
        (tmp_path / name).unlink()


def test_what_is_empty_leads_nowhere_or_is_no_file_masks_and_is_never_opened(tmp_path: Path) -> None:
    root = rules(tmp_path, *(f"usr/lib/udev/rules.d/{name}.rules" for name in "abcd"))
    folder = tmp_path / "etc/udev/rules.d"
    put(folder / "a.rules")
    put(folder / "z.rules")  # which masks nothing, and so counts for nothing
    (folder / "b.rules").symlink_to("/dev/null")
    (folder / "c.rules").mkdir()
    os.mkfifo(folder / "d.rules")
    assert paths(root) == []
    assert read_rule_files(root) == tuple(
        UdevFile(f"/etc/udev/rules.d/{name}.rules", "", (f"/usr/lib/udev/rules.d/{name}.rules",))
        for name in "abcd"
    )
    (folder / "a.rules").unlink()
    (folder / "a.rules").symlink_to("nowhere")
    assert paths(root) == []


def test_only_visible_files_that_end_in_rules_count(tmp_path: Path) -> None:
    names = (".a.rules", "a.rules~", "a.conf", "rules")
    assert paths(rules(tmp_path, *(f"etc/udev/rules.d/{name}" for name in names))) == []
