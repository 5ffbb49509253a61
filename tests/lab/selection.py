"""Which scenarios run on which kernels."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from tests.lab import recipe
from tests.lab.payload import SCENARIOS

_ALL_LONG = re.compile(r"^pytestmark = .*pytest\.mark\.long\b", re.MULTILINE)
_ONE_LONG = re.compile(r"^@pytest\.mark\.long\b", re.MULTILINE)


class Length(enum.Enum):
    """A scenario's marker: all short ones of a kernel share one boot, all long ones another."""

    SHORT = "short"
    LONG = "long"


@dataclass(frozen=True)
class Choice:
    """One scenario file on one kernel."""

    kernel: str
    length: Length
    scenario: str


def scenarios(length: Length) -> tuple[str, ...]:
    """Return the names of the scenario files that have tests of this length, judged by their markers."""
    return tuple(sorted(p.stem for p in SCENARIOS.glob("test_*.py") if length in lengths(p.read_text())))


def choices(tier: str) -> tuple[Choice, ...]:
    """Return what a tier runs, boot by boot.

    `ci`: the short ones everywhere, the long ones on the oldest and the newest kernel; `all`: all everywhere.
    """
    names = [series.name for series in recipe.SERIES]
    long_on = {"all": names, "ci": [names[0], names[-1]]}.get(tier, [])
    boots = [(name, Length.SHORT) for name in names if tier != "none"] + [
        (name, Length.LONG) for name in long_on
    ]
    return tuple(Choice(kernel, length, name) for kernel, length in boots for name in scenarios(length))


def lengths(source: str) -> set[Length]:
    """Return which lengths of test a scenario file holds, from its source: it cannot be imported here."""
    if _ALL_LONG.search(source):
        return {Length.LONG}
    return {Length.SHORT, Length.LONG} if _ONE_LONG.search(source) else {Length.SHORT}
