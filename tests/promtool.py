"""Prometheus's own tool, and the library, for tests that need them."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

PROMTOOL = shutil.which("promtool", path=os.environ.get("PROMETHEUS_BIN") or None)
PROMETHEUS = shutil.which("prometheus", path=os.environ.get("PROMETHEUS_BIN") or None)
WHERE = "is not installed (sh dev/test fetches it; PROMETHEUS_BIN names its folder)"
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason=f"promtool {WHERE}")
needs_prometheus = pytest.mark.skipif(PROMETHEUS is None, reason=f"prometheus {WHERE}")


def promtool(*arguments: str, stdin: bytes = b"") -> tuple[int, str]:
    """Return promtool's status and output."""
    command = [PROMTOOL or "promtool", *arguments]
    done = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode()
