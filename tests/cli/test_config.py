"""`nfstuned config show|check|schema`."""

from __future__ import annotations

import io
import json
import sys

import pytest

from nfstuned.parse.config import schema
from tests.cli.conftest import Host, MakeHost
from tests.tree import put

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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
    assert site.run("config", "show", "--format", "json").document == once


def test_show_has_the_administrator_s_numbers_and_the_vendors_sources(site: Host) -> None:
    text = site.run("config", "show").out
    tables = tomllib.loads(text)
    assert tables["daemon"]["sample_interval"] == "300s"
    assert tables["samples"] == {"file": "/var/log/nfstuned/samples.jsonl", "max_size": "1M", "keep": 4}
    assert tables["profile"]["scratch"]["read_ahead_kb"] == 4096
    assert tables["profile"]["scratch"]["lower"] is True
    assert tables["profile"]["scratch"]["nconnect"] == 4
    assert tables["profile"]["scratch"]["inherits"] == "azure-files"
    assert "inherits" not in tables["profile"]["azure-files"]
    assert tables["policy"][0]["match"]["server"] == ["10.1.2.0/24", "*.example.com"]
    assert "#     https://learn.microsoft.com/en-us/azure/storage/files/nfs-performance\n" in text


def test_a_policy_may_name_a_workload_alone(host: MakeHost) -> None:
    here = host("no-nfs")
    here.configure('[[policy]]\nmatch = {}\nworkload = "mine"\n[workload.mine]\nread_ahead_kb = 256\n')
    document = here.run("config", "show", "--format", "json").document
    (entry,) = document["policy"]
    assert (entry["workload"], "profile" in entry) == ("mine", False)
    assert document["workload"]["mine"] == {"read_ahead_kb": 256, "sources": []}


def test_check_accepts_no_configuration_and_names_each_problem_on_a_line_of_stderr(host: MakeHost) -> None:
    here = host("no-nfs")
    run = here.run("config", "check")
    assert (run.status, run.err, run.out[:7]) == (0, "", "valid: ")
    here.configure('[deamon]\n[nconnect]\nmode = "maybe"\n')
    run = here.run("config", "check")
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 2)
    assert "deamon" in run.err
    assert "maybe" in run.err


@pytest.mark.parametrize(
    "row",
    [
        (SITE, 0, "valid: new.toml\n"),
        (
            '[nconnect]\nmode = "maybe"\n',
            2,
            'new.toml:2: nconnect.mode: "maybe": allowed: "advise" or "persist"\n',
        ),
        ('[[policy]]\nmatch = {}\nprofile = "installed"\n', 2, "unknown profile; "),
        (b"# \xff", 2, "new.toml:1: not UTF-8, which TOML is written in\n"),
        (None, 2, "new.toml: cannot be read: No such file or directory\n"),
    ],
)
def test_check_of_a_file_judges_it_alone(
    row: tuple[str | bytes | None, int, str], host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    (text, status, out), here = row, host("no-nfs")
    here.configure("[profile.installed]\nread_ahead_kb = broken\n")
    monkeypatch.chdir(here.tree)
    if text is not None:
        put(here.tree / "new.toml", text)
    run = here.run("config", "check", "new.toml")
    assert (run.status, run.out if status else run.err) == (status, "")
    assert out in run.err + run.out


def test_check_takes_a_configuration_from_stdin(host: MakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    here = host("no-nfs")
    for text, status in ((SITE, 0), ("[deamon]\n", 2)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        run = here.run("config", "check", "-")
        assert run.status == status
        assert (run.err or run.out).startswith("standard input:1: deamon" if status else "valid: ")


@pytest.mark.parametrize("form", ["text", "json"])
def test_show_of_an_invalid_configuration_prints_nothing_on_stdout(host: MakeHost, form: str) -> None:
    here = host("no-nfs")
    here.configure("[")
    run = here.run("config", "show", "--format", form)
    assert (run.status, run.out) == (2, "")
    assert run.err


def test_schema_prints_the_schema_of_the_file(host: MakeHost) -> None:
    run = host("no-nfs").run("config", "schema")
    assert (run.status, json.loads(run.out)) == (0, schema())
