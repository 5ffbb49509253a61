"""fio's JSON: what it delivered, and what is no document of fio's."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.host.bench.fio import parse_fio
from nfstuned.model.bench import Delivered, Pattern

REAL = (Path(__file__).parents[1] / "data/fio/randread-3.33.json").read_text()


def changed(**side: Any) -> str:  # noqa: ANN401 - JSON holds anything
    document = json.loads(REAL)
    document["jobs"][0]["read"].update(side)
    return json.dumps(document)


def test_a_real_document_has_its_figures() -> None:
    side = json.loads(REAL)["jobs"][0]["read"]
    found = parse_fio(REAL, Pattern.RANDOM_READ)
    assert found.bytes_per_s == side["bw_bytes"]
    assert found.operations_per_s == side["iops"]
    assert found.latency_ms == pytest.approx(side["lat_ns"]["mean"] / 1e6)
    assert found.latency_p99_ms == pytest.approx(side["clat_ns"]["percentile"]["99.000000"] / 1e6)
    assert found.seconds == pytest.approx(side["runtime"] / 1000)
    assert found.error == 0


def test_an_error_is_its_number_and_words_before_the_document_are_no_matter() -> None:
    document = json.loads(changed(clat_ns={}))
    document["jobs"][0]["error"] = 28
    found = parse_fio("fio: ENOSPC on laying out file, stopping\n" + json.dumps(document), Pattern.READ)
    assert (found.error, found.latency_p99_ms) == (28, None)
    assert parse_fio(REAL, Pattern.RANDOM_WRITE).bytes_per_s == 0.0


@pytest.mark.parametrize(
    "text",
    ["", "fio: bad", "{", "{}", '{"jobs": []}', '{"jobs": [1]}', '{"jobs": {}}', '{"jobs": [{"read": 1}]}'],
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match=r"^fio: its output has no figures"):
        parse_fio(text, Pattern.READ)


@pytest.mark.parametrize("value", [None, "7", True, -1.0, [], float("nan")])
def test_a_figure_that_is_not_a_number_is_named(value: object) -> None:
    with pytest.raises(ParseError, match=r"^fio: bytes_per_s: Input should be"):
        parse_fio(changed(bw_bytes=value), Pattern.READ)


@given(st.text(max_size=200), st.integers(0, len(REAL)))
def test_nothing_but_parse_errors_comes_out(inserted: str, place: int) -> None:
    with contextlib.suppress(ParseError):
        assert isinstance(parse_fio(REAL[:place] + inserted + REAL[place:], Pattern.READ), Delivered)
