"""Which scenarios run on which kernels, and which of them a change touches."""

from __future__ import annotations

import ast
import enum
import functools
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tests.lab import left, recipe
from tests.lab.left import LEFT
from tests.lab.payload import SCENARIOS
from tests.lab.rootdisk import Way
from tests.lab.roots import SUITES

ABOUT: Mapping[str, str] = {
    "test_alerts": "metrics samples daemon readahead check",
    "test_allowances": "package daemon readahead",
    "test_answers": "daemon samples mounts",
    "test_apply_fstab": "fstab mounts policy",
    "test_bench": "bench",
    "test_calls": "package daemon readahead samples metrics persist",
    "test_check": "check mounts policy nconnect readahead",
    "test_check_host": "check mounts policy udev nconnect readahead",
    "test_check_smb": "check",
    "test_commands": "commands mounts policy readahead nconnect",
    "test_config": "policy daemon readahead check",
    "test_dead_server": "daemon readahead samples commands",
    "test_differences": "bench",
    "test_effects": "bench",
    "test_events": "daemon",
    "test_external_updates": "daemon readahead commands",
    "test_first_look": "daemon readahead udev",
    "test_hostile_servers": "samples metrics daemon mounts",
    "test_hostile_users": "daemon mounts readahead",
    "test_identity": "check package",
    "test_idle": "daemon readahead samples",
    "test_journal": "daemon readahead samples",
    "test_lab": "kernel",
    "test_live": "live mounts policy",
    "test_memory": "daemon readahead samples",
    "test_metrics": "metrics samples daemon readahead check",
    "test_missing": "check mounts",
    "test_namespaces": "daemon readahead mounts",
    "test_option_values": "check mounts",
    "test_overflow": "daemon readahead",
    "test_persist": "persist mounts policy daemon",
    "test_read_ahead": "kernel",
    "test_read_ahead_use": "readahead samples",
    "test_remount": "remount mounts policy",
    "test_rivals": "readahead daemon udev check",
    "test_samples": "samples daemon",
    "test_samples_kept": "samples daemon commands",
    "test_sandbox": "package daemon readahead samples",
    "test_service": "daemon package readahead policy",
    "test_sharing": "daemon readahead mounts",
    "test_state": "readahead daemon commands",
    "test_storm": "daemon readahead",
    "test_stalls": "daemon samples mounts",
    "test_strangers": "readahead daemon udev",
    "test_time_to_tuned": "daemon readahead udev",
    "test_tools": "samples metrics",
    "test_transports": "nconnect mounts",
    "test_tunnel": "check",
    "test_udev_mask": "udev daemon package check",
    "test_udev_rule": "udev",
    "test_units": "package udev",
    "test_unmount": "daemon readahead",
    "test_upgrade": "package daemon",
    "test_value_stays": "daemon readahead udev",
}
"""The capabilities that each scenario file is about: those whose change can make it fail.

`kernel` is what no change of nfstuned can: these run when they are changed, or what all of them stand on.
"""
PARTS: Mapping[str, str] = {
    "nfstuned/app/": "check commands",
    "nfstuned/app/bench": "bench",
    "nfstuned/app/change": "readahead fstab live persist remount image commands",
    "nfstuned/app/files": "fstab persist",
    "nfstuned/app/groups": "live remount",
    "nfstuned/app/image": "image",
    "nfstuned/app/read_ahead": "readahead commands",
    "nfstuned/cli/": "commands",
    "nfstuned/cli/apply": "readahead fstab live persist remount",
    "nfstuned/cli/bake": "image",
    "nfstuned/cli/bench": "bench",
    "nfstuned/cli/check": "check",
    "nfstuned/cli/explain": "check",
    "nfstuned/cli/install_files": "package udev",
    "nfstuned/cli/report": "samples",
    "nfstuned/cli/samples": "samples",
    "nfstuned/cli/terminal": "fstab live persist remount image",
    "nfstuned/cli/top": "samples",
    "nfstuned/core/bench/": "bench",
    "nfstuned/core/image/": "image",
    "nfstuned/core/mounts/": "mounts",
    "nfstuned/core/nconnect/": "nconnect fstab live persist remount",
    "nfstuned/core/nconnect/fstab": "fstab",
    "nfstuned/core/nconnect/live": "live",
    "nfstuned/core/nconnect/persist": "persist",
    "nfstuned/core/nconnect/remount": "remount",
    "nfstuned/core/policy/": "policy",
    "nfstuned/core/readahead/": "readahead",
    "nfstuned/core/rules/": "check",
    "nfstuned/core/samples/": "samples metrics",
    "nfstuned/core/udev/": "udev",
    "nfstuned/daemon/": "daemon",
    "nfstuned/daemon/mask": "udev",
    "nfstuned/daemon/metrics": "metrics",
    "nfstuned/daemon/persister": "persist",
    "nfstuned/data/": "policy",
    "nfstuned/data/suites/": "bench",
    "nfstuned/host/bench/": "bench",
    "nfstuned/host/change/bdi": "readahead",
    "nfstuned/host/change/findmnt": "fstab",
    "nfstuned/host/change/live": "live",
    "nfstuned/host/change/persist": "persist",
    "nfstuned/host/change/read_ahead": "readahead",
    "nfstuned/host/change/remount": "remount",
    "nfstuned/host/change/state": "readahead",
    "nfstuned/host/change/udev_mask": "udev",
    "nfstuned/host/config": "policy",
    "nfstuned/host/events": "daemon",
    "nfstuned/host/image_root": "image",
    "nfstuned/host/look/smb": "check",
    "nfstuned/host/network/": "check persist fstab",
    "nfstuned/host/service": "daemon",
    "nfstuned/host/telemetry/": "samples metrics daemon",
    "nfstuned/parse/bench": "bench",
    "nfstuned/view/": "commands",
    "nfstuned/view/bench": "bench",
    "nfstuned/view/check": "check",
    "nfstuned/view/history": "samples",
    "nfstuned/view/metrics": "metrics",
    "nfstuned/view/report/": "samples",
    "nfstuned/view/report/bars": "bench",
    "nfstuned/view/report/bench": "bench",
    "nfstuned/view/top": "samples",
    "dev/package/": "package",
    "docs/completion/": "package",
    "docs/man/": "package",
    "docs/prometheus/": "metrics",
    "systemd/": "package daemon",
    "tests/bench/bench_time_to_tuned": "readahead",
    "tests/bench/bench_tools": "samples",
    "tests/lab/golden/": "check",
    "udev/": "udev",
}
"""The capabilities that a file is of, by how its path begins; the longest beginning counts.

No scenario is about an `image`: test_first_boot.py boots those, as part of `sh dev/test`.
"""
_HOSTS_SIDE = (
    "__main__|conftest|demo|errand|firstboot|installed|kept|left|outcomes|performance|pictures|quiet|rootdisk|roots|"
    "selection|shapes|test_|workloads|README"
)
UNSEEN = re.compile(rf"docs/|\.ci/|dev/|tests/(?!lab/)|tests/lab/({_HOSTS_SIDE})|[A-Z]+(\.md)?$|\.gitignore$")
"""What no guest sees, unless PARTS has it: texts, unit tests, and the host's side of the lab."""
EVERYTHING = "all scenarios stand on it"


SECONDS: Mapping[str, int] = {
    "test_alerts": 110,
    "test_allowances": 110,
    "test_answers": 530,
    "test_bench": 215,
    "test_calls": 40,
    "test_check": 95,
    "test_check_host": 110,
    "test_check_smb": 50,
    "test_commands": 75,
    "test_config": 115,
    "test_dead_server": 180,
    "test_differences": 175,
    "test_external_updates": 60,
    "test_first_look": 40,
    "test_hostile_users": 50,
    "test_identity": 65,
    "test_idle": 50,
    "test_journal": 65,
    "test_live": 45,
    "test_memory": 130,
    "test_metrics": 30,
    "test_missing": 60,
    "test_namespaces": 50,
    "test_overflow": 60,
    "test_persist": 75,
    "test_remount": 70,
    "test_rivals": 60,
    "test_samples": 75,
    "test_samples_kept": 70,
    "test_sandbox": 40,
    "test_service": 70,
    "test_sharing": 45,
    "test_stalls": 490,
    "test_state": 130,
    "test_strangers": 45,
    "test_tools": 110,
    "test_udev_mask": 95,
    "test_unmount": 40,
    "test_upgrade": 90,
    "test_value_stays": 80,
}
"""How long files take, on the slower of CI's kernels: so their boots are made about equally long."""
SECONDS_FULL: Mapping[str, int] = {"test_answers": 2370, "test_stalls": 900}
"""The same, as before a release."""
_OTHERS_S = 20
_BOOT_S = 660
"""So much of them a boot has at most, if that can be: less would be lost with the start of more guests, more
with processors that have nothing left to do."""
WAITING = frozenset({"test_answers", "test_stalls"})
"""Files that wait for most of their time: their guest leaves its processor to others."""


class Length(enum.Enum):
    """A scenario's marker: those of a kernel share its boots, the short ones with its long ones.

    Those that race mount(8), measure, or are about processors have a guest that is alone on the machine, with
    two. What is to run once says nothing of the kernel; no more does what a release is asked for: how much
    something takes or gains, and what a whole system makes of it. LEFT has single tests of the others.
    """

    RACE = "race"
    MEASURE = "measure"
    SHORT = "short"
    LONG = "long"
    ONCE = "once"
    RELEASE = "release"


ALONE = frozenset({Length.RACE, Length.MEASURE})
_ALONG: Mapping[Length, Length] = {
    Length.SHORT: Length.LONG,
    Length.MEASURE: Length.RACE,
    Length.RELEASE: Length.ONCE,
}
"""Whose boots of the same kernel a length shares, where there are any."""


@dataclass(frozen=True)
class Choice:
    """One scenario file on one kernel."""

    kernel: str
    length: Length
    scenario: str


@dataclass(frozen=True)
class Boot:
    """A guest's start: the scenario files that it runs, and of which lengths their tests are."""

    name: str
    kernel: str
    lengths: frozenset[Length]
    scenarios: tuple[str, ...]
    full: bool = False
    """As before a release: with as many mounts and events, and as long."""
    without: tuple[str, ...] = ()
    """Tests of its files that it does not run, as pytest names them from their folder on."""

    def carries(self, choice: Choice) -> bool:
        """Whether the scenario runs in it."""
        mine = self.kernel == choice.kernel and choice.scenario in self.scenarios
        return mine and choice.length in self.lengths

    @property
    def alone(self) -> bool:
        """Whether nothing may run beside it."""
        return not ALONE.isdisjoint(self.lengths)

    @property
    def waits(self) -> bool:
        """Whether it may run beside as many others as there should be."""
        return not self.full and WAITING.issuperset(self.scenarios)

    @property
    def seconds(self) -> int:
        """How long it takes, about."""
        known = {**SECONDS, **SECONDS_FULL} if self.full else _seconds(ci=bool(self.without))
        return sum(known.get(scenario, _OTHERS_S) for scenario in self.scenarios)


@dataclass(frozen=True)
class Disk:
    """One root disk on one kernel."""

    kernel: str
    suite: str
    way: Way

    def __str__(self) -> str:
        return f"{self.kernel}-{self.suite}-{self.way.value}"


@functools.cache
def scenarios(length: Length) -> tuple[str, ...]:
    """Return the names of the scenario files that have tests of this length, judged by their markers."""
    return tuple(sorted(p.stem for p in SCENARIOS.glob("test_*.py") if length in lengths(p.read_text())))


def choices(tier: str) -> tuple[Choice, ...]:
    """Return what a tier runs, boot by boot.

    `ci`: short ones everywhere, long ones and races on the oldest and the newest kernel, and what is to run
    once on the oldest, whose emulation takes the least, without the files that it leaves as a whole; `all`:
    everything everywhere, and what measures or is for a release there alone.
    """
    names = [series.name for series in recipe.SERIES]
    long_on = {"all": names, "full": names, "ci": [names[0], names[-1]]}.get(tier, [])
    once_on = long_on[:1] if tier == "ci" else long_on
    released_on = [] if tier == "ci" else long_on
    boots = [(name, Length.RACE) for name in long_on]
    boots += [(name, Length.MEASURE) for name in released_on]
    boots += [(name, Length.SHORT) for name in names if tier != "none"]
    boots += [(name, Length.LONG) for name in long_on]
    boots += [(name, Length.ONCE) for name in once_on]
    boots += [(name, Length.RELEASE) for name in released_on]
    chosen = (Choice(kernel, length, name) for kernel, length in boots for name in scenarios(length))
    return tuple(choice for choice in chosen if tier != "ci" or not _is_left(choice.scenario))


@functools.cache
def _is_left(scenario: str) -> bool:
    """Whether CI leaves each test of a file to a release."""
    there = {test.name for test in _tests((SCENARIOS / f"{scenario}.py").read_text())}
    return there <= set(LEFT.get(scenario, ()))


def boots(chosen: Iterable[Choice], tier: str) -> tuple[Boot, ...]:
    """Return a tier's boots of these scenarios, the longest first.

    Short ones go along with long ones, what measures with races, and what is for a release with what is to
    run once. `ci`: without the tests that it leaves to a release; `full`: all are as before a release; `all`:
    half an hour of mixed load is, on the oldest and the newest kernel.
    """
    known = tuple(chosen)
    there = {(choice.kernel, choice.length) for choice in known}
    groups: dict[tuple[str, Length], list[Choice]] = {}
    for choice in known:
        along = _ALONG.get(choice.length, choice.length)
        length = along if (choice.kernel, along) in there else choice.length
        groups.setdefault((choice.kernel, length), []).append(choice)
    ci = tier == "ci"
    cut = (_boots(*group, members, _seconds(ci=ci)) for group, members in groups.items())
    found = [
        replace(boot, full=_is_full(boot, tier), without=_left(boot) if ci else ())
        for boot in itertools.chain.from_iterable(cut)
    ]
    return tuple(sorted(found, key=lambda boot: (not boot.alone, -boot.seconds)))


def _is_full(boot: Boot, tier: str) -> bool:
    if tier == "all":
        ends = {recipe.SERIES[0].name, recipe.SERIES[-1].name}
        return boot.scenarios == ("test_answers",) and boot.kernel in ends
    return tier == "full"


def _left(boot: Boot) -> tuple[str, ...]:
    return tuple(f"{file}.py::{test}" for file in boot.scenarios for test in LEFT.get(file, ()))


def _seconds(*, ci: bool) -> Mapping[str, int]:
    return {**SECONDS, **left.SECONDS} if ci else SECONDS


def _boots(
    kernel: str, length: Length, members: Sequence[Choice], seconds: Mapping[str, int]
) -> Iterator[Boot]:
    lengths = frozenset(choice.length for choice in members)
    files = dict.fromkeys(choice.scenario for choice in members)
    name = f"{kernel}-{length.value}"
    if length in ALONE:
        yield Boot(name, kernel, lengths, tuple(files))
        return
    waiting = tuple(file for file in files if file in WAITING)
    if waiting:
        yield Boot(f"{name}-waiting", kernel, lengths, waiting)
    parts = _dealt([file for file in files if file not in WAITING], seconds)
    for number, part in enumerate(parts, 1):
        yield Boot(f"{name}-{number}" if len(parts) > 1 else name, kernel, lengths, part)


def _dealt(files: Sequence[str], seconds: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Return the files in parts that take about as long as each other, each part in the order of `files`."""
    longest = sorted(files, key=lambda file: -seconds.get(file, _OTHERS_S))
    count = math.ceil(sum(seconds.get(file, _OTHERS_S) for file in files) / _BOOT_S)
    parts: list[list[str]] = [[] for _ in range(count)]
    for file in longest:
        least = min(parts, key=lambda part: sum(seconds.get(known, _OTHERS_S) for known in part))
        least.append(file)
    return [tuple(sorted(part, key=files.index)) for part in parts if part]


def disks(tier: str) -> tuple[Disk, ...]:
    """Return which root disks a tier boots.

    `ci`: each way at least once, the older suite on the oldest kernel and the newer one on the newest; `all`:
    also every kernel, once prepared and once by `apply --persist`, and each suite at both ends.
    """
    if tier not in {"ci", "all", "full"}:
        return ()
    names = [series.name for series in recipe.SERIES]
    ends = ((names[0], SUITES[0]), (names[-1], SUITES[-1]))
    chosen = [Disk(*end, Way.SERVICE) for end in ends]
    chosen += [Disk(*ends[1], Way.DAEMONLESS), Disk(*ends[0], Way.PERSIST)]
    if tier in {"all", "full"}:
        others = [(name, SUITES[number % 2]) for number, name in enumerate(names[1:-1])]
        crossed = [(names[0], SUITES[1]), (names[-1], SUITES[0])]
        chosen += [Disk(*one, Way.SERVICE) for one in (*others, *crossed)]
        chosen += [Disk(*one, Way.PERSIST) for one in (*others, ends[1])]
        chosen += [Disk(*ends[0], Way.DAEMONLESS)]
    return tuple(chosen)


def lengths(source: str) -> set[Length]:
    """Return which lengths of test a scenario file holds, from its source: it cannot be imported here."""
    of_all = [
        node.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    return {_marked(of_all) or _marked(test.decorator_list) or Length.SHORT for test in _tests(source)}


def _tests(source: str) -> list[ast.FunctionDef]:
    body = ast.parse(source).body
    return [node for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def _marked(marks: Iterable[ast.expr]) -> Length | None:
    names = [node.attr for mark in marks for node in ast.walk(mark) if isinstance(node, ast.Attribute)]
    return next((length for length in Length if length.value in names), None)


def touched(changed: Iterable[str], about: Mapping[str, str] = ABOUT) -> dict[str, str]:
    """Return the scenario files that a change of these files touches, each with the reason.

    Files are named from the project's folder. One that is of no capability touches everything, unless no
    guest sees it.
    """
    chosen: dict[str, str] = {}
    for file in sorted(changed):
        for name in sorted(about):
            if reason := _reason(file, name, set(about[name].split())):
                chosen.setdefault(name, f"{file}: {reason}")
    return dict(sorted(chosen.items()))


def _reason(file: str, scenario: str, about: set[str]) -> str:
    """Return why a change of the file touches the scenario; nothing where it does not."""
    if file.startswith("tests/lab/scenarios/test_"):
        return "itself" if file.endswith(f"/{scenario}.py") else ""
    begins = [part for part in PARTS if file.startswith(part)]
    if begins:
        return ", ".join(sorted(about & set(PARTS[max(begins, key=len)].split())))
    return "" if UNSEEN.match(file) else EVERYTHING
