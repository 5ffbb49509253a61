"""docs/man/: commands' pages follow `--help`, mandoc accepts all, and every page that is named exists."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from dev.manual import page
from dev.manual.page import PARTS, pages, part
from nfstuned.cli import app as commands
from nfstuned.host.policy import builtin_texts
from nfstuned.host.telemetry.journal import Message
from nfstuned.model.change import FILES
from nfstuned.parse.config import schema
from nfstuned.parse.policy import parse_config

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/man"
PAGES = sorted(FOLDER.iterdir())
REFERRERS = [
    ROOT / "README.md",
    *(file for end in ("md", "yml") for file in ROOT.glob(f"docs/**/*.{end}")),
    *(ROOT / "systemd").iterdir(),
    *ROOT.glob("nfstuned/**/*.py"),
    *PAGES,
]


def test_commands_have_their_pages_and_each_is_installed(golden: Callable[[Path, str], None]) -> None:
    for name, text in pages().items():
        golden(FOLDER / name, text)
    assert {page.name for page in FOLDER.glob("*.1")} == pages().keys()
    assert {f"docs/man/{page.name}" for page in FOLDER.iterdir()} <= FILES.keys()


def test_every_part_is_in_a_page() -> None:
    text = "".join(pages().values())
    assert [file.name for file in PARTS.glob("*.roff") if part(file.stem) not in text] == []


@click.group("pets")
def pets() -> None:
    """Keep pets."""


@pets.command("feed")
@click.option("--food", metavar="FOOD", default="hay", show_default=True, help="Give FOOD, as `feed -` does.")
@click.option("--grams", type=click.IntRange(1, 9), metavar="N", help="How much.")
@click.option("--old-way", is_flag=True, hidden=True)
@click.argument("pet")
def feed(**_: object) -> None:
    """Feed a PET. See fstab(5).

    \b
    Examples:
      pets feed rex

    \b
    Exit status:
      0  fed
    """


@pets.command("ghost", hidden=True)
def ghost() -> None:
    """Haunt."""


@pytest.fixture
def with_pets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "PLACES", {"pets": ("pets", "pets")})
    monkeypatch.setattr(commands, "load_command", lambda _: pets)


@pytest.mark.usefixtures("with_pets")
def test_a_groups_page_has_its_commands_and_nothing_that_is_hidden() -> None:
    assert (
        pages()["nfstuned-pets.1"].partition(".SH SYNOPSIS\n")[2]
        == r""".SY nfstuned
.B pets feed
[\fB\-\-food\fP\~\fIFOOD\fP]
[\fB\-\-grams\fP\~\fIN\fP]
\fIPET\fP
.YS
.SH DESCRIPTION
Keep pets.
.SH NFSTUNED PETS FEED
Feed a \fIPET\fP.
See \fBfstab\fP(5).
.SS Options
.TP
\fB\-\-food\fP \fIFOOD\fP
Give \fIFOOD\fP, as \fBfeed \-\fP does.
The default is hay.
.TP
\fB\-\-grams\fP \fIN\fP
How much.
From 1 to 9.
.SS Examples
.EX
pets feed rex
.EE
.SS Exit status
.TP 3
.B 0
fed
.SH SEE ALSO
.BR nfstuned (1),
.BR fstab (5),
.BR nfstuned.toml (5),
.BR nfstuned (8)
"""
    )


@pytest.mark.usefixtures("with_pets")
def test_a_command_of_a_group_with_a_part_has_a_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pets-feed.roff").write_text("Hay is kept dry.\n.so water.roff\n")
    (tmp_path / "water.roff").write_text("So is straw.\n")
    monkeypatch.setattr(page, "PARTS", tmp_path)
    made = pages()
    assert "\n.PP\nHay is kept dry.\nSo is straw.\n.SH OPTIONS\n" in made["nfstuned-pets-feed.1"]
    assert ".BR nfstuned\\-pets\\-feed (1)\nFeed a \\fIPET\\fP.\n" in made["nfstuned-pets.1"]
    assert "FEED" not in made["nfstuned-pets.1"]


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_mandoc_finds_nothing_wrong_and_the_title_is_the_files_name(file: Path) -> None:
    command = ["mandoc", "-Tlint", "-Wstyle", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    name, _, section = file.name.rpartition(".")
    assert file.read_text().startswith(f".TH {name.upper()} {section} ")


def test_every_page_of_ours_that_is_named_exists() -> None:
    named = {
        f"{name}.{section}"
        for file in REFERRERS
        for name, section in re.findall(r"(nfstuned[a-z.\\-]*) ?\(([158])\)", file.read_text())
    }
    assert {page.replace("\\", "") for page in named} == {file.name for file in PAGES}


def test_the_configurations_page_names_every_key_and_its_example_is_right() -> None:
    page = (ROOT / "docs/man/nfstuned.toml.5").read_text()
    example = page.partition("\n.SH EXAMPLES\n.EX\n")[2].partition("\n.EE\n")[0].replace(r"\[dq]", '"')
    policy = parse_config(builtin_texts(), [("example", example)])
    assert policy.profile("scratch").lower
    assert policy.sample_file == "/var/log/nfstuned/samples.jsonl"
    documented = set(re.findall(r"\b[a-z_]+\b", page))
    tables = schema()["$defs"].values()
    assert {key for table in tables for key in table["properties"]} <= documented
    names = {profile.name for profile in policy.profiles} | {workload.name for workload in policy.workloads}
    assert names - {"scratch"} <= set(re.findall(r"\b[a-z0-9-]+\b", page))


def test_every_field_that_a_message_promises_is_described() -> None:
    manual = (FOLDER / "nfstuned.8").read_text()
    journal = manual.partition("\n.SH JOURNAL\n")[2].partition("\n.SH ")[0]
    promised = {f"NFSTUNED_{field.upper()}" for message in Message for field in message.fields}
    assert promised <= set(re.findall(r"NFSTUNED_[A-Z_]+", journal))
