"""Which scenarios run on which kernels."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from tests.lab import recipe
from tests.lab.payload import SCENARIOS
from tests.lab.rootdisk import Way
from tests.lab.roots import SUITES

_ALL = re.compile(r"^pytestmark = [^\n]*?(?:\[[^\]]*?)?\bpytest\.mark\.(long|race)\b", re.MULTILINE)
"""Of one mark, or of a list of them, which may have a line for each."""
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


@dataclass(frozen=True)
class Disk:
    """One root disk on one kernel."""

    kernel: str
    suite: str
    way: Way

    def __str__(self) -> str:
        return f"{self.kernel}-{self.suite}-{self.way.value}"


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


def disks(tier: str) -> tuple[Disk, ...]:
    """Return which root disks a tier boots.

    `ci`: each way at least once, the older suite on the oldest kernel and the newer one on the newest; `all`:
    also every kernel, once prepared and once by `apply --persist`, and each suite at both ends.
    """
    if tier not in {"ci", "all"}:
        return ()
    names = [series.name for series in recipe.SERIES]
    ends = ((names[0], SUITES[0]), (names[-1], SUITES[-1]))
    chosen = [Disk(*end, Way.SERVICE) for end in ends]
    chosen += [Disk(*ends[1], Way.DAEMONLESS), Disk(*ends[0], Way.PERSIST)]
    if tier == "all":
        others = [(name, SUITES[number % 2]) for number, name in enumerate(names[1:-1])]
        crossed = [(names[0], SUITES[1]), (names[-1], SUITES[0])]
        chosen += [Disk(*one, Way.SERVICE) for one in (*others, *crossed)]
        chosen += [Disk(*one, Way.PERSIST) for one in (*others, ends[1])]
        chosen += [Disk(*ends[0], Way.DAEMONLESS)]
    return tuple(chosen)


def lengths(source: str) -> set[Length]:
    """Return which lengths of test a scenario file holds, from its source: it cannot be imported here."""
    if found := _ALL.search(source):
        return {Length(found[1])}
    return {Length.SHORT} | {Length(name) for name in _ONE.findall(source)}
