from __future__ import annotations

import os
from pathlib import Path

from nfstuned.host.root import Root
from nfstuned.parse.udev.files import rule_texts


def rules(tmp_path: Path, *paths: str) -> Root:
    """Return a root with these files, each with its own path for a text."""
    for name in paths:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return Root(str(tmp_path))


def paths(root: Root) -> list[str]:
    return [path for path, _ in rule_texts(root)]


def test_files_are_sorted_by_name_whatever_their_folder(tmp_path: Path) -> None:
    root = rules(tmp_path, "usr/lib/udev/rules.d/60-b.rules", "etc/udev/rules.d/99-a.rules")
    rules(tmp_path, "run/udev/rules.d/60-B.rules", "usr/local/lib/udev/rules.d/60-a.rules")
    assert paths(root) == [
        "/run/udev/rules.d/60-B.rules",
        "/usr/local/lib/udev/rules.d/60-a.rules",
        "/usr/lib/udev/rules.d/60-b.rules",
        "/etc/udev/rules.d/99-a.rules",
    ]


def test_the_first_folders_file_of_a_name_hides_the_others(tmp_path: Path) -> None:
    folders = ("lib", "usr/lib", "usr/local/lib", "run", "etc")
    root = rules(tmp_path, *(f"{folder}/udev/rules.d/a.rules" for folder in folders))
    for folder in reversed(folders):
        assert rule_texts(root) == ((f"/{folder}/udev/rules.d/a.rules", f"{folder}/udev/rules.d/a.rules"),)
        (tmp_path / folder / "udev/rules.d/a.rules").unlink()


def test_an_empty_file_or_a_link_to_nothing_masks(tmp_path: Path) -> None:
    root = rules(tmp_path, *(f"usr/lib/udev/rules.d/{name}.rules" for name in "abc"), "etc/udev/rules.d/x")
    (tmp_path / "etc/udev/rules.d/a.rules").touch()
    (tmp_path / "etc/udev/rules.d/b.rules").symlink_to("/dev/null")
    (tmp_path / "etc/udev/rules.d/c.rules").symlink_to("nowhere")
    assert paths(root) == []


def test_only_visible_files_that_end_in_rules_count(tmp_path: Path) -> None:
    root = rules(
        tmp_path, *(f"etc/udev/rules.d/{name}" for name in (".a.rules", "a.rules~", "a.conf", "rules"))
    )
    assert paths(root) == []


def test_what_is_no_file_is_never_opened(tmp_path: Path) -> None:
    root = rules(tmp_path, "usr/lib/udev/rules.d/a.rules")
    (tmp_path / "etc/udev/rules.d/b.rules").mkdir(parents=True)
    os.mkfifo(tmp_path / "etc/udev/rules.d/a.rules")
    assert paths(root) == []
