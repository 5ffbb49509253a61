"""The alert rules and the dashboards of docs/prometheus, and the rules as a guest can wait for them."""

from __future__ import annotations

import json
import re
from pathlib import Path

RULES = Path(__file__).parents[3] / "docs/prometheus/nfstuned.rules.yml"
DASHBOARD = RULES.with_name("nfstuned.dashboard.json")
FLEET = RULES.with_name("nfstuned.fleet.dashboard.json")


def names() -> set[str]:
    return set(re.findall(r"- alert: (\w+)", RULES.read_text()))


def shortened(rules: str) -> str:
    """Return the rules with the same conditions and shorter times, for a test that cannot wait.

    Each `for:` is 5 s, each range 20 s, and NfstunedStale allows a sample a delay of 10 s. The first rule,
    NfstunedDown, has 30 s: a busy guest answers no scrape for longer than 5 s.
    """
    rules = re.sub(r"(?m)^( +for:) \S+$", r"\1 5s", rules).replace("for: 5s", "for: 30s", 1)
    rules = re.sub(r"\[\d+m\]", "[20s]", rules)
    return rules.replace("nfstuned_sample_interval_seconds + 60\n", "nfstuned_sample_interval_seconds + 10\n")


def dashboard_queries() -> list[str]:
    """Return every query of the dashboards as Grafana sends it, of all hosts and mounts; also of lists."""
    panels = [panel for path in (DASHBOARD, FLEET) for panel in json.loads(path.read_text())["panels"]]
    found = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    found += [f"count by ({label}) ({series})" for series, label in dashboard_lists()]
    for old, new in (("$instance", ".*"), ("$mount_point", ".*"), ("$__rate_interval", "5m")):
        found = [text.replace(old, new) for text in found]
    return found


def dashboard_lists() -> list[tuple[str, str]]:
    """Return each variable of the dashboard as a series and the label with its values."""
    variables = json.loads(DASHBOARD.read_text())["templating"]["list"]
    asked = [one["query"]["query"] for one in variables if one["type"] == "query"]
    lists = [re.fullmatch(r"label_values\((.*), (\w+)\)", text) for text in asked]
    return [(one[1], one[2]) for one in lists if one is not None]
