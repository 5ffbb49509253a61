"""What became of each scenario in a guest, read from the JUnit file that it sent back."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """One test of the guest: why it failed, or why it was skipped; both empty when it passed."""

    scenario: str
    test: str
    seconds: float
    trouble: str = ""
    skipped: str = ""


def read(junit: Path) -> tuple[Outcome, ...]:
    """Return the outcomes in the guest's order; raise OSError or ET.ParseError when the file is not whole."""
    root = ET.parse(junit).getroot()  # noqa: S314 the file comes from our own guest
    return tuple(_outcome(case) for case in root.iter("testcase"))


def of(scenario: str, outcomes: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
    """Return the outcomes of one scenario file, named without its suffix."""
    return tuple(outcome for outcome in outcomes if outcome.scenario == scenario)


def _outcome(case: ET.Element) -> Outcome:
    """A file that cannot be imported has no class: pytest gives its dotted path as the test's name."""
    path = case.get("classname") or case.get("name") or ""
    parts = [part for part in path.split(".") if part.startswith("test_")]
    troubles = [_text(child) for child in case if child.tag in {"failure", "error"}]
    skips = [child.get("message", "") or "skipped" for child in case if child.tag == "skipped"]
    return Outcome(
        scenario=parts[0] if parts else path,
        test=case.get("name", ""),
        seconds=float(case.get("time", "0")),
        trouble="\n".join(troubles),
        skipped="; ".join(skips),
    )


def _text(child: ET.Element) -> str:
    return child.text or child.get("message", "") or child.tag
