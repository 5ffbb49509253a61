"""Samples as they come back from JSON lines and the journal, and the times that --since takes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.samples.sample import sample_to_json, to_fields, to_line
from nfstuned.errors import ParseError
from nfstuned.host.telemetry.journal import Journal, Message, Priority
from nfstuned.model.samples import OpRate, Sample, TransportRate, fields_of
from nfstuned.parse.samples import parse_entry, parse_line, parse_since

FILE = "/var/log/nfstuned/samples.jsonl"
RATE = st.floats(0, 1e100)
MEAN = st.none() | RATE
NAME = st.binary(max_size=20).map(lambda name: os.fsdecode(name.replace(b"\0", b"")))
"""Any bytes that the kernel can give for a name, which are surrogate escapes where they are not UTF-8."""
OF_TYPE: dict[object, st.SearchStrategy[Any]] = {
    str: NAME,
    str | None: st.none() | NAME,
    tuple[str, ...]: st.lists(NAME.map(lambda name: "/" + name), max_size=3).map(tuple),
    float: RATE,
    float | None: MEAN,
    int: st.integers(0, 16),
    int | None: st.none() | st.integers(0, 2**53),
}


def any_of(table: type, **more: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any value of a table of fields."""
    return st.builds(table, **{field.key: OF_TYPE[field.type] for field in fields_of(table)} | more)


SAMPLES = any_of(
    Sample,
    time=st.floats(0, 1e11),
    # Clocks count nanoseconds.
    interval_s=st.integers(0, 10**19).map(lambda ns: ns / 1e9),
    ops=st.dictionaries(
        st.sampled_from(["READ", "READ_PLUS", "WRITE", "GETATTR", "SEQUENCE"]), any_of(OpRate)
    ).map(MappingProxyType),
    transport=any_of(TransportRate),
)
SAMPLE = Sample(
    1795298159.25,
    60.0,
    "0:43",
    ("/mnt/a", "/mnt/b"),
    "server:/a",
    8e6,
    0.0,
    8.8e6,
    0.0,
    over_fetch_ratio=1.1,
    ops=MappingProxyType({"READ": OpRate(8.0, 1.5, 0.1, 1.7, 0.0, 0.0)}),
    transport=TransportRate("v4.1 tcp 10.10.10.10:2049", 4, 1.5, 0.0),
)


def sent(sample: Sample) -> dict[str, bytes]:
    """Return the fields of a sample's entry, as the journal gets them."""
    written: list[bytes] = []
    journal = Journal(lambda *entry: written.extend(entry))
    journal.send(Message.SAMPLE, "text", Priority.INFO, **to_fields(sample))
    return {name.decode(): value for name, value in (field.split(b"=", 1) for field in written)}


def damaged(change: Any) -> bytes:  # noqa: ANN401 - any function that spoils a document
    document = sample_to_json(SAMPLE)
    change(document)
    return json.dumps(document).encode()


def problem(found: Sample | ParseError) -> str:
    assert isinstance(found, ParseError)
    return str(found)


@given(SAMPLES)
def test_what_was_written_to_a_file_comes_back_as_it_was(sample: Sample) -> None:
    line = to_line(sample)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert parse_line(line, FILE, 1) == sample


@given(SAMPLES)
def test_what_was_sent_to_the_journal_comes_back_as_it_was(sample: Sample) -> None:
    entry = sent(sample)
    assert parse_entry(entry, "journal") == sample
    assert parse_entry({name: os.fsdecode(value) for name, value in entry.items()}, "journal") == sample


@given(SAMPLES)
def test_an_entry_s_operations_and_kinds_are_the_json_of_the_file(sample: Sample) -> None:
    op = OpRate(1.0, None, None, None, 0.0, None)
    strange = replace(sample, ops=MappingProxyType({**sample.ops, 'a"\\\udcff None': op}))
    fields = to_fields(strange)
    for name in ("ops", "kinds", "mount_points"):
        assert json.loads(str(fields[name])) == json.loads(json.dumps(sample_to_json(strange)))[name]


@given(SAMPLES, st.data())
def test_a_line_cut_off_anywhere_is_a_problem_with_its_place(sample: Sample, data: st.DataObject) -> None:
    line = to_line(sample)[:-1]
    cut = line[: data.draw(st.integers(0, len(line) - 1))]
    assert problem(parse_line(cut, FILE, 7)).startswith(f"{FILE}:7: not JSON (")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_sample_or_a_problem(line: bytes) -> None:
    assert isinstance(parse_line(line, FILE, 1), ParseError)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(st.sampled_from(sorted(sample_to_json(SAMPLE))), JSON)
def test_a_key_of_another_type_never_raises_and_never_makes_up_a_figure(key: str, value: object) -> None:
    found = parse_line(damaged(lambda document: document.update({key: value})), FILE, 1)
    if isinstance(found, Sample) and key != "kinds":
        assert sample_to_json(found)[key] == value


@given(st.sampled_from(sorted(sent(SAMPLE))), st.binary(max_size=30))
def test_a_damaged_field_of_an_entry_never_raises(name: str, value: bytes) -> None:
    found = parse_entry({**sent(SAMPLE), name: value}, "journal")
    assert isinstance(found, Sample | ParseError)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"[1]", "not a JSON object: '[1]'"),
        (b"{}", "schema is missing, expected nfstuned.sample/1"),
        (b'{"schema": "nfstuned.sample/2"}', "schema is 'nfstuned.sample/2', expected nfstuned.sample/1"),
        (b'{"a": "\xff"}', "not UTF-8: "),
        (b"[" * 100_000, "nested too deep: "),
        (b'{"time": ' + b"1" * 5000 + b"}", "a number has too many digits"),
        (damaged(lambda d: d.pop("time")), "time is not a number: missing"),
        (damaged(lambda d: d.update(read_bytes_per_s="8")), "read_bytes_per_s is not a number: '8'"),
        (damaged(lambda d: d.update(interval_s=-1)), "interval_s is not a number from 0 to 1e+10: -1.0"),
        (damaged(lambda d: d.update(time=float("nan"))), "time is not a number from 0 to 1e+11: nan"),
        (damaged(lambda d: d.update(time=10**400)), "time is not a number from 0 to 1e+11: inf"),
        (damaged(lambda d: d.update(mount_points="/a")), "mount_points is not a list of strings: '/a'"),
        (damaged(lambda d: d.update(mount_points=["/\ud800"])), r"mount_points is not text: '/\ud800'"),
        (damaged(lambda d: d.update(mount_points=[], device="\udfff")), r"device is not text: '\udfff'"),
        (damaged(lambda d: d.update(source=None)), "source is not a string: missing"),
        (damaged(lambda d: d["ops"]["READ"].pop("per_s")), "'READ': per_s is not a number: missing"),
        (damaged(lambda d: d["ops"].update(READ=3)), "READ is not an object: '3'"),
        (damaged(lambda d: d["transport"].update(connections=1.5)), "connections is not a whole number"),
        (damaged(lambda d: d["transport"].update(connections=10**400)), "connections is not a whole number"),
    ],
)
def test_a_damaged_line_says_what_is_wrong(line: bytes, said: str) -> None:
    assert problem(parse_line(line, FILE, 3)).startswith(f"{FILE}:3: {said}")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("NFSTUNED_TIME", b"soon", "time is not a number: 'soon'"),
        ("NFSTUNED_CONNECTIONS", b"1.5", "connections is not a number: '1.5'"),
        ("NFSTUNED_OPS", b"{", "ops is not JSON: '{'"),
        ("NFSTUNED_MOUNT_POINTS", b"7", "mount_points is not a list of strings: '7'"),
    ],
)
def test_a_damaged_entry_says_what_is_wrong(field: str, value: bytes, said: str) -> None:
    assert problem(parse_entry({**sent(SAMPLE), field: value}, "entry x")) == f"entry x: {said}"


def test_a_key_of_a_later_version_is_left_alone() -> None:
    assert parse_line(damaged(lambda d: d.update(cache_hits=3)), FILE, 1) == SAMPLE
    assert parse_entry({**sent(SAMPLE), "NFSTUNED_CACHE_HITS": b"3"}, "journal") == SAMPLE


def test_an_entry_without_all_of_its_mount_points_has_the_first() -> None:
    """So were entries before the field NFSTUNED_MOUNT_POINTS."""
    entry = sent(SAMPLE)
    del entry["NFSTUNED_MOUNT_POINTS"]
    for first, points in ((b"/mnt/a", ("/mnt/a",)), (b"unknown", ())):
        found = parse_entry({**entry, "NFSTUNED_MOUNT_POINT": first}, "journal")
        assert found == replace(SAMPLE, mount_points=points)


NOW = datetime(2026, 7, 29, 15, 0, 30, tzinfo=timezone(timedelta(hours=2)))


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("now", "2026-07-29T15:00:30+02:00"),
        ("today", "2026-07-29T00:00:00+02:00"),
        ("yesterday", "2026-07-28T00:00:00+02:00"),
        ("1h ago", "2026-07-29T14:00:30+02:00"),
        ("-1h", "2026-07-29T14:00:30+02:00"),
        ("1 hour 30 min ago", "2026-07-29T13:30:30+02:00"),
        ("1h30min ago", "2026-07-29T13:30:30+02:00"),
        ("2 days ago", "2026-07-27T15:00:30+02:00"),
        ("-1w", "2026-07-22T15:00:30+02:00"),
        ("1.5h ago", "2026-07-29T13:30:30+02:00"),
        ("14:30", "2026-07-29T14:30:00+02:00"),
        ("9:05:07", "2026-07-29T09:05:07+02:00"),
        ("2026-07-01", "2026-07-01T00:00:00+02:00"),
        ("2026-07-01 14:30", "2026-07-01T14:30:00+02:00"),
        ("  2026-07-01   14:30 ", "2026-07-01T14:30:00+02:00"),
        ("2026-07-01T14:30:05.25", "2026-07-01T14:30:05.250000+02:00"),
        ("2026-07-01T14:30:05Z", "2026-07-01T14:30:05+00:00"),
        ("2026-07-01 14:30 UTC", "2026-07-01T14:30:00+00:00"),
        ("2026-07-01T14:30:05+05:30", "2026-07-01T14:30:05+05:30"),
        ("2026-07-01T14:30:05-0700", "2026-07-01T14:30:05-07:00"),
        ("@1785000000.5", "2026-07-25T17:20:00.500000+00:00"),
    ],
)
def test_a_time_means_what_journalctl_would_take_it_for(text: str, moment: str) -> None:
    assert parse_since(text, NOW) == at(moment)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "soon", "1h", "+1h", "1x ago", "ago", "-", "h ago", "1h ago ago", "999999999w ago"),
        *("25:00", "14:30 CEST", "2026-13-01", "2026-07-01 x", "2026-07-01T", "@", "@x", "@nan", "@1e300"),
    ],
)
def test_anything_else_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match=r"^not a time: .*; allowed: \"1h ago\", "):
        parse_since(text, NOW)


@given(st.text(max_size=30))
def test_no_text_raises_anything_else(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(parse_since(text, NOW), float)


@pytest.mark.parametrize(
    "text", ["today", "yesterday", "2026-07-01", "2026-01-01 14:30", "2026-07-01 14:30:05 UTC", "@1785000000"]
)
def test_systemd_reads_the_same_time(text: str) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    done = subprocess.run([program, "timestamp", text], capture_output=True, text=True, check=True)
    (line,) = [line for line in done.stdout.splitlines() if "UNIX seconds: " in line]
    assert parse_since(text, datetime.now().astimezone()) == float(line.partition("@")[2])
