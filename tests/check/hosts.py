"""Host trees with a few lines of truth: what a check must find there, and nothing else.

A host is a folder of tests/hosts/ with a `truth.toml`:

    why = "what this host shows"
    base = "clean-azure"            # another host, whose files are taken where this one has none of its own
    arguments = ["--offline"]       # "--root", "--offline" or nothing; default: nothing
    findings = ["NFS101 /mnt/a"]    # rule and subject of every finding, in the order of the output
    gone = ["etc/fstab"]            # files of the base that are not there
    now = 2026-12-01T00:00:00Z      # when that was; default: 2026-11-25T12:00:00Z
    fifos = ["etc/fstab"]           # what an archive of this project could not keep: pipes, and links below

    [units."mnt-a.mount"]           # what systemd says of a unit that is loaded
    active = "failed"

    [modes]                         # what git does not keep: 0644 otherwise
    "etc/smb.cred" = "0600"

    [links]
    lib = "usr/lib"

    [[answer]]                      # what the world beyond files says: nfstuned.model.facts' own values
    host = "sa1.file.core.windows.net"
    addresses = ["10.10.10.10"]
    [[reach]]
    [[route]]
    [[interface]]

What the files are at a second look stands in the host's folder `later`; the host is then sampled:

    sample_s = 10
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from nfstuned.host.network.ask import Questions
from nfstuned.model.facts import Answer, Interface, Network, Reach, Reachable, Route
from nfstuned.model.requests import UnitState

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HOSTS = Path(__file__).parents[1] / "hosts"
TRUTH = "truth.toml"
LATER = "later"
MOMENT = datetime(2026, 11, 25, 12, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Case:
    """One host tree and its truth."""

    name: str
    truth: dict[str, Any]

    def build(self, target: Path) -> Path:
        """Write the whole tree to `target`, that of its bases below."""
        base = self.truth.get("base")
        if base:
            load(base).build(target)
        ignored = shutil.ignore_patterns(LATER, TRUTH)
        shutil.copytree(HOSTS / self.name, target, symlinks=True, dirs_exist_ok=True, ignore=ignored)
        for name in self.truth.get("gone", []):
            path = target / name
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        self._furnish(target)
        return target

    def _furnish(self, target: Path) -> None:
        """Add what is no regular file."""
        for name, leads_to in self.truth.get("links", {}).items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).symlink_to(leads_to)
        for name in self.truth.get("fifos", []):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            os.mkfifo(target / name)
        for name, mode in self.truth.get("modes", {}).items():
            (target / name).chmod(int(mode, 8))

    def inherited(self, key: str) -> Any:  # noqa: ANN401 - TOML holds anything
        """Return a value of the truth, or of the nearest base that has it."""
        if key in self.truth or "base" not in self.truth:
            return self.truth.get(key, [])
        return load(self.truth["base"]).inherited(key)

    @property
    def moment(self) -> datetime:
        """The time at which the host is looked at."""
        return self.inherited("now") or MOMENT

    @property
    def units(self) -> dict[str, UnitState]:
        """What systemd knows of units."""
        return {
            name: UnitState(loaded=True, **_tuples(known))
            for name, known in self.truth.get("units", {}).items()
        }

    @property
    def network(self) -> Network:
        """What the world answers."""
        return Network(
            answers=tuple(Answer(**_tuples(one)) for one in self.inherited("answer")),
            reaches=tuple(
                Reach(**{**one, "state": Reachable(one["state"])}) for one in self.inherited("reach")
            ),
            routes=tuple(Route(**one) for one in self.inherited("route")),
            interfaces=tuple(Interface(**one) for one in self.inherited("interface")),
            vm_size=self.inherited("vm_size") or None,
        )


@dataclass(frozen=True)
class Told:
    """The world beyond files, as a truth tells it; with --offline only this machine's own part."""

    network: Network
    later: Path | None = None
    """What the host's files are when time has passed, and `root`, where the host was built."""
    root: Path | None = None
    states: Mapping[str, UnitState] = field(default_factory=dict)
    words: str = ""
    moment: datetime = MOMENT

    def ask(self, questions: Questions, *, offline: bool) -> tuple[Network, tuple[str, ...]]:
        """Answer without a network."""
        del questions
        if offline:
            return Network(routes=self.network.routes, interfaces=self.network.interfaces), ()
        return self.network, ()

    def units(self, names: Sequence[str]) -> Mapping[str, UnitState]:
        """Return the units of the truth."""
        return {name: state for name, state in self.states.items() if name in names}

    def last_words(self, states: Mapping[str, UnitState]) -> Mapping[str, UnitState]:
        """Return the states as they are: the truth has their words."""
        return states

    def kernel_words(self) -> str:
        """Return what the kernel is to have said."""
        return self.words

    def now(self) -> float:
        """Return the time of the truth."""
        return self.moment.timestamp()

    def pause(self, seconds: float) -> float:
        """Let no time pass, but what comes later has come."""
        if self.later is not None and self.root is not None and self.later.is_dir():
            shutil.copytree(self.later, self.root, symlinks=True, dirs_exist_ok=True)
        return seconds


def load(name: str) -> Case:
    """Return one host."""
    return Case(name, tomllib.loads((HOSTS / name / TRUTH).read_text()))


def names() -> list[str]:
    """Return every host that has a truth."""
    return sorted(path.parent.name for path in HOSTS.glob(f"*/{TRUTH}"))


def _tuples(table: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
