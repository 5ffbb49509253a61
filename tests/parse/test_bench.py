"""A document of bench becomes the measurement that it was; what is none is named by file, key and value."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.model.bench import Bench
from nfstuned.parse.bench import parse_bench
from nfstuned.view.bench import bench_document
from nfstuned.view.words import to_json
from tests.core.bench_values import COMPARED, SEARCHED, VENDORS

TEXT = to_json(bench_document(COMPARED))
Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize("bench", [COMPARED, SEARCHED, VENDORS], ids=lambda bench: bench.suite.name)
def test_a_document_becomes_the_same_measurement(bench: Bench) -> None:
    again = parse_bench(to_json(bench_document(bench)), "x.json")
    assert again.runs == bench.runs
    assert (again.subject, again.settings, again.readings) == (bench.subject, bench.settings, bench.readings)
    assert to_json(bench_document(again)) == to_json(bench_document(bench))


def test_a_name_with_bytes_that_are_no_text_stays_as_it_is() -> None:
    document = json.loads(TEXT)
    document["mount"]["source"] = "nas:/\udcff"
    assert parse_bench(json.dumps(document), "x.json").subject.source == "nas:/\udcff"


def test_keys_of_later_versions_are_left_alone() -> None:
    document = json.loads(TEXT)
    for table in (
        document,
        document["mount"],
        document["runs"][0]["delivered"],
        document["suite"]["jobs"][0],
    ):
        table["new"] = [1]
    assert parse_bench(json.dumps(document), "x.json").runs == COMPARED.runs


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(schema="nfstuned.check/1"), "schema is 'nfstuned.check/1', expected"),
        (lambda d: d.pop("schema"), "schema is missing, expected nfstuned.bench/1"),
        (lambda d: d["mount"].pop("kernel"), "mount.kernel is not a string: missing"),
        (lambda d: d["mount"].update(read_ahead_kb="128"), "mount.read_ahead_kb is not a whole number"),
        (lambda d: d["mount"].update(connections=True), "mount.connections is not a whole number"),
        (lambda d: d["suite"].update(jobs={}), "suite.jobs is not a list: '{}'"),
        (lambda d: d["suite"]["jobs"][1].update(pattern="up"), "suite.jobs[1].pattern is not one of read"),
        (lambda d: d["suite"]["jobs"][1].update(name="sequential-read"), "'sequential-read' is there twice"),
        (lambda d: d["suite"]["jobs"][0].update(direct=0), "suite.jobs[0].direct is not true or false: '0'"),
        (lambda d: d["runs"][3].update(job="other"), "runs[3].job: 'other' is none of 'sequential-read'"),
        (lambda d: d["runs"][3].update(setting="x"), "runs[3].setting: 'x' is none of"),
        (lambda d: d["runs"][0].update(delivered=7), "runs[0].delivered is not an object: '7'"),
        (lambda d: d["runs"][0]["delivered"].update(bytes_per_s=-1), "delivered.bytes_per_s is not a"),
        (lambda d: d["runs"][0]["delivered"].update(latency_ms=float("nan")), "latency_ms is not a number"),
        (lambda d: d["runs"][0]["beside"].update(rtt_ms=float("inf")), "runs[0].beside.rtt_ms is not a"),
        (lambda d: d.update(runs=None), "runs is not a list: missing"),
        (lambda d: d.update(time="yesterday"), "time is not a time such as"),
        (lambda d: d.update(time="0001-01-01T00:00:00+23:00"), "time is not a time such as"),
        (lambda d: d.update(time="2026-07-29T14:30:00"), "time is not a time with its offset from UTC"),
        (lambda d: d.update(ended="\ud800"), "ended is not text"),
        (lambda d: d["results"][0].update(job=None), "results[0].job is not a string: missing"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_file_key_and_value(change: Change, said: str) -> None:
    document = json.loads(TEXT)
    change(document)
    with pytest.raises(ParseError) as caught:
        parse_bench(json.dumps(document), "old.json")
    assert str(caught.value).startswith("old.json: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("<!DOCTYPE html>", "not JSON: Expecting value at line 1, column 1: '<!DOCTYPE html>'"),
        ("[]", "the document is not an object: '[]'"),
        ("7", "the document is not an object: '7'"),
        ("[" * 100_000, "nested too deep"),
        ('{"a": ' + "9" * 5000 + "}", "a number has too many digits"),
        (TEXT[: len(TEXT) // 2], "not JSON"),
    ],
)
def test_what_is_no_document_is_said(text: str, said: str) -> None:
    with pytest.raises(ParseError, match=r"^x: ") as caught:
        parse_bench(text, "x")
    assert said in str(caught.value)


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
