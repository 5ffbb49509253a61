"""`nfstuned check` in a situation of the guest, held against a golden file."""

from __future__ import annotations

import os
from pathlib import Path

from tests.lab.kit.daemon import nfstuned_json

GOLDEN = Path(__file__).parents[1] / "golden"
_SEEN = Path("/results/golden")
_PATIENCE_S = 120.0


def findings(*argv: str) -> list[str]:
    """Return each finding of a check as one line; the kernel's release is left out of it."""
    document = nfstuned_json("check", *argv, timeout=_PATIENCE_S)
    found = document["findings"]
    assert isinstance(found, list)
    release = os.uname().release
    lines = [f"{one['severity']} {one['rule']} {one['subject']}: {one['message']}" for one in found]
    return [line.replace(release, "KERNEL") for line in lines]


def ids(*argv: str) -> list[str]:
    """Return only rule and subject of each finding."""
    return [line.partition(": ")[0].partition(" ")[2] for line in findings(*argv)]


def check_is(situation: str, *argv: str) -> None:
    """Compare the findings with the situation's golden file, which names them all and no others.

    What was seen is also left among the boot's results, from where a person copies it after reading it.
    """
    seen = "".join(f"{line}\n" for line in findings(*argv))
    _SEEN.mkdir(parents=True, exist_ok=True)
    (_SEEN / f"{situation}.txt").write_text(seen)
    assert seen == (GOLDEN / f"{situation}.txt").read_text()
