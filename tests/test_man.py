"""docs/man/: mandoc accepts the pages, and every page that is named exists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import click
import pytest

from nfstuned.cli.app import app, children
from nfstuned.host.policy import builtin_texts
from nfstuned.host.telemetry.journal import Message
from nfstuned.parse.config import schema
from nfstuned.parse.policy import parse_config

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs/man").iterdir())
REFERRERS = [ROOT / "systemd/nfstuned.service", ROOT / "systemd/nfstuned.catalog", *PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_mandoc_finds_nothing_wrong_and_the_title_is_the_files_name(page: Path) -> None:
    command = ["mandoc", "-Tlint", "-Wstyle", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    name, _, section = page.name.rpartition(".")
    assert page.read_text().startswith(f".TH {name.upper()} {section} ")


@pytest.mark.parametrize("referrer", REFERRERS, ids=lambda referrer: referrer.name)
def test_every_page_of_ours_that_is_named_exists(referrer: Path) -> None:
    named = re.findall(r"(nfstuned[a-z.]*) ?\(([158])\)", referrer.read_text())
    assert named
    assert {f"{name}.{section}" for name, section in named} <= {page.name for page in PAGES}


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


def _section(page: str, title: str) -> str:
    """Return the text of a section as a reader sees it."""
    text = (ROOT / "docs/man" / page).read_text().replace(r"\-", "-")
    return text.partition(f"\n.SH {title}\n")[2].partition("\n.SH ")[0]


def test_every_command_of_the_synopsis_is_described() -> None:
    shown = re.findall(r"^\.SY nfstuned\n\.B ([a-z -]+)$", _section("nfstuned.1", "SYNOPSIS"), re.MULTILINE)
    heads = re.findall(r'^\.TP\n\.BI? "?([a-z -]+)', _section("nfstuned.1", "COMMANDS"), re.MULTILINE)
    assert "apply --persist" in shown
    listed = [words for words in shown if any(f"{head.strip()} ".startswith(f"{words} ") for head in heads)]
    assert listed == shown


def _options(command: click.Command, name: str = "") -> dict[str, set[str]]:
    """Return the long options of the commands below a command, but --help, by the commands' names."""
    found: dict[str, set[str]] = {}
    for word, child in children(command).items():
        below = f"{name} {word}".lstrip()
        found[below] = {option for one in child.params for option in one.opts if option.startswith("--")}
        found |= _options(child, below)
    return found


def test_every_option_of_a_command_is_in_its_synopsis_and_described() -> None:
    wanted = {name: options for name, options in _options(app).items() if options}
    shown: dict[str, set[str]] = {name: set() for name in wanted}
    for block in _section("nfstuned.1", "SYNOPSIS").split(".SY nfstuned\n.B ")[1:]:
        for name in wanted:
            if re.match(rf"{name}\b", block):
                shown[name] |= set(re.findall(r"--[a-z-]+", block))
    assert {"bench", "top", "config show"} <= wanted.keys()
    assert {name: options & shown[name] for name, options in wanted.items()} == wanted
    described = "\n".join(_section("nfstuned.1", title) for title in ("COMMANDS", "OPTIONS"))
    heads = "\n".join(re.findall(r"^\.TP\n(.*)$", described, re.MULTILINE))
    assert set().union(*wanted.values()) <= set(re.findall(r"--[a-z-]+", heads))


def test_every_field_that_a_message_promises_is_described() -> None:
    promised = {f"NFSTUNED_{field.upper()}" for message in Message for field in message.fields}
    assert promised <= set(re.findall(r"NFSTUNED_[A-Z_]+", _section("nfstuned.8", "JOURNAL")))
