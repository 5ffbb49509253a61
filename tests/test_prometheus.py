"""docs/prometheus/: every alert fires when it should and only then; queries are about metrics that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nfstuned.core.metricnames import GROUP, SERVICE, SUPERBLOCK, TUNING
from nfstuned.core.metrics import findings_families
from tests.core.test_metrics import captured
from tests.promtool import needs_promtool, promtool

FOLDER = Path(__file__).parents[1] / "docs/prometheus"
RULES = FOLDER / "nfstuned.rules.yml"
DASHBOARD = FOLDER / "nfstuned.dashboard.json"
MOUNT = 'instance="a",job="nfstuned",device="0:43",mount_point="/data"'
GROUP_LABELS = 'instance="a",job="nfstuned",group="v4.1 tcp 10.0.0.5:2049"'
Series = dict[str, str]
Golden = Callable[[Path, str], None]

CASES: list[tuple[str, Series, Series]] = [
    (
        "NfstunedDown",
        {'up{instance="a",job="nfstuned"}': "0x60"},
        {'up{instance="a",job="nfstuned"}': "1x60"},
    ),
    (
        "NfstunedStale",
        {
            'nfstuned_last_sample_timestamp_seconds{instance="a"}': "0x60",
            'nfstuned_sample_interval_seconds{instance="a"}': "60x60",
        },
        {
            'nfstuned_last_sample_timestamp_seconds{instance="a"}': "0+60x60",
            'nfstuned_sample_interval_seconds{instance="a"}': "60x60",
        },
    ),
    (
        "NfstunedConfigurationRefused",
        {'nfstuned_configuration_valid{instance="a"}': "0x60"},
        {'nfstuned_configuration_valid{instance="a"}': "1x60"},
    ),
    (
        "NfstunedReadAheadReverted",
        {
            f"nfstuned_mount_read_ahead_bytes{{{MOUNT}}}": "131072x60",
            f"nfstuned_mount_read_ahead_target_bytes{{{MOUNT}}}": "15728640x60",
        },
        {
            # For a moment after each mount it is what nfs-utils wrote; more than the target is no fault.
            f"nfstuned_mount_read_ahead_bytes{{{MOUNT}}}": "131072x5 15728640x20 33554432x30",
            f"nfstuned_mount_read_ahead_target_bytes{{{MOUNT}}}": "15728640x60",
            f"nfstuned_mount_read_ahead_left{{{MOUNT}}}": "0x60",
        },
    ),
    (
        "NfstunedReadAheadReverted",
        {f"nfstuned_mount_read_ahead_left{{{MOUNT}}}": "1x60"},
        {f"nfstuned_mount_read_ahead_left{{{MOUNT}}}": "0x60"},
    ),
    (
        "NfstunedNconnectInherited",
        {'nfstuned_findings{instance="a",rule="NFS204"}': "2x60"},
        {'nfstuned_findings{instance="a",rule="NFS204"}': "0x60", 'nfstuned_findings{rule="NFS101"}': "1x60"},
    ),
    (
        "NfstunedNconnectBelowProfile",
        {
            f"nfstuned_mount_nconnect{{{MOUNT}}}": "1x120",
            f"nfstuned_mount_nconnect_target{{{MOUNT}}}": "4x120",
            f'nfstuned_mount_info{{{MOUNT},source="nas:/a"}}': "1x120",
        },
        {
            f"nfstuned_mount_nconnect{{{MOUNT}}}": "4x120",
            f"nfstuned_mount_nconnect_target{{{MOUNT}}}": "4x120",
            f'nfstuned_mount_info{{{MOUNT},source="nas:/a"}}': "1x120",
        },
    ),
    (
        "NfstunedRetransmissions",
        {
            f"nfstuned_mount_retransmissions_total{{{MOUNT}}}": "0+20x60",
            f'nfstuned_mount_operations_total{{{MOUNT},kind="read"}}': "0+500x60",
            f'nfstuned_mount_operations_total{{{MOUNT},kind="write"}}': "0+500x60",
        },
        {
            f"nfstuned_mount_retransmissions_total{{{MOUNT}}}": "0+20x60",
            f'nfstuned_mount_operations_total{{{MOUNT},kind="read"}}': "0+500x60",
            f'nfstuned_mount_operations_total{{{MOUNT},kind="write"}}': "0+5000x60",
        },
    ),
    (
        "NfstunedBacklog",
        {
            f"nfstuned_transport_backlog_total{{{GROUP_LABELS}}}": "0+6000x60",
            f"nfstuned_transport_sends_total{{{GROUP_LABELS}}}": "0+3000x60",
        },
        {
            f"nfstuned_transport_backlog_total{{{GROUP_LABELS}}}": "0+2000x60",
            f"nfstuned_transport_sends_total{{{GROUP_LABELS}}}": "0+3000x60",
        },
    ),
    (
        "NfstunedOverFetch",
        {
            f"nfstuned_mount_server_read_bytes_total{{{MOUNT}}}": "0+300000000x120",
            f'nfstuned_mount_read_bytes_total{{{MOUNT},io="buffered"}}': "0+100000000x120",
            f'nfstuned_mount_read_bytes_total{{{MOUNT},io="direct"}}': "0x120",
            f"nfstuned_mount_read_ahead_bytes{{{MOUNT}}}": "15728640x120",
        },
        {
            f"nfstuned_mount_server_read_bytes_total{{{MOUNT}}}": "0+300000000x120",
            f'nfstuned_mount_read_bytes_total{{{MOUNT},io="buffered"}}': "0+100000000x120",
            f'nfstuned_mount_read_bytes_total{{{MOUNT},io="direct"}}': "0+100000000x120",
            f"nfstuned_mount_read_ahead_bytes{{{MOUNT}}}": "15728640x120",
        },
    ),
    (
        "NfstunedEndpointDrift",
        {'nfstuned_findings{instance="a",rule="NFS404"}': "1x60"},
        {'nfstuned_findings{instance="a",rule="NFS404"}': "0x60"},
    ),
    (
        "NfstunedFindingsStale",
        {'nfstuned_findings_timestamp_seconds{instance="a"}': "0x300"},
        {'nfstuned_findings_timestamp_seconds{instance="a"}': "0+60x300"},
    ),
    (
        "NfstunedMountsLeftOut",
        {'nfstuned_mounts{instance="a",exported="false"}': "3x60"},
        {
            'nfstuned_mounts{instance="a",exported="false"}': "0x60",
            'nfstuned_mounts{instance="a",exported="true"}': "3x60",
        },
    ),
]


def firing(series: Series, expected: list[str], folder: Path) -> tuple[int, str]:
    """Ask promtool whether exactly these alerts fire after all that time."""
    minutes = max(int(number) for values in series.values() for number in re.findall(r"x(\d+)", values))
    fired = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in expected]
    test: dict[str, Any] = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [
                    {
                        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                        "eval_time": f"{minutes}m",
                        "exp_samples": fired,
                    }
                ],
            }
        ],
    }
    path = folder / "test.yml"
    path.write_text(json.dumps(test))  # which is YAML, too
    return promtool("test", "rules", str(path))


def known() -> set[str]:
    """The names of all metrics."""
    tables = {meaning.name for table in (SERVICE, SUPERBLOCK, TUNING, GROUP) for meaning in table}
    return tables | {family.name for family in (*captured(), *findings_families({}, 0.0))}


def queried(text: str) -> set[str]:
    return set(re.findall(r"\bnfstuned_[a-z_]+\b", text))


@needs_promtool
def test_promtool_finds_nothing_wrong_with_the_rules() -> None:
    status, said = promtool("check", "rules", "--lint=all", "--lint-fatal", str(RULES))
    assert status == 0, said


@needs_promtool
@pytest.mark.parametrize(("alert", "wrong", "well"), CASES, ids=[case[0] for case in CASES])
def test_an_alert_fires_when_it_should_and_only_then(
    alert: str, wrong: Series, well: Series, tmp_path: Path
) -> None:
    for series, expected in ((wrong, [alert]), (well, [])):
        status, said = firing(series, expected, tmp_path)
        assert status == 0, said


@needs_promtool
def test_this_test_can_fail(tmp_path: Path) -> None:
    status, said = firing(CASES[0][1], [], tmp_path)
    assert status != 0
    assert "NfstunedDown" in said


def test_every_alert_has_a_case() -> None:
    assert {alert for alert, _, _ in CASES} == set(re.findall(r"- alert: (\w+)", RULES.read_text()))


@pytest.mark.parametrize("path", [RULES, DASHBOARD], ids=lambda path: path.name)
def test_every_query_is_about_metrics_that_exist(path: Path) -> None:
    asked = queried(path.read_text()) - {"nfstuned_rules"}
    assert asked
    assert asked <= known()


def readme() -> str:
    """The list of metrics as docs/prometheus/README.md has it."""
    found = {family.name: family for family in (*captured(), *findings_families({}, 0.0))}
    meanings = [meaning for table in (SERVICE, SUPERBLOCK, TUNING, GROUP) for meaning in table]
    rows = {
        meaning.name: (
            meaning.kind.value,
            found[meaning.name].labels if meaning.name in found else meaning.more,
            meaning.help,
        )
        for meaning in meanings
    }
    rows |= {family.name: (family.kind.value, family.labels, family.help) for family in found.values()}
    lines = [
        f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in labels)} | {text} |"
        for name, (kind, labels, text) in sorted(rows.items())
    ]
    return "\n".join(["| Metric | Kind | Labels | What it is |", "|---|---|---|---|", *lines]) + "\n"


def test_the_readme_lists_every_metric(golden: Golden) -> None:
    path = FOLDER / "README.md"
    text = path.read_text()
    golden(path, text[: text.index("| Metric |")] + readme() + text[text.index("\n## Alerts") :])


def queries() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


@needs_promtool
def test_every_query_of_the_dashboard_is_promql(tmp_path: Path) -> None:
    plain = [re.sub(r"\$(instance|mount_point)", ".*", query) for query in queries()]
    plain = [query.replace("$__rate_interval", "5m") for query in plain]
    assert not [query for query in plain if "$" in query]
    rules = [{"record": f"x:{number}", "expr": query} for number, query in enumerate(plain)]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    status, said = promtool("check", "rules", "--lint=none", str(path))
    assert status == 0, said


def test_the_dashboard_has_what_grafana_asks_of_one() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    assert {"title", "uid", "schemaVersion", "panels", "templating", "time"} <= dashboard.keys()
    assert dashboard["id"] is None
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        squares = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not squares & taken, panel["title"]
        taken |= squares
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert panel["description"]
            refs = [target["refId"] for target in panel["targets"]]
            assert len(set(refs)) == len(refs)
