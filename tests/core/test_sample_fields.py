"""The tables of a sample's fields, and what stands beside them: schema, metrics, documentation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nfstuned.core.samples.sample import ALL_KINDS, combine, sample_to_json, to_fields
from nfstuned.model.samples import Csv, Field, OpRate, Sample, TransportRate, fields_of
from nfstuned.view.history import CSV_HEADER, csv_row
from nfstuned.view.metrics import GROUP, SUPERBLOCK, TUNING
from tests.parse.test_samples import SAMPLE

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
    """The part of the JSON schema that is about one table."""
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
