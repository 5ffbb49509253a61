"""README.md and docs/: their commands, files and links exist, and their examples hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from nfstuned.cli.app import app, children
from nfstuned.core.mounts.status import StatusRules
from nfstuned.host.policy import builtin_texts
from nfstuned.parse.policy import parse_config
from nfstuned.view.status import rule_lines

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
GUIDE = (ROOT / "docs/guide.md").read_text()
LARGEST_README = 8000
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
READ = "\n".join(page.read_text() for page in PAGES)
TEXTS = [ROOT / "CHANGELOG.md", ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PLACEHOLDERS = {"ID", "NAME"}
LAYERS = "model|parse|core|host|view|app|daemon|cli"
PROFILES = ROOT / "nfstuned/data/profiles"


def _blocks(language: str) -> list[str]:
    """Return the text of the fenced blocks that name this language, "" for those that name none."""
    found = re.findall(r"^```([a-z]*)\n(.*?)^```$", READ, re.MULTILINE | re.DOTALL)
    return [text for name, text in found if name == language]


def _commands() -> Iterator[list[str]]:
    """Yield the words of each use of nfstuned, in blocks of commands and in the text."""
    code = "\n".join([*_blocks(""), *re.findall(r"`([^`\n]+)`", READ)])
    for words in re.findall(r"^(?:[$#] )?(?:sudo )?nfstuned((?: [a-z-]+)+)", code, re.MULTILINE):
        yield words.split()


def _prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def _headings(page: Path) -> set[str]:
    """Return the names under which links reach a page's headings, as code hosts make them."""
    titles = re.findall(r"^#+ (.*)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


def _leads_somewhere(text: Path, link: str) -> bool:
    name, _, heading = link.partition("#")
    page = text.parent / name if name else text
    return page.exists() and (not heading or heading in _headings(page))


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_to_a_file_and_its_heading_leads_somewhere(text: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", _prose(text)) if "://" not in link]
    assert [link for link in links if not _leads_somewhere(text, link)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_module_that_is_named_exists(page: Path) -> None:
    """As a path or with dots, with the package's name or without."""
    code = " ".join(re.findall(r"`([^`\n]+)`", _prose(page)))
    paths = re.findall(rf"(?<![\w/.])(?:nfstuned/)?((?:{LAYERS})/[\w/]+\.py)\b", code)
    dotted = re.findall(rf"(?<![\w/.])(?:nfstuned\.)?((?:{LAYERS})(?:\.[a-z_]+)+)\.[A-Z]\w*", code)
    named = {*paths, *(name.replace(".", "/") + ".py" for name in dotted)}
    missing = [name for name in sorted(named) if not (ROOT / "nfstuned" / name).exists()]
    assert [name for name in missing if Path(name).stem not in PLACEHOLDERS] == []


def test_each_example_is_a_valid_configuration() -> None:
    policies = [parse_config(builtin_texts(), [("a document", example)]) for example in _blocks("toml")]
    assert any(policy.assignments for policy in policies)
    assert any(policy.prometheus.textfile for policy in policies)


def test_every_command_exists_with_its_options() -> None:
    found = list(_commands())
    assert {"status", "apply", "undo", "config"} <= {words[0] for words in found}
    for words in found:
        command: click.Command = app
        for word in words:
            if isinstance(command, click.Group):
                assert word in children(command), words
                command = children(command)[word]
            elif word.startswith("--"):
                assert word in {name for option in command.params for name in option.opts}, words


def test_every_file_of_the_project_that_is_named_exists() -> None:
    named = re.findall(r"(?<![\w/.])(?:dev|docs|systemd|udev|tests)/[\w./-]*\w", READ)
    assert named
    missing = [name for name in named if not (ROOT / name).exists()]
    assert [name for name in missing if Path(name).stem not in PLACEHOLDERS] == []


def test_every_built_in_profile_is_listed_with_its_number() -> None:
    for path in PROFILES.glob("*.toml"):
        if path.stem.endswith("-smb"):
            continue
        own = re.search(r'^read_ahead_kb = "?(\d+)', path.read_text(), re.MULTILINE)
        inherited = "left alone" if path.stem == "vast" else "the kernel's"
        value = own[1] if own else inherited
        assert re.search(rf"^\| `{path.stem}` \|.*\b{value}\b", GUIDE, re.MULTILINE), path.stem


def test_the_page_of_the_rule_says_the_speeds_that_the_demonstration_showed() -> None:
    slow, fast = re.findall(r"-- reading 64 MiB with a round trip of 20 ms: ([\d.]+ MB/s)", GUIDE)
    page = " ".join((ROOT / "docs/rules/NFS101.md").read_text().split())
    assert f"went from {slow} with 128 KiB to {fast} with 15360 KiB" in README
    assert f"measured {slow}, however fast the network, and {fast} with 15360 KiB" in page


def test_the_readme_is_read_in_one_go() -> None:
    assert len(README.encode()) <= LARGEST_README


def test_a_status_with_a_mask_is_shown_as_the_command_prints_it() -> None:
    masked = StatusRules("/usr/lib/udev/rules.d/99-nfs.rules", "/run/udev/rules.d/99-nfs.rules")
    assert f"{rule_lines([masked])[0]}\n" in GUIDE
