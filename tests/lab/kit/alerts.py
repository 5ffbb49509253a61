"""Series with which each alert fires, and with which it must not, for promtool; a guest's rules."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

RULES = Path(__file__).parents[3] / "docs/prometheus/nfstuned.rules.yml"
DASHBOARD = RULES.with_name("nfstuned.dashboard.json")
MOUNT = 'instance="a",job="nfstuned",device="0:43",mount_point="/data"'
GROUP_LABELS = 'instance="a",job="nfstuned",group="v4.1 tcp 10.0.0.5:2049"'
Series = dict[str, str]

CASES: tuple[tuple[str, Series, Series], ...] = (
    (
        "NfstunedDown",
        {'up{instance="a",job="nfstuned"}': "0x60"},
        {'up{instance="a",job="nfstuned"}': "1x60"},
    ),
    (
        "NfstunedDown",
        {'nfstuned_exporter_file_usable{instance="a",job="nfstuned"}': "0x60"},
        {'nfstuned_exporter_file_usable{instance="a",job="nfstuned"}': "1x60"},
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
        "NfstunedNconnectBelowProfile",
        {
            # Another job scrapes the same host, which has one name for both.
            f"nfstuned_mount_nconnect{{{MOUNT}}}": "1x120",
            f"nfstuned_mount_nconnect_target{{{MOUNT}}}": "4x120",
            f'nfstuned_mount_info{{{MOUNT},source="nas:/a"}}': "1x120",
            f'nfstuned_mount_info{{{MOUNT.replace("nfstuned", "node")},source="nas:/a"}}': "1x120",
        },
        {f'nfstuned_mount_info{{{MOUNT},source="nas:/a"}}': "1x120"},
    ),
    (
        "NfstunedMountStalled",
        {
            f"nfstuned_mount_stalled_seconds{{{MOUNT}}}": "0 20+60x60",
            f'nfstuned_mount_info{{{MOUNT},source="nas:/data"}}': "1x62",
        },
        {
            f"nfstuned_mount_stalled_seconds{{{MOUNT}}}": "0x60",
            f'nfstuned_mount_info{{{MOUNT},source="nas:/data"}}': "1x60",
        },
    ),
    (
        "NfstunedMountMissing",
        {'nfstuned_mounts_missing{instance="a"}': "1x60"},
        {'nfstuned_mounts_missing{instance="a"}': "0x60"},
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
        "NfstunedOverFetch",
        {
            f"nfstuned_mount_server_read_bytes_total{{{MOUNT}}}": "0+300000000x120",
            f'nfstuned_mount_read_bytes_total{{{MOUNT},io="buffered"}}': "0+100000000x120",
            f"nfstuned_mount_read_ahead_bytes{{{MOUNT}}}": "15728640x120",
        },
        {
            # Programs that only map files: what they read is not known.
            f"nfstuned_mount_server_read_bytes_total{{{MOUNT}}}": "0+300000000x120",
            f'nfstuned_mount_read_bytes_total{{{MOUNT},io="buffered"}}': "0x120",
            f'nfstuned_mount_read_bytes_total{{{MOUNT},io="direct"}}': "0x120",
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
)


def names() -> set[str]:
    """Return the names of all alerts that there are."""
    return set(re.findall(r"- alert: (\w+)", RULES.read_text()))


def promtool_tests(cases: tuple[tuple[str, Series, Series], ...] = CASES) -> dict[str, Any]:
    """Return a file for `promtool test rules`: in each case exactly its alert fires, or none."""
    tests = [
        _test(series, expected)
        for alert, wrong, well in cases
        for series, expected in ((wrong, [alert]), (well, []))
    ]
    return {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}


def _test(series: Series, expected: list[str]) -> dict[str, Any]:
    minutes = max(int(number) for values in series.values() for number in re.findall(r"x(\d+)", values))
    firing = {
        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": f"{minutes}m",
        "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in expected],
    }
    shown = [{"series": name, "values": values} for name, values in series.items()]
    return {"interval": "1m", "input_series": shown, "promql_expr_test": [firing]}


def shortened(rules: str) -> str:
    """Return the rules for a test that cannot wait: seconds in the place of minutes, and the same conditions.

    Each `for:` is 5 s, each range 20 s, and what a sample may be late for NfstunedStale 10 s. The first,
    NfstunedDown, has 30 s: a busy guest answers no scrape for longer than 5 s.
    """
    rules = re.sub(r"(?m)^( +for:) \S+$", r"\1 5s", rules).replace("for: 5s", "for: 30s", 1)
    rules = re.sub(r"\[\d+m\]", "[20s]", rules)
    return rules.replace("nfstuned_sample_interval_seconds + 60\n", "nfstuned_sample_interval_seconds + 10\n")


def dashboard_queries() -> list[str]:
    """Return every query of the dashboard as Grafana sends it, of all hosts and mounts; also of its lists."""
    document = json.loads(DASHBOARD.read_text())
    found = [target["expr"] for panel in document["panels"] for target in panel.get("targets", ())]
    found += [f"count by ({label}) ({series})" for series, label in dashboard_lists()]
    for old, new in (("$instance", ".*"), ("$mount_point", ".*"), ("$__rate_interval", "5m")):
        found = [text.replace(old, new) for text in found]
    return found


def dashboard_lists() -> list[tuple[str, str]]:
    """Return the series and the label of which each of the dashboard's variables lists the values."""
    variables = json.loads(DASHBOARD.read_text())["templating"]["list"]
    asked = [one["query"]["query"] for one in variables if one["type"] == "query"]
    lists = [re.fullmatch(r"label_values\((.*), (\w+)\)", text) for text in asked]
    return [(one[1], one[2]) for one in lists if one is not None]
