"""Which scenarios run on which kernels."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from tests.lab import recipe
from tests.lab.payload import SCENARIOS

_ALL = re.compile(r"^pytestmark = .*pytest\.mark\.(long|race)\b", re.MULTILINE)
_ONE = re.compile(r"^@pytest\.mark\.(long|race)\b", re.MULTILINE)


class Length(enum.Enum):
    """A scenario's marker: all short ones of a kernel share one boot, all long ones another.

    Those that race mount(8) have a boot whose guest is alone on the machine.
    """

    RACE = "race"
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

    `ci`: short ones everywhere, long ones and races on the oldest and the newest kernel; `all`: everything
    everywhere.
    """
    names = [series.name for series in recipe.SERIES]
    long_on = {"all": names, "ci": [names[0], names[-1]]}.get(tier, [])
    boots = [(name, Length.RACE) for name in long_on]
    boots += [(name, Length.SHORT) for name in names if tier != "none"]
    boots += [(name, Length.LONG) for name in long_on]
    return tuple(Choice(kernel, length, name) for kernel, length in boots for name in scenarios(length))


def lengths(source: str) -> set[Length]:
    """Return which lengths of test a scenario file holds, from its source: it cannot be imported here."""
    if found := _ALL.search(source):
        return {Length(found[1])}
    return {Length.SHORT} | {Length(name) for name in _ONE.findall(source)}
