"""What `nfstuned check` says: rules, how bad their findings are, and what could not be judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nfstuned.model.facts import Facts


class Severity(str, Enum):
    """How bad a finding is, the worst first."""

    ERROR = "error"
    """It will not work, or the vendor does not support it."""
    WARNING = "warning"
    """It loses performance, or is not guaranteed."""
    ADVICE = "advice"
    """Better for most."""
    INFO = "info"
    """Worth knowing."""

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


class Need(Enum):
    """What a rule cannot judge without. A rule that lacks it is skipped and counted."""

    LIVE = "a running kernel"
    NETWORK = "the network"
    SAMPLE = "two looks: --sample SECONDS"
    IMAGE = "an image: --root"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong, as a rule sees it; the runner adds what the rule says of itself."""

    subject: str
    """The mount point of a live mount, `/etc/fstab:7` of a mount only asked for, or an interface."""
    message: str
    """A sentence: what is wrong, and why that matters."""
    observed: str = ""
    expected: str = ""
    remedy: str = ""
    """A command, or what to change in which file."""
    source: str = ""
    """Who says so, where it is not the rule's own source."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the catalogue; its id and name never change their meaning."""

    id: str
    name: str
    severity: Severity
    judge: Callable[[Facts], Iterator[Fault]]
    source: str
    """The page, kernel file or manual that it rests on."""
    needs: frozenset[Need] = frozenset()

    def __call__(self, facts: Facts) -> Iterator[Fault]:
        """Yield the faults that it sees."""
        return self.judge(facts)

    @property
    def family(self) -> str:
        """The ids' common start: "NFS1" for read-ahead."""
        return self.id[:4]


def rule(
    id_: str, name: str, severity: Severity, *, source: str, needs: tuple[Need, ...] = ()
) -> Callable[[Callable[[Facts], Iterator[Fault]]], Rule]:
    """Make a Rule of the function that yields its faults.

    An id is never used again for another rule, and an id and a name never change their meaning. `source` is
    the page, the kernel file or the manual that the rule rests on. Without its `needs` a rule is skipped.
    """
    return lambda judge: Rule(id_, name, severity, judge, source, frozenset(needs))


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding, as `nfstuned.check/1` in docs/json.md has it."""

    rule: str
    name: str
    severity: Severity
    subject: str
    message: str
    observed: str
    expected: str
    remedy: str
    source: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What came of all rules."""

    findings: tuple[Finding, ...]
    skipped: tuple[str, ...]
    """The ids of the rules that were not asked, because the facts lack something that they need."""
    crashed: bool = False
    """A rule raised: the verdict is not complete."""
    doubts: tuple[str, ...] = ()
    """What could not be learned or understood, for people, each once."""
