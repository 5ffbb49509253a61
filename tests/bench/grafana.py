"""Hold the dashboard to Grafana's own types: python -m tests.bench.grafana FOLDER.

FOLDER is where `npm install @grafana/schema typescript` was run. TypeScript then takes the dashboard and each
of its panels for values of the types that Grafana itself is built with, and reports where they are not. It
does not see how Grafana draws them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

DASHBOARD = Path(__file__).parents[2] / "docs/prometheus/nfstuned.dashboard.json"
TYPES = "./node_modules/@grafana/schema/dist/types/raw/composable"
KINDS = {"stat": "unknown", "timeseries": "timeseries.FieldConfig", "table": "table.FieldConfig"}
"""The kinds of panels, and the types of their own fields."""
FLAGS = ("--noEmit", "--strict", "--skipLibCheck", "--moduleResolution", "bundler", "--module", "esnext")
HEAD = Path(__file__).with_name("grafana.ts")
"""The types of a panel."""


def typescript(dashboard: Mapping[str, Any]) -> Iterator[str]:
    """Yield a program that has the dashboard and its panels as constants of their types."""
    yield 'import type { Dashboard, Panel, RowPanel } from "@grafana/schema";'
    for kind in KINDS:
        yield f'import type * as {kind} from "{TYPES}/{kind}/panelcfg/x/types.gen";'
    yield HEAD.read_text()
    alone = {name: value for name, value in dashboard.items() if name != "panels"}
    yield f"export const dashboard: Plain<Dashboard> = {json.dumps(alone, indent=1)};"
    for panel in dashboard["panels"]:
        kind = panel["type"]
        named = "Plain<RowPanel>" if kind == "row" else f"Kind<{kind}.Options, {KINDS[kind]}>"
        yield f"export const panel{panel['id']}: {named} = {json.dumps(panel, indent=1)};"


def main(arguments: Sequence[str]) -> int:
    """Return the compiler's status: 0 where everything is of its type."""
    if len(arguments) != 1 or not (Path(arguments[0]) / "node_modules/@grafana/schema").is_dir():
        raise SystemExit("usage: python -m tests.bench.grafana FOLDER, after npm install (see its docstring)")
    folder = Path(arguments[0])
    program = folder / "dashboard.ts"
    program.write_text("\n".join(typescript(json.loads(DASHBOARD.read_text()))))
    compiler = folder / "node_modules/.bin/tsc"
    return subprocess.run([compiler.absolute(), *FLAGS, program.name], cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
