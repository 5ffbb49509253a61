"""docs/prometheus/: every alert fires when it should and only then; queries are about metrics that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from nfstuned.cli.service import HELP as EXPORTER_HELP
from nfstuned.model.metrics import MetricFamily
from nfstuned.view.metrics import GROUP, SERVICE, SUPERBLOCK, TUNING, findings_families
from tests.core.test_metrics import captured
from tests.lab.kit import alerts
from tests.lab.kit.alerts import DASHBOARD, FLEET, RULES
from tests.promtool import needs_promtool, promtool

FOLDER = Path(__file__).parents[1] / "docs/prometheus"
CASES = Path(__file__).parent / "data/alerts.yml"
SUMS = CASES.with_name("fleet-rules.yml")
BOARD = json.loads(DASHBOARD.read_text())
PANELS = BOARD["panels"]
TARGETS: list[dict[str, str]] = [target for panel in PANELS for target in panel.get("targets", ())]
"""Every query of a panel, with the names of its lines."""
Golden = Callable[[Path, str], None]


def queried(text: str) -> set[str]:
    """Return the metrics in a text; a recorded sum is `level:nfstuned_name:operation`."""
    return set(re.findall(r"(?<![:\w])nfstuned_[a-z_]+\b", text))


def recorded(text: str) -> set[str]:
    return set(re.findall(r"\b[a-z]+:nfstuned_[a-z_]+:[a-z0-9_]+", text))


@needs_promtool
@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "--lint=all", "--lint-fatal", str(RULES)),
        ("test", "rules", str(CASES)),
        ("test", "rules", str(SUMS)),
    ],
    ids=["are right", "fire when they should and only then", "have sums and addresses"],
)
def test_promtool_finds_that_the_alerts(arguments: tuple[str, ...]) -> None:
    status, said = promtool(*arguments)
    assert status == 0, said


def test_every_alert_has_a_case() -> None:
    """Each has series with which it fires; the next series of the file are those with which none fires."""
    fired, quiet = (CASES.read_text().count(text) for text in ("exp_samples: [{", "exp_samples: []"))
    assert fired == quiet
    assert set(re.findall(r'alertname="(\w+)"', CASES.read_text())) == alerts.names()


@pytest.mark.parametrize("path", [RULES, DASHBOARD, FLEET], ids=lambda path: path.name)
def test_every_query_is_about_metrics_that_exist(path: Path) -> None:
    text = path.read_text()
    asked = queried(text) - {"nfstuned_rules", "nfstuned_docs"}
    assert asked
    assert asked <= described().keys()
    sums = set(re.findall(r"- record: (\S+)", RULES.read_text()))
    assert recorded(text) <= sums
    assert path != FLEET or sums - recorded(text) == {"instance:nfstuned_worst_finding:max"}


def test_every_alert_leads_to_a_page_that_exists() -> None:
    addresses = re.findall(
        r"runbook_url: '{{ with \$externalLabels.nfstuned_docs }}{{ \. }}/(.*){{ end }}'", RULES.read_text()
    )
    assert len(addresses) == len(alerts.names())
    pages = {address for address in addresses if "$labels" not in address}
    rules = {f"rules/{path.stem}/" for path in (FOLDER.parent / "rules").glob("*.md")}
    assert pages - rules == {"prometheus/#alerts"}
    assert "\n## Alerts\n" in (FOLDER / "README.md").read_text()


def described() -> dict[str, tuple[str, tuple[str, ...], str]]:
    """Kind, labels and meaning of every metric, by its name."""
    found = {family.name: family for family in (*captured(), *findings_families({}, 0.0))}
    metrics = [metric for table in (SERVICE, SUPERBLOCK, TUNING, GROUP) for metric in table]
    rare = {metric.name: MetricFamily(metric.name, metric.help, (), ()) for metric in metrics}
    families = (rare | found).values()
    rows = {family.name: (family.kind, family.labels, family.help) for family in families}
    return rows | {name: ("gauge", (), text) for name, text in EXPORTER_HELP.items()}


def test_the_readme_lists_every_metric(golden: Golden) -> None:
    lines = [
        f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in labels)} | {text} |"
        for name, (kind, labels, text) in sorted(described().items())
    ]
    table = "\n".join(["| Metric | Kind | Labels | Meaning |", "|---|---|---|---|", *lines]) + "\n"
    path = FOLDER / "README.md"
    text = path.read_text()
    golden(path, text[: text.index("| Metric |")] + table + text[text.index("\n## Alerts") :])


@needs_promtool
def test_the_query_of_the_readme_adds_the_claim_to_each_pod(tmp_path: Path) -> None:
    (query,) = re.findall(r"```promql\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)
    place = 'instance="a",device="0:43",mount_point="/m"'
    pods = [f'persistentvolume="pvc-1",namespace="media",pod="web-{n}"' for n in range(2)]
    series = {
        f'nfstuned_mount_read_bytes_total{{{place},io="buffered"}}': "0+60x60",
        f'nfstuned_mount_read_bytes_total{{{place},io="direct"}}': "0+120x60",
        **{f"nfstuned_mount_volume_info{{{place},{pod}}}": "1x60" for pod in pods},
        'kube_persistentvolume_claim_ref{persistentvolume="pvc-1",name="data",instance="k"}': "1x60",
    }
    samples = [{"labels": f'{{{place},{pod},name="data"}}', "value": 3} for pod in pods]
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": query, "eval_time": "30m", "exp_samples": samples}],
    }
    path = tmp_path / "test.yml"
    path.write_text(json.dumps({"evaluation_interval": "1m", "tests": [test]}))
    status, said = promtool("test", "rules", str(path))
    assert status == 0, said


def test_the_lab_asks_every_query_of_the_dashboard() -> None:
    queries = '"expr": ', '"query": "label_values('
    asked = sum(path.read_text().count(text) for text in queries for path in (DASHBOARD, FLEET))
    assert len(alerts.dashboard_queries()) == asked > len(alerts.dashboard_lists()) == 2
    assert not [query for query in alerts.dashboard_queries() if "$" in query]


@needs_promtool
def test_every_query_of_the_dashboard_is_promql(tmp_path: Path) -> None:
    queries = enumerate(alerts.dashboard_queries())
    rules = [{"record": f"x:{number}", "expr": query} for number, query in queries]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    status, said = promtool("check", "rules", "--lint=none", str(path))
    assert status == 0, said


@pytest.mark.parametrize("path", [DASHBOARD, FLEET], ids=lambda path: path.name)
def test_the_dashboard_has_the_fields_that_grafana_requires(path: Path) -> None:
    board = json.loads(path.read_text())
    assert {"title", "uid", "schemaVersion", "panels", "templating", "time"} <= board.keys()
    assert board["id"] is None
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        columns, rows = (range(place[at], place[at] + place[size]) for at, size in ("xw", "yh"))
        squares = {(x, y) for x in columns for y in rows}
        assert not squares & taken, panel["title"]
        taken |= squares
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert panel["description"]
            refs = [target["refId"] for target in panel["targets"]]
            assert len(set(refs)) == len(refs)


def lost(before: object, after: object, place: str = "") -> Iterator[str]:
    """Yield the places of values that are missing or other ones after a way through Grafana's types."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            yield from lost(value, after.get(key, lost), f"{place}/{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from lost(one, other, f"{place}/{number}")
    elif before != after:
        yield place


@pytest.mark.parametrize("path", [DASHBOARD, FLEET], ids=lambda path: path.name)
def test_grafanas_own_types_know_every_value_of_a_dashboard(path: Path) -> None:
    register_default_plugins()
    board = json.loads(path.read_text())
    assert list(lost(board, json.loads(JSONEncoder().encode(Dashboard.from_json(board))))) == ["/id"]
    board["panels"][0]["fieldConfig"]["defaults"]["thresholds"]["stepz"] = []
    damaged = json.loads(JSONEncoder().encode(Dashboard.from_json(board)))
    assert "/panels/0/fieldConfig/defaults/thresholds/stepz" in lost(board, damaged)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target["expr"][:60])
def test_selectors_and_names_of_lines_use_labels_that_the_metrics_have(target: dict[str, str]) -> None:
    scraped, known_labels = {"instance", "job"}, described()
    for name, selector in re.findall(r"\b(nfstuned_\w+)\{([^}]*)\}", target["expr"]):
        used = set(re.findall(r"(\w+)\s*[!=]=?~?\s*\"", selector))
        assert used <= scraped | set(known_labels[name][1]), name
    left = {label for name in queried(target["expr"]) for label in known_labels[name][1]}
    left -= set(re.findall(r"without \((\w+)\)", target["expr"]))
    assert set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", ""))) <= scraped | left


def test_every_number_of_the_dashboard_has_its_unit() -> None:
    numbers = [panel for panel in PANELS if panel["type"] not in {"row", "table"}]
    units = {panel["title"]: panel["fieldConfig"]["defaults"].get("unit") for panel in numbers}
    assert [title for title, unit in units.items() if unit is None] == []
    rate = r"(?:sum without \(io\) \()?rate\(nfstuned_\w+_(bytes|seconds)_total\{[^}]*\}\[[^]]*\]\)+"
    queries = [(units[panel["title"]], target["expr"]) for panel in numbers for target in panel["targets"]]
    shown = {(found[1], unit) for unit, query in queries if (found := re.fullmatch(rate, query)) is not None}
    assert shown == {("bytes", "Bps"), ("seconds", "percentunit")}
    firsts = [(units[panel["title"]], panel["targets"][0]["expr"]) for panel in numbers]
    assert {unit for unit, query in firsts if "_seconds_total" in query and "/" in query} == {"s"}


def test_a_reader_chooses_the_data_source_the_host_and_the_mount_point() -> None:
    source, *lists = BOARD["templating"]["list"]
    assert (source["name"], source["type"], source["query"]) == ("datasource", "datasource", "prometheus")
    assert [one["name"] for one in lists] == ["instance", "mount_point"]
    for series, label in alerts.dashboard_lists():
        (name,) = queried(series)
        assert label in {"instance", *described()[name][1]}


def test_the_columns_of_the_table_of_mounts_have_names_of_their_own() -> None:
    (table,) = [panel for panel in PANELS if panel["title"] == "Mounts"]
    renamed = table["transformations"][-1]["options"]["renameByName"]
    numbers = [target["refId"] for target in table["targets"] if "info" not in target["expr"]]
    assert list(renamed) == [f"Value #{reference}" for reference in numbers]
    assert len(set(map(str.strip, renamed.values()))) == len(numbers)
