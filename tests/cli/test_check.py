"""`nfstuned check`: its exit codes, its formats, and what it takes."""

from __future__ import annotations

import io
import json
import re
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import jsonschema
import pytest
import xmlschema

from nfstuned.cli import check as checking
from nfstuned.cli.terminal import OutsideWithProgress
from nfstuned.core.rules import catalogue
from nfstuned.core.rules.catalogue import CRASHED
from nfstuned.host.network.outside import LiveOutside
from nfstuned.host.root import Root
from nfstuned.model.facts import Facts, Fault, Need, Rule, Severity
from nfstuned.model.system import Network
from tests.check import hosts
from tests.cli.conftest import REPOSITORY, Host, MakeHost, Run
from tests.tree import put

SCHEMAS = REPOSITORY / "tests/check/schemas"
FORMATS = ("text", "json", "junit", "sarif")
STRANGE = "/mnt/\udcff \u20ac\x1b[31m<&>"
GUIDE, SHOWN = REPOSITORY / "docs/guide.md", "\n$ nfstuned check\n"


def fault(facts: Facts) -> Iterator[Fault]:
    for target in facts.targets:
        yield Fault(
            target.subject, "is wrong <&> in every way", "1", "2", "mend it", "https://example.org/a b"
        )
    yield Fault("eth0:1", "is wrong, too")
    yield Fault("/etc/udev/rules.d/9 9.rules:3", "is wrong in its third line")


def crash(facts: Facts) -> Iterator[Fault]:
    raise LookupError(f"no {len(facts.targets)}th element")


ADVICE = Rule("NFS198", "all-wrong", Severity.ADVICE, fault, "nfs(5)")
CRASH = Rule("NFS199", "broken-rule", Severity.INFO, crash, "https://example.org")
SKIPPED = Rule("NFS197", "never-judged", Severity.ERROR, fault, "nfs(5)", frozenset({Need.NETWORK}))


@dataclass(frozen=True)
class Rules:
    patch: pytest.MonkeyPatch

    def are(self, *rules: Rule) -> None:
        """Replace the catalogue's."""
        self.patch.setattr(checking, "RULES", rules)
        # The view is imported with the whole catalogue, which comes back after the test.
        self.patch.setattr("nfstuned.view.ci.CATALOGUE", (CRASHED, *rules))
        self.patch.setattr("nfstuned.core.rules.catalogue.CATALOGUE", (CRASHED, *rules))


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Rules:
    return Rules(monkeypatch)


@pytest.fixture
def low(host: MakeHost) -> Host:
    here = host("clean")
    here.set_read_ahead("0:46", 128)
    return here


def check(here: Host, *args: str) -> Run:
    return here.run("check", "--offline", "--select", "NFS1", *args)


def test_as_metrics_it_counts_each_rule_that_was_judged(host: MakeHost, rules: Rules) -> None:
    clean = next(rule for rule in catalogue.RULES if rule.id == "NFS101")
    rules.are(ADVICE, SKIPPED, clean)
    run = check(host("clean"), "--format", "prometheus")
    lines = [line for line in run.out.splitlines() if not line.startswith("#")]
    assert lines[:2] == [
        'nfstuned_findings{name="all-wrong",rule="NFS198",severity="advice"} 3.0',
        'nfstuned_findings{name="read-ahead-below-policy",rule="NFS101",severity="warning"} 0.0',
    ]
    (when,) = lines[2:]
    assert abs(float(when.removeprefix("nfstuned_findings_timestamp_seconds ")) - time.time()) < 60
    assert (run.status, run.err) == (0, "")


def test_unanswered_questions_are_printed(low: Host) -> None:
    problem = "sa1.file.core.windows.net: no answer within 3 s"

    class Silent(hosts.World):
        def ask(self, questions: object, *, offline: bool) -> tuple[Network, tuple[str, ...]]:
            del questions, offline
            return Network(), (problem,)

    def run(form: str) -> Run:
        low.capture.readouterr()
        order = checking.CheckOrder(select=("NFS101",), form=form)
        status = checking.run_check(Root(str(low.tree)), order, Silent(Network()))
        return Run(status, *low.capture.readouterr())

    text = run("text")
    assert (text.status, text.err) == (1, f"{problem}\n")
    assert "; 1 fact not known, named on stderr" in text.out
    assert run("json").document["unknown"] == [problem]


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize(
    ("name", "status", "problem"),
    [
        ("proc/1/mountstats", 1, "/proc/1/mountstats: permission denied; root can read it\n"),
        ("etc/fstab", 2, "/etc/fstab: Permission denied\n"),
    ],
)
def test_a_file_that_only_root_may_read_is_named(low: Host, name: str, status: int, problem: str) -> None:
    (low.tree / name).chmod(0)
    run = low.run("check", "--offline", "--select", "NFS101")
    assert (run.status, run.err, "/mnt/share" in run.out) == (status, problem, True)


def test_a_proposal_of_stdin_is_judged(host: MakeHost, rules: Rules, monkeypatch: pytest.MonkeyPatch) -> None:
    rules.are(ADVICE)
    here, text = host("clean"), b"srv:/b /mnt/b nfs nconnect=2 0 0\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    assert {"uri": "-"} in uris(check(here, "--fstab", "-", "--format", "sarif"))
    monkeypatch.setattr(sys, "stdin", None)
    run = check(here, "--fstab", "-")
    assert (run.status, run.out, "standard input is closed" in run.err) == (2, "", True)


@pytest.mark.parametrize("form", FORMATS)
def test_a_raising_rule_is_nfs000_and_odd_bytes_come_through(form: str, host: MakeHost, rules: Rules) -> None:
    rules.are(ADVICE, CRASH, SKIPPED)
    run = check(strange(host), "--format", form)
    assert run.status == 2
    assert "NFS000" in run.out
    assert "NFS199 broken-rule crashed: LookupError: no 2th element" in run.out
    assert "NFS198" in run.out
    run.out.encode("utf-8")
    assert "\x1b" not in run.out
    assert form != "json" or STRANGE in [mount["mount_point"] for mount in run.document["mounts"]]


def junit(run: Run) -> Element:
    """Return the suite of a document, which must keep its schema."""
    xmlschema.XMLSchema(SCHEMAS / "junit-10.xsd").validate(run.out)
    return fromstring(run.out)[0]  # noqa: S314 - it was written here


def strange(host: MakeHost) -> Host:
    """Return a host whose mount point has all that a terminal, XML and UTF-8 cannot stand."""
    here = host("clean")
    octal = "".join(f"\\{byte:03o}" for byte in STRANGE.encode("utf-8", "surrogateescape"))
    here.edit("proc/1/mountinfo", " /mnt/share ", f" {octal} ")
    (here.tree / "etc/fstab").write_bytes(b"srv\xff:/b /mnt/b nfs defaults 0 0\n")
    return here


@pytest.mark.parametrize("level", ["info", "error"])
def test_junit_keeps_its_schema(level: str, host: MakeHost, rules: Rules, tmp_path: Path) -> None:
    rules.are(SKIPPED, ADVICE, CRASH)
    file = put(tmp_path / "fstab.new", "srv:/b /mnt/b nfs soft 0 0\nsrv:/b /mnt/b\n")
    bare = host("no-nfs")
    for here, more, wrong in ((strange(host), (), "1"), (bare, (), "1"), (bare, ("--fstab", str(file)), "2")):
        suite = junit(check(here, *more, "--format", "junit", "--fail-on", level))
        cases = str(len(list(suite.iter("testcase"))))
        assert [suite.get(key) for key in ("tests", "errors", "skipped")] == [cases, wrong, "1"]
        assert (suite.get("failures") != "0") == (level == "info")
        assert level == "info" or "(NFS198)" in (suite.findtext("system-out") or "")


@pytest.mark.parametrize("image", [False, True])
def test_sarif_keeps_its_schema(host: MakeHost, rules: Rules, *, image: bool) -> None:
    rules.are(SKIPPED, ADVICE, CRASH)
    here = strange(host)
    run = check(here, "--format", "sarif", *(("--root", str(here.tree)) if image else ()))
    document = json.loads(run.out)
    schema = json.loads((SCHEMAS / "sarif-2.1.0-rtm.5.json").read_text())
    jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker()).validate(document)
    (result,) = document["runs"]
    described = [rule["id"] for rule in result["tool"]["driver"]["rules"]]
    assert all(described[one["ruleIndex"]] == one["ruleId"] for one in result["results"])
    assert {one["ruleId"]: one["level"] for one in result["results"]} == {"NFS000": "error", "NFS198": "note"}
    assert not result["invocations"][0]["executionSuccessful"]
    places = {place["artifactLocation"]["uri"]: place["region"]["startLine"] for place in physical(document)}
    assert places["etc/udev/rules.d/9%209.rules"] == 3
    assert result["originalUriBaseIds"]["ROOT"]["uri"] == f"file://{here.tree}/"
    names = [name for names in _values(document, "logicalLocations") for name in names]
    assert {"eth0:1", "NFS199"} <= {name["fullyQualifiedName"] for name in names}


def test_sarif_names_a_relative_root_and_a_proposal_as_the_user_does(
    host: MakeHost, rules: Rules, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rules.are(ADVICE)
    here = host("clean")
    proposal = put(tmp_path / "a:b c", "srv:/b /mnt/b nfs nconnect=2 0 0\n")
    monkeypatch.chdir(here.tree.parent)
    run = check(here, "--root", "clean", "--fstab", str(proposal), "--format", "sarif")
    base = {"ROOT": {"description": {"text": "clean"}}}
    assert json.loads(run.out)["runs"][0]["originalUriBaseIds"] == base
    assert {"uri": f"file://{tmp_path}/a%3Ab%20c"} in uris(run)


def test_each_format_has_host_and_time(host: MakeHost, rules: Rules, monkeypatch: pytest.MonkeyPatch) -> None:
    rules.are(ADVICE)
    name, began = socket.gethostname(), "2026-11-25T12:00:00Z"
    monkeypatch.setattr(LiveOutside, "now", lambda _: hosts.MOMENT.timestamp())
    here = host("clean")
    for where in ((), ("--root", str(here.tree))):
        runs = {form: check(here, *where, "--format", form) for form in ("json", "sarif", "junit")}
        (invocation,) = json.loads(runs["sarif"].out)["runs"][0]["invocations"]
        document, suite = runs["json"].document, junit(runs["junit"])
        assert (document["host"], document["time"]) == (name, began)
        assert (invocation["machine"], invocation["startTimeUtc"]) == (name, began)
        assert (suite.get("hostname"), suite.get("timestamp")) == (name, began.removesuffix("Z"))


def physical(document: dict[str, Any]) -> list[dict[str, Any]]:
    return list(_values(document, "physicalLocation"))


def uris(run: Run) -> list[dict[str, Any]]:
    return [place["artifactLocation"] for place in physical(json.loads(run.out))]


def _values(value: Any, key: str) -> Iterator[Any]:  # noqa: ANN401 - JSON
    """Yield what stands under a key, at any depth."""
    if isinstance(value, dict):
        if key in value:
            yield value[key]
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _values(inner, key)


def test_a_terminal_has_colour_and_its_width_is_kept(low: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "70")

    def shown(term: str, no_color: str = "") -> str:
        monkeypatch.setenv("TERM", term)
        monkeypatch.setenv("NO_COLOR", no_color)
        return low.run("check", "--offline", "--select", "NFS101").out

    coloured = shown("xterm")
    assert "\x1b[33m\x1b[1m  warning" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert max(len(line) for line in plain.splitlines()) <= 70
    assert shown("xterm", "1") == shown("dumb") == plain


def test_only_long_waits_show(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Slow(hosts.World):
        def pause(self, seconds: float) -> float:
            Event().wait(seconds)
            return seconds

    def said(seconds: float, soon_s: float) -> str:
        monkeypatch.setattr("nfstuned.cli.terminal._SOON_S", soon_s)
        OutsideWithProgress(Slow(Network())).pause(seconds)
        return capsys.readouterr().err

    assert said(0.1, 0.01) == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert said(0.2, 0.01) == "looking again 0 s after the first look ...\r\x1b[K"
    assert said(0.0, 10.0) == ""


def test_explain_makes_a_page_readable_on_a_terminal(host: MakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    here = host("no-nfs")
    assert "## Fix it" in here.run("explain", "NFS000").out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "## Fix it" not in here.run("explain", "NFS000").out


def test_rules_lists_each_once_and_each_can_be_explained(host: MakeHost) -> None:
    here = host("no-nfs")
    rules = here.run("rules", "--format", "json").document["rules"]
    ids = [rule["id"] for rule in rules]
    assert ids == ["NFS000", *(rule.id for rule in catalogue.RULES)]
    assert [line.split()[0] for line in here.run("rules").out.splitlines()[1:]] == ids
    for rule in rules:
        run = here.run("explain", rule["id"])
        assert (run.status, rule["name"] in run.out) == (0, True)
