"""The output of bench, and its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.lab.kit.clones import Clone

HERE = "/run/clone"
"""Where a clone mounts."""
SHORT = ("--yes", "--format", "json", "--size", "64M")


def measured(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    for one in document["results"]:
        speed = one["bytes_per_s"]
        print(
            f"{one['job']}, {one['setting']}: {speed['median'] / 1e6:.1f} MB/s "
            f"({speed['least'] / 1e6:.1f} to {speed['most'] / 1e6:.1f})"
        )
    return document


def outcomes(document: Mapping[str, Any]) -> dict[str, tuple[str, float]]:
    """Return a finished comparison's outcome and ratio for each job."""
    assert document["ended"] == ""
    return {one["job"]: (one["outcome"], one["ratio"]) for one in document["differences"]}


def left(share: Path) -> list[str]:
    """Return bench's files on the server, and in its records."""
    records = Path("/var/lib/nfstuned/bench")
    return [str(path) for folder in (share, records) if folder.exists() for path in folder.rglob("*")]


def compared(client: Clone, *words: str) -> dict[str, tuple[str, float]]:
    """Measure one connection against several on a clone; return each job's outcome and ratio."""
    document = measured(client.enter("nfstuned", "bench", HERE, *SHORT, *words, timeout=840))
    assert [one["problem"] for one in document["runs"] if one["problem"]] == []
    return outcomes(document)
