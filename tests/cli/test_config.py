"""`nfstuned config show|check|schema`."""

from __future__ import annotations

import io
import json
import sys

import pytest

from nfstuned.parse.config import schema
from tests.cli.conftest import Host, MakeHost

SITE = """\
[daemon]
sample_interval = "5m"
[samples]
file = "/var/log/nfstuned/samples.jsonl"
max_size = "1M"
[prometheus]
textfile = "/srv/nfstuned.prom"
[[policy]]
match = { server = ["10.1.2.0/24", "*.example.com"], export = "/vol1*" }
profile = "scratch"
[profile.scratch]
inherits = "azure-files"
read_ahead_kb = 4096
lower = true
"""


@pytest.fixture
def site(host: MakeHost) -> Host:
    made = host("no-nfs")
    made.configure(SITE)
    return made


def test_show_is_toml_that_means_the_same_and_json_has_the_same_tables(site: Host) -> None:
    before = site.run("config", "show", "--format", "json").document
    assert before["schema"] == "nfstuned.config/1"
    azure = before["profile"]["azure-files"]
    assert (azure["read_ahead_kb"], azure["sources"][0]["url"][:8]) == (15360, "https://")
    assert before["policy"][0]["profile"] == "scratch"
    assert before["files"][0].endswith("etc/nfstuned/nfstuned.toml")
    shown = site.run("config", "show")
    assert (shown.status, shown.err) == (0, "")
    site.configure(shown.out)
    once = site.run("config", "show", "--format", "json").document
    site.configure(site.run("config", "show").out)
    again = site.run("config", "show", "--format", "json").document
    assert again | {"time": once["time"]} == once


def test_check_takes_a_configuration_from_stdin(host: MakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    here = host("no-nfs")
    for text, status in ((SITE, 0), ("[deamon]\n", 2)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        run = here.run("config", "check", "-")
        assert run.status == status
        assert (run.err or run.out).startswith("standard input:1: deamon" if status else "valid: ")


def test_schema_prints_the_schema_of_the_file(host: MakeHost) -> None:
    run = host("no-nfs").run("config", "schema")
    assert (run.status, json.loads(run.out)) == (0, schema())
