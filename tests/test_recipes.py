"""docs/images: each recipe's tool can read it, and its commands of nfstuned exist."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from nfstuned.cli.app import app, children
from nfstuned.parse.policy import parse_config

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"
PAGE = ROOT / "docs/images.md"
PROFILES = ROOT / "nfstuned/data/profiles"
FILES = sorted(path for path in IMAGES.rglob("*") if path.is_file())
YAML = [path for path in FILES if path.suffix in {".yaml", ".yml"}]
USER_DATA = sorted((IMAGES / "cloud-init").iterdir())
TRIALS = sorted((ROOT / "dev/trials").iterdir())
_LISTS = re.compile(r"\[(nfstuned(?:, [^\[\],]+)*)\]")
"""A command as YAML and JSON write it: a list of words."""
_LINES = re.compile(r"^(?:sudo )?(nfstuned [a-z].*)$", re.MULTILINE)


def documents(path: Path) -> list[Any]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one is not None]


def commands(path: Path) -> Iterator[list[str]]:
    """Yield the words of each use of nfstuned, its own name left out."""
    text = path.read_text()
    if path.suffix == ".md":
        text = "\n".join(re.findall(r"^```[a-z]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    for found in _LISTS.findall(text.replace('"', "")):
        yield [word.strip() for word in found.split(",")][1:]
    for line in _LINES.findall(text):
        yield shlex.split(line)[1:]


def parse(words: list[str]) -> None:
    """Let click read a command, and run nothing. Raises click.UsageError."""
    command: click.Command = app
    # click makes a command's --help once, with the names that the first context has for it.
    context = click.Context(app, info_name="nfstuned", **app.context_settings)
    rest = list(words)
    while isinstance(command, click.Group):
        assert rest[0] in children(command), words
        command = children(command)[rest.pop(0)]
    command.make_context("nfstuned", rest, parent=context)


def test_every_recipe_has_a_trial_and_is_on_the_page_which_names_no_other() -> None:
    named = set(re.findall(r"\]\((images/[^)]+)\)", PAGE.read_text()))
    assert named == {str(path.relative_to(ROOT / "docs")) for path in FILES}
    recipes = {path.name for path in IMAGES.iterdir() if path.is_dir()}
    assert {path.stem for path in TRIALS} - {"inside"} == recipes - {"aks"}


def test_the_commands_of_recipes_exist() -> None:
    found = {str(path.relative_to(ROOT)): list(commands(path)) for path in (*FILES, PAGE)}
    for recipe in ("packer/bake.sh", "mkosi/mkosi.postinst.chroot"):
        assert ["bake"] in [words[:1] for words in found[f"docs/images/{recipe}"]]
    for words in (words for each in found.values() for words in each):
        parse(words)


def test_the_scripts_of_an_image_may_be_run() -> None:
    scripts = [path for path in FILES if path.read_text().startswith("#!")]
    assert scripts
    assert [script for script in scripts if not os.access(script, os.X_OK)] == []


def policies() -> Iterator[tuple[str, str]]:
    """Yield the texts of nfstuned.toml that recipes write."""
    yield "nfstuned.toml", (IMAGES / "nfstuned.toml").read_text()
    for path in USER_DATA:
        (document,) = documents(path)
        assert path.read_text().startswith("#cloud-config\n")
        for file in document["write_files"]:
            assert file["path"].startswith("/etc/nfstuned/")
            yield path.name, file["content"]


def test_every_policy_that_a_recipe_writes_is_valid() -> None:
    builtin = [(path.name, path.read_text()) for path in sorted(PROFILES.glob("*.toml"))]
    found = list(policies())
    assert len(found) == len(YAML) + 1
    for label, text in found:
        policy = parse_config(builtin, [(label, text)])
        assert [one.profile for one in policy.assignments] == ["azure-netapp-files"], label


@pytest.mark.parametrize(
    "command",
    [
        *(("cloud-init", "schema", "--config-file", path) for path in USER_DATA),
        ("packer", "fmt", "-check", "-diff", IMAGES / "packer"),
    ],
    ids=lambda command: f"{command[0]} {Path(command[-1]).name}",
)
def test_a_recipes_own_tool_finds_nothing_wrong(command: tuple[str | Path, ...]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    subprocess.run(command, check=True, env={**os.environ, "LC_ALL": "C.UTF-8"})


def test_nothing_is_mounted_before_the_helper_is_installed() -> None:
    """The module `mounts` runs early in the boot, and a mount that fails there is an error of that boot."""
    (install,) = documents(IMAGES / "cloud-init/user-data-install.yaml")
    assert "nfs-common" in install["packages"]
    assert "mounts" not in install
    (ready,) = documents(IMAGES / "cloud-init/user-data.yaml")
    assert "packages" not in ready


def test_the_files_that_packer_copies_are_next_to_it() -> None:
    text = (IMAGES / "packer/nfstuned.pkr.hcl").read_text()
    named = re.findall(r'"\$\{path\.root\}/([^"]+)"', text)
    assert named
    assert all((IMAGES / "packer" / one).exists() for one in named)
    assert text.count("{") == text.count("}")
