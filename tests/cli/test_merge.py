"""`nfstuned merge`: one verdict of many hosts' documents, and no host that is taken for clean without one."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.parsers import expat

import jsonschema
import pytest

from nfstuned.core import fleet
from nfstuned.core.fleet import Fleet
from nfstuned.model.facts import Severity
from nfstuned.parse.verdict import parse_verdict
from tests.bench.bench_merge import TIME, document
from tests.cli.conftest import REPOSITORY, MakeHost, Run
from tests.tree import put

Write = Callable[..., Path]
STRANGE = "\x1b[31mred\n<b>&\u202e"
LEVELS = ("error", "warning", "advice", "info")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Documents of hosts of tests/hosts."""
    folder = tmp_path_factory.mktemp("hosts")
    return {name: document(name, folder) for name in ("clean", "debian-13-5.10", "options-refused")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "verdicts"


@pytest.fixture
def write(real: dict[str, dict[str, Any]], folder: Path) -> Write:
    """Write the document of a real host, with other values, under the name of a host."""

    def written(name: str, case: str, **values: object) -> Path:
        text = json.dumps({**real[case], "host": name, **values})
        return put(folder / f"{values.get('time', '')}{name}.json", text)

    return written


@pytest.fixture
def merge(host: MakeHost, folder: Path) -> Callable[..., Run]:
    here = host("no-nfs")
    return lambda *args: here.run("merge", str(folder), *args)


def low(point: str, kib: int) -> dict[str, object]:
    """Return a finding as another host has it, with a mount of its own."""
    return {
        "rule": "NFS101",
        "name": "read-ahead-below-policy",
        "severity": "warning",
        "subject": point,
        "message": f"{point} reads ahead {kib} KiB, from 10.0.0.{kib}: slow",
        "observed": str(kib),
        "expected": "15360",
        "remedy": "sudo nfstuned apply",
        "source": "https://example.org",
    }


def mount(point: str) -> dict[str, object]:
    return {"mount_point": point, "source": f"nas{point}:{point}", "fstype": "nfs4"}


def test_a_finding_of_many_hosts_is_there_once(write: Write, merge: Callable[..., Run]) -> None:
    for number in range(1, 5):
        point = f"/srv/{number}"
        findings = [low(point, number)] * (2 if number == 4 else 1)
        write(f"web-{number}", "clean", findings=findings, mounts=[mount(point)])
    write("db-1", "clean")
    done = merge()
    assert (done.status, done.err) == (1, "")
    assert done.out == (
        "  warning  4 hosts: web-4, web-1, web-2 and 1 more\n\n"
        "  warning  NFS101  4 hosts, 5 findings: web-1, web-2, web-3 and 1 more\n"
        "           MOUNT reads ahead N KiB, from ADDRESS: slow\n"
        "           Remedy: sudo nfstuned apply\n\n"
        "5 hosts: 4 with warning at worst, 1 without a finding\n"
    )
    (finding,) = merge("--format", "json").document["findings"]
    assert (finding["hosts"], finding["findings"], finding["first_hosts"][0]) == (4, 5, "web-1")


def test_a_text_that_all_hosts_share_stays_as_it_is(write: Write, merge: Callable[..., Run]) -> None:
    for name in ("a", "b"):
        write(name, "clean", findings=[low("/srv", 128)], mounts=[mount("/srv")])
    (finding,) = merge("--format", "json").document["findings"]
    assert finding["message"] == "/srv reads ahead 128 KiB, from 10.0.0.128: slow"


def test_the_numbers_are_those_of_the_documents(
    write: Write, real: dict[str, dict[str, Any]], merge: Callable[..., Run]
) -> None:
    for name in real:
        write(name, name)
    made = merge("--format", "json").document
    by_host = {row["host"]: row for row in made["hosts"]}
    for name, checked in real.items():
        assert {level: by_host[name][level] for level in LEVELS} == {
            level: checked["summary"][level] for level in LEVELS
        }
    assert sum(row["findings"] for row in made["findings"]) == sum(
        len(one["findings"]) for one in real.values()
    )
    ranks = [LEVELS.index(row["severity"]) for row in made["findings"]]
    assert ranks == sorted(ranks)
    assert made["summary"]["missing"] == 0


@pytest.mark.parametrize(
    ("severity", "fail_on", "status"),
    [("error", "error", 1), ("warning", "error", 0), ("info", "info", 1), ("advice", "warning", 0)],
)
def test_the_status_is_as_of_a_check(
    severity: str, fail_on: str, status: int, write: Write, merge: Callable[..., Run]
) -> None:
    write("a", "clean", findings=[low("/a", 1) | {"severity": severity}])
    assert merge("--fail-on", fail_on).status == status


NO_DOCUMENT = {
    "": "empty: its host gave no document",
    "{": "not JSON (Expecting property name",
    "[" * 100_000: "too deeply nested",
    "[]": "schema is missing",
    '{"schema": "nfstuned.check/2"}': "schema is 'nfstuned.check/2', expected nfstuned.check/1",
    '{"schema": "nfstuned.status/1"}': "schema is 'nfstuned.status/1'",
}


@pytest.mark.parametrize("text", NO_DOCUMENT, ids=lambda text: text[:30] or "empty")
def test_a_file_that_is_no_document_is_named_and_not_clean(
    text: str, write: Write, merge: Callable[..., Run], folder: Path
) -> None:
    write("a", "clean")
    file = put(folder / "below/b.json", text)
    done = merge("--format", "json")
    assert done.status == done.document["exit_code"] == 2
    assert done.err.startswith(f"{file}: ")
    assert NO_DOCUMENT[text] in done.err
    assert [row["file"] for row in done.document["left_out"]] == [str(file)]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"host": None}, "host is missing, or no name: a version after 0.1 writes it"),
        ({"host": "x" * 254}, "host is missing, or no name"),
        ({"root": "/mnt/image"}, "it judges an image or files, and not 'b'"),
        ({"skipped": [{"rule": "NFS502", "needs": ["host"]}]}, "it judges an image or files, and not 'b'"),
        ({"time": "yesterday"}, "time is 'yesterday', expected UTC such as 2026-11-20T13:00:00Z"),
        ({"time": "2999-01-01T00:00:00Z"}, "b: its time is in the future: set the clock of its host"),
        ({"exit_code": 7}, "exit_code is '7', expected 0 to 2"),
        ({"findings": {}}, "findings is '{}', expected a list"),
        ({"findings": ["x"]}, "findings has something that is no object"),
        ({"findings": [{}]}, "rule is missing, expected a text"),
        ({"findings": [low("/a", 1) | {"severity": "fatal"}]}, "'fatal' is not a valid Severity"),
        ({"findings": [low("/a", 1) | {"rule": "<b>"}]}, "expected an id and a name"),
        ({"findings": [{}] * 10_001}, "more than 10000 findings: not read"),
    ],
)
def test_a_document_with_another_value_is_left_out(
    values: dict[str, object], reason: str, write: Write, merge: Callable[..., Run]
) -> None:
    write("a", "clean")
    write("b", "clean", **values)
    done = merge("--format", "json")
    assert done.status == 2
    assert reason in done.err
    assert [row["host"] for row in done.document["hosts"]] == ["a"]
    assert done.document["summary"]["missing"] == 1


def test_a_check_that_judged_only_a_part_counts_as_such(write: Write, merge: Callable[..., Run]) -> None:
    write("a", "clean", exit_code=2, unknown=["x"])
    done = merge()
    assert done.status == 2
    assert "1 host not judged as a whole: a\n1 fact not known on 1 host\n" in done.out


def test_of_two_documents_of_a_host_the_newer_one_counts(write: Write, merge: Callable[..., Run]) -> None:
    old, new = "2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z"
    first = write("a", "clean", time=old, findings=[low("/a", 1), low("/b", 2) | {"severity": "error"}])
    second = write("a", "clean", time=new)
    done = merge("--format", "json")
    assert (done.status, done.err) == (0, f"{first}: a: {second} counts instead: it is not older\n")
    assert done.document["findings"] == []
    assert done.document["left_out"][0]["replaced"]
    put(first, second.read_text())
    put(second, second.read_text().replace(new, old))
    assert merge("--format", "json").document["hosts"][0]["time"] == new


def test_a_stale_document_says_nothing_about_its_host(
    write: Write, merge: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a", "clean")
    monkeypatch.setattr("nfstuned.cli.merge.time", SimpleNamespace(time=lambda: 1_795_179_600.0 + 7200))
    assert TIME == "2026-11-20T13:00:00Z"
    assert merge("--older-than", "3").status == 0
    done = merge("--older-than", "1")
    assert done.status == 2
    assert done.err.endswith("a.json: a: older than --older-than allows: run the check again\n")


def test_a_file_that_cannot_be_read_is_named(merge: Callable[..., Run], write: Write, folder: Path) -> None:
    write("a", "clean")
    os.truncate(put(folder / "large.json"), 4_000_001)
    os.mkfifo(folder / "pipe.json")
    done = merge(str(folder / "absent"))
    assert done.status == 2
    assert done.err == (
        f"{folder}/absent: No such file or directory\n"
        f"{folder}/large.json: more than 4 MB, too long to judge\n"
        f"{folder}/pipe.json: a fifo instead of a file: not read\n"
    )


def test_no_document_is_no_clean_fleet(merge: Callable[..., Run], folder: Path) -> None:
    put(folder / "notes.txt", "x")
    done = merge()
    assert (done.status, done.out) == (2, "")
    assert done.err == f"{folder}: no document is there; in a folder their names end with .json\n"


def test_the_standard_input_has_a_document_in_each_line(
    write: Write, merge: Callable[..., Run], host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [write("a", "debian-13-5.10"), write("b", "options-refused")]
    lines = "\n".join([*(file.read_text() for file in files), "", "torn", "{}" * 2_000_001, "unread"])
    stream = SimpleNamespace(buffer=io.BytesIO(lines.encode()), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", stream)
    done = host("clean").run("merge", "-", "--format", "json")
    assert done.status == 2
    torn, long = done.err.splitlines()
    assert torn.startswith("-:4: not JSON (")
    assert long == "-:5: more than 4 MB: this and all after it were not read"
    assert done.document["findings"] == merge("--format", "json").document["findings"]


@pytest.mark.parametrize("form", ["text", "json", "sarif", "html"])
def test_texts_of_strangers_stay_texts(
    form: str, write: Write, merge: Callable[..., Run], folder: Path
) -> None:
    finding = low("/a", 1) | {"message": f"mount {STRANGE}\udcff password=hunter2", "remedy": STRANGE}
    put(folder / "other.json", json.dumps({"schema": STRANGE}))
    write(f"host{STRANGE.replace('/', '')}"[:20], "clean", findings=[finding], version=STRANGE)
    output = folder / "out"
    done = merge("--format", form, "--output", str(output))
    assert done.status == 2
    text = output.read_text()
    assert not {"\x1b", "\u202e"} & {*(done.err + text)}
    assert "hunter2" not in done.err + text
    if form == "html":
        assert "<b>" not in text
        expat.ParserCreate().Parse(text, True)
    elif form == "sarif":
        schema = REPOSITORY / "tests/check/schemas/sarif-2.1.0-rtm.5.json"
        jsonschema.validate(json.loads(text), json.loads(schema.read_text()))
        (result,) = json.loads(text)["runs"][0]["results"]
        assert result["properties"] == {"hosts": 1, "findings": 1}


def test_a_page_does_not_go_to_a_terminal(
    write: Write, merge: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a", "clean")
    monkeypatch.setattr(
        "nfstuned.cli.merge.sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True))
    )
    done = merge("--format", "html")
    assert done.status == 2
    assert "give --output FILE" in done.err


def test_memory_does_not_grow_with_the_documents(
    real: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Different texts are kept up to a bound, and those beyond it are counted by rule."""
    monkeypatch.setattr(fleet, "MOST_DIFFERENT", 3)
    merged = Fleet(now_s=4e9)
    for number in range(50):
        finding = low("/a", 1) | {"message": f"word{'x' * number}"}
        text = json.dumps({**real["clean"], "host": f"h{number}", "findings": [finding]})
        merged.add(parse_verdict(text, "f"), "f")
    findings = merged.report(Severity.WARNING).findings
    assert sorted(len(each.hosts) for each in findings) == [1, 1, 1, 47]
    assert findings[0].finding.message == "read ahead below policy, with other texts"
