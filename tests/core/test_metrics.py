"""The tables of a sample's fields, and the metrics, schema and documentation of them."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nfstuned.core.mounts.status import status
from nfstuned.core.samples.rates import make_look
from nfstuned.core.samples.sample import ALL_KINDS, combine, sample_to_json, to_fields
from nfstuned.core.samples.totals import add_look
from nfstuned.host.config import builtin_policy
from nfstuned.host.observe import observe_stanzas, observe_superblocks
from nfstuned.host.root import Root
from nfstuned.model.effect import Effect, Pace
from nfstuned.model.metrics import MetricFamily, Service, Totals
from nfstuned.model.mounts import PodVolume
from nfstuned.model.samples import Csv, Field, OpRate, Sample, TransportRate, fields_of
from nfstuned.view.history import CSV_HEADER, csv_row
from nfstuned.view.metrics import GROUP, SUPERBLOCK, TUNING, exposition, families, findings_families
from tests.check import hosts
from tests.core.counters import moved, op, stats
from tests.core.test_totals import counts, superblock
from tests.core.test_totals import look as look_at
from tests.parse.test_samples import SAMPLE
from tests.promtool import needs_promtool, promtool

Golden = Callable[[Path, str], None]
DOCS = Path(__file__).parents[2] / "docs"
TABLES: dict[str, type] = {"Sample": Sample, "Transport": TransportRate, "Operation": OpRate}
FIELDS = [(title, field) for title, table in TABLES.items() for field in fields_of(table)]
METRICS = {meaning.name for table in (SUPERBLOCK, TUNING, GROUP) for meaning in table} | {
    "nfstuned_mount_stalled_seconds"
}
RATE, MEAN = {"$ref": "#/$defs/rate"}, {"$ref": "#/$defs/mean"}
OF_TYPE: dict[object, dict[str, Any]] = {
    str: {"type": "string"},
    str | None: {"type": ["string", "null"]},
    tuple[str, ...]: {"type": "array", "items": {"type": "string"}},
    float: RATE,
    float | None: MEAN,
    int: {"type": "integer", "minimum": 0},
    int | None: {"type": ["integer", "null"], "minimum": 0},
}
NARROWER: dict[str, dict[str, Any]] = {
    "time": {"description": "The end of the interval, in seconds since 1970.", "type": "number"},
    "device": {"type": "string", "pattern": "^[0-9]+:[0-9]+$"},
}
NESTED = ("schema", "kinds", "ops", "transport")


def schema_of(title: str) -> dict[str, Any]:
    defs = json.loads((DOCS / "schema/nfstuned.samples.1.json").read_text())["$defs"]
    parts = {
        "Sample": defs["sample"],
        "Transport": defs["sample"]["properties"]["transport"],
        "Operation": defs["operations"]["additionalProperties"],
    }
    found: dict[str, Any] = parts[title]
    return found


def metric(field: Field) -> str:
    return next((name for end in ("", "_total") if (name := f"nfstuned_{field.metric}{end}") in METRICS), "")


def journal(title: str, field: Field) -> str:
    return f"NFSTUNED_{field.key.upper()}" if title != "Operation" else "NFSTUNED_OPS"


def column(field: Field) -> str:
    """The column of CSV, with KIND for each kind of operation."""
    key = "mount_point" if field.key == "mount_points" else field.key
    return f"KIND_{key}" if field.csv is Csv.KIND else key


def described() -> str:
    """docs/samples.md from its first table on."""
    lines: list[str] = []
    for title, table in TABLES.items():
        lines += [
            f"## {title}",
            "",
            "| Key | Unit | Source | Journal | CSV | Metric |",
            "|---|---|---|---|---|---|",
        ]
        for field in fields_of(table):
            null = " or null" if field.type in {float | None, int | None} else ""
            names = [field.key, journal(title, field), column(field), metric(field)]
            key, entry, csv, counter = (f"`{name}`" if name else "" for name in names)
            lines.append(f"| {key} | {field.unit}{null} | {field.source} | {entry} | {csv} | {counter} |")
        lines.append("")
    header = ",".join(CSV_HEADER)
    return "\n".join([*lines, "## The header of CSV", "", "```", header, "```"]) + "\n"


@pytest.mark.parametrize("title", TABLES)
def test_the_schema_has_every_field_in_its_order_and_of_its_type(title: str) -> None:
    found = schema_of(title)
    own = {key: value for key, value in found["properties"].items() if key not in NESTED}
    wanted = {field.key: NARROWER.get(field.key, OF_TYPE[field.type]) for field in fields_of(TABLES[title])}
    assert own == wanted
    assert list(own) == list(wanted)
    assert found["required"] == list(found["properties"])


def test_a_field_s_metric_is_one_of_the_daemon_s_and_of_the_same_dimension() -> None:
    dimensions = {"ms": "_seconds", "B/s": "_bytes", "KiB": "_bytes"}
    for _, field in FIELDS:
        if field.metric:
            assert metric(field), field
            assert field.metric.endswith(dimensions.get(field.unit, "")), field


def test_no_two_fields_share_a_name_in_the_journal_or_in_csv() -> None:
    """The journal has those of a sample and of its transport side by side, CSV all of them."""
    columns = [column(field).replace("KIND", kind) for _, field in FIELDS for kind in ALL_KINDS]
    assert {*columns, "utc"} == set(CSV_HEADER)
    assert len(set(CSV_HEADER)) == len(CSV_HEADER) == len(csv_row(SAMPLE))
    flat = [field.key for title, field in FIELDS if title != "Operation"]
    assert len(set(flat)) == len(flat)
    assert to_fields(SAMPLE).keys() == {*flat, "mount_point", "kinds", "ops"}


def test_the_document_has_every_field_in_its_order() -> None:
    document: dict[str, Any] = sample_to_json(SAMPLE)
    assert [*document] == list(schema_of("Sample")["properties"])
    assert [*document["transport"]] == [field.key for field in fields_of(TransportRate)]
    assert [*document["ops"]["READ"]] == [field.key for field in fields_of(OpRate)]


def test_of_operations_together_times_are_means_and_all_else_are_sums() -> None:
    fields = fields_of(OpRate)
    values = [2.0 + number for number in range(len(fields))]
    op = OpRate._make(values)
    other = OpRate._make([None if field.type == float | None else 1.0 for field in fields])
    doubled = [value * (1 if field.unit == "ms" else 2) for field, value in zip(fields, values, strict=True)]
    assert combine([op, op]) == tuple(doubled)
    assert combine([op, other]) == tuple(a + (b or 0) for a, b in zip(values, other, strict=True))
    assert combine([]) == tuple(None if field.type == float | None else 0 for field in fields)


def test_the_documentation_lists_every_field(golden: Golden) -> None:
    path = DOCS / "samples.md"
    text = path.read_text()
    golden(path, text[: text.index("## Sample\n")] + described())


SERVICE = Service("1.2.3", 1e9, 1e9 + 60, 60.0, 0.25, policy_valid=True, messages={"sample": 3})

PACE = Pace(15360, 8e6, 24e6, 582.0, 3.0)
EFFECT = Effect(
    PACE, PACE._replace(read_ahead_kb=512, read_bytes_per_s=23e6, rtt_ms=85.0, over_fetch_ratio=1.1)
)


def captured(most: int = 100) -> tuple[MetricFamily, ...]:
    with tempfile.TemporaryDirectory() as folder:
        root = Root(str(hosts.load("debian-13-6.12").build(Path(folder) / "host")))
        snapshot = observe_superblocks(root, deep=False)
        totals = add_look(Totals(), make_look(snapshot, observe_stanzas(root) or (), 1e9, 100.0), {}, most)
    effects = dict.fromkeys([one.device for one in snapshot.superblocks], EFFECT)
    return tuple(families(totals, status(snapshot, builtin_policy()), replace(SERVICE, effects=effects)))


def values(found: tuple[MetricFamily, ...], name: str) -> dict[tuple[str, ...], float]:
    (family,) = (family for family in found if family.name == name)
    return {point.labels: point.value for point in family.points}


def test_a_mount_and_its_transport_group_have_at_most_49_series() -> None:
    found = captured()
    series = Counter(point.labels[:2] for f in found if f.labels[:1] == ("device",) for point in f.points)
    groups = Counter(point.labels[0] for f in found if f.labels == ("group",) for point in f.points)
    assert len(series) > 3
    assert max(series.values()) + max(groups.values()) <= 49


@needs_promtool
def test_promtool_accepts_the_labels_of_a_volume() -> None:
    totals = counts(look_at(-499.0), look_at(1.0, superblock(stats(500))))
    hostile = PodVolume("media", None, 'a"\n\\\udcff', "web-0")
    text = exposition(families(totals, (), replace(SERVICE, volumes={"0:43": (hostile,)})))
    assert 'persistentvolume="a\\"\\n' in text
    status, said = promtool("check", "metrics", stdin=text.encode())
    assert status == 0, said


def test_each_pod_of_a_volume_has_a_series_and_an_unknown_name_is_empty() -> None:
    totals = counts(look_at(-499.0), look_at(1.0, superblock(stats(500))))
    volumes = (PodVolume("media", None, "pvc-1", "web-0"), PodVolume("media", "data", "pvc-1", "web-1"))
    shown = families(totals, (), replace(SERVICE, volumes={"0:43": volumes, "0:44": volumes}))
    assert values(tuple(shown), "nfstuned_mount_volume_info") == {
        ("0:43", "/mnt/data", "media", "", "pvc-1", "web-0"): 1,
        ("0:43", "/mnt/data", "media", "data", "pvc-1", "web-1"): 1,
    }
    many = tuple(PodVolume("media", None, "pvc-1", f"web-{n}") for n in range(99))
    shown = families(totals, (), replace(SERVICE, volumes={"0:43": many}))
    assert len(values(tuple(shown), "nfstuned_mount_volume_info")) == 50


def test_names_say_what_the_numbers_are() -> None:
    for family in captured():
        assert re.fullmatch(r"nfstuned_[a-z_]+", family.name)
        assert not re.search(r"_(ms|kb|kib|milliseconds|minutes)(_|$)", family.name)
        assert all(len(point.labels) == len(family.labels) for point in family.points)
        labels = [point.labels for point in family.points]
        assert len(set(labels)) == len(labels), family.name
    names = [family.name for family in captured()]
    assert len(set(names)) == len(names)


def test_units_are_seconds_and_bytes() -> None:
    shown = stats(500, moved(7, 6, 5, 4, 3), READ=op(9, rtt_ms=1500, transmissions=11, errors=2))
    totals = counts(look_at(-499.0), look_at(1.0, superblock(shown)), contests={"0:43": 2})
    found = tuple(families(totals, (), SERVICE))
    place = ("0:43", "/mnt/data")
    read = values(found, "nfstuned_mount_read_bytes_total")
    assert read == {(*place, "buffered"): 7, (*place, "direct"): 3}
    assert values(found, "nfstuned_mount_server_read_bytes_total") == {place: 5}
    rtt = values(found, "nfstuned_mount_operation_rtt_seconds_total")
    assert rtt == {(*place, "read"): 1.5} | {(*place, kind): 0 for kind in ("write", "metadata", "other")}
    assert values(found, "nfstuned_mount_operation_errors_total")[(*place, "read")] == 2
    assert values(found, "nfstuned_mount_retransmissions_total") == {place: 2}
    assert values(found, "nfstuned_mount_read_ahead_contested_total") == {place: 2}


def test_a_kernel_that_counts_no_errors_has_no_such_series() -> None:
    totals = counts(look_at(-999.0), look_at(1.0, superblock(stats(READ=op(9, errors=None)))))
    assert "nfstuned_mount_operation_errors_total" not in [f.name for f in families(totals, (), SERVICE)]


def test_the_target_of_what_is_tuned_is_there_beside_what_it_is() -> None:
    found = captured()
    now, target = (values(found, f"nfstuned_mount_read_ahead{end}_bytes") for end in ("", "_target"))
    assert [point for _, point in now.keys() - target] == ["/mnt/1"]  # no vendor names its number
    assert all(value % 4096 == 0 and value > 0 for value in (*now.values(), *target.values()))


def test_those_without_room_are_counted() -> None:
    everything, found = captured(), captured(most=2)
    mounts = len(values(everything, "nfstuned_mount_info"))
    assert len(values(found, "nfstuned_mount_info")) == 2
    assert values(found, "nfstuned_mounts") == {("true",): 2, ("false",): mounts - 2}
    assert values(found, "nfstuned_mounts_left_out_total") == {(): mounts - 2}


def test_findings_are_numbers_of_rules_and_never_of_mounts() -> None:
    counts = {("NFS204", "nconnect-inherited", "warning"): 2, ("NFS404", "address-drift", "warning"): 0}
    found, when, missing = findings_families(counts, 1e9)
    assert dict(found.points) == counts
    assert when.points == (((), 1e9),)
    assert missing.points == ()
    (*_, missing) = findings_families({("NFS412", "mount-missing", "error"): 2}, 1e9)
    assert missing.points == (((), 2),)
