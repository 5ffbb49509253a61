"""A document of bench becomes its measurement again; an error names file, key and value."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.host.bench.documents import parse_bench
from nfstuned.model.bench import Bench
from nfstuned.view.bench import bench_document
from nfstuned.view.words import to_json
from tests.core.bench_values import COMPARED, SEARCHED, VENDORS

TEXT = to_json(bench_document(COMPARED))
Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize("bench", [COMPARED, SEARCHED, VENDORS], ids=lambda bench: bench.suite.name)
def test_a_document_becomes_the_same_measurement(bench: Bench) -> None:
    again = parse_bench(to_json(bench_document(bench)), "x.json")
    assert again.runs == bench.runs
    assert (again.mount, again.settings) == (bench.mount, bench.settings)
    assert to_json(bench_document(again)) == to_json(bench_document(bench))


def test_stray_bytes_of_a_name_are_kept() -> None:
    document = json.loads(TEXT)
    document["mount"]["source"] = "nas:/\udcff"
    assert parse_bench(json.dumps(document), "x.json").mount.source == "nas:/\udcff"


def test_keys_of_other_versions_are_ignored() -> None:
    document = json.loads(TEXT)
    for part in (document, document["mount"], document["runs"][0]["delivered"], document["suite"]["jobs"][0]):
        part["new"] = [1]
    document["runs"][0]["beside"] = {"rtt_ms": 1.0}  # as in 0.1
    assert parse_bench(json.dumps(document), "x.json").runs == COMPARED.runs


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d.update(schema="nfstuned.check/1"), "schema is 'nfstuned.check/1', expected"),
        (lambda d: d.pop("schema"), "schema is missing, expected nfstuned.bench/1"),
        (lambda d: d["mount"].pop("kernel"), "mount.kernel: Field required"),
        (lambda d: d["mount"].update(read_ahead_kb="128"), "mount.read_ahead_kb: Input should be a valid"),
        (lambda d: d["mount"].update(connections=True), "mount.connections: Input should be a valid integer"),
        (lambda d: d["suite"].update(jobs={}), "suite.jobs: Input should be a valid tuple: '{}'"),
        (lambda d: d["suite"]["jobs"][1].update(pattern="up"), "suite.jobs[1].pattern: Input should be"),
        (lambda d: d["suite"]["jobs"][1].update(name="sequential-read"), "'sequential-read' is there twice"),
        (lambda d: d["suite"]["jobs"][0].update(direct=0), "suite.jobs[0].direct: Input should be a valid"),
        (lambda d: d["runs"][3].update(job="other"), "runs[3] has an unknown job and setting: 'other' under"),
        (lambda d: d["runs"][3].update(setting="x"), "setting: 'sequential-read' under 'x'"),
        (lambda d: d["runs"][0].update(delivered=7), "runs[0].delivered: Input should be a dictionary"),
        (lambda d: d["runs"][0]["delivered"].update(bytes_per_s=-1), "bytes_per_s: Input should be"),
        (lambda d: d["runs"][0]["delivered"].update(latency_ms=float("nan")), "latency_ms: Input should be"),
        (lambda d: d["runs"][0].update(over_fetch=float("inf")), "runs[0].over_fetch: Input should be"),
        (lambda d: d.update(runs=None), "runs: Input should be a valid tuple: 'null'"),
        (lambda d: d.update(time="yesterday"), "time: Input should be a valid datetime"),
        (lambda d: d.update(time="0001-01-01T00:00:00+23:00"), "time is out of range"),
        (lambda d: d.update(time="2026-07-29T14:30:00"), "time: Input should have timezone info"),
        (lambda d: d.update(ended="\ud800"), "surrogates not allowed"),
    ],
)  # fmt: skip
def test_an_error_names_file_key_and_value(change: Change, reason: str) -> None:
    document = json.loads(TEXT)
    change(document)
    with pytest.raises(ParseError) as caught:
        parse_bench(json.dumps(document), "old.json")
    assert str(caught.value).startswith("old.json: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not a document of bench: Expecting value"),
        ("<!DOCTYPE html>", "not a document of bench: Expecting value: line 1 column 1"),
        ("[]", "schema is missing"),
        ("7", "schema is missing"),
        ("[" * 100_000, "recursion"),
        ('{"a": ' + "9" * 5000 + "}", "digits"),
        (TEXT[: len(TEXT) // 2], "not a document of bench"),
    ],
)
def test_another_text_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=r"^x: ") as caught:
        parse_bench(text, "x")
    assert reason in str(caught.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@given(st.data())
def test_any_value_in_any_place_is_a_measurement_or_a_problem(data: st.DataObject) -> None:
    document: Any = json.loads(TEXT)
    place = document
    while isinstance(place, dict | list) and place:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(keys))
        if data.draw(st.booleans()) or not isinstance(place[key], dict | list):
            place[key] = data.draw(VALUES)
            break
        place = place[key]
    with suppress(ParseError):
        to_json(bench_document(parse_bench(json.dumps(document), "x")))
