"""Rules and findings of `nfstuned check`: severities, needs, faults and the diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nfstuned.model.facts import Facts


class Severity(str, Enum):
    """The severities of findings, the worst first."""

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
    """The conditions of rules. A rule without them is skipped and counted."""

    LIVE = "a running kernel"
    NETWORK = "the network"
    SAMPLE = "two looks: --sample SECONDS"
    IMAGE = "an image: --root"


@dataclass(frozen=True, slots=True)
class Fault:
    """A mistake that a rule sees; the runner adds the rule's own fields."""

    subject: str
    """The mount point of a live mount, `/etc/fstab:7` of a mount only asked for, or an interface."""
    message: str
    """A sentence with the mistake and its consequence."""
    observed: str = ""
    expected: str = ""
    remedy: str = ""
    """A command, or a change to a named file."""
    source: str = ""
    """The source, where it is not the rule's own."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the catalogue; its id and name never change their meaning."""

    id: str
    name: str
    severity: Severity
    judge: Callable[[Facts], Iterator[Fault]]
    source: str
    """The page, kernel file or manual on which it is based."""
    needs: frozenset[Need] = frozenset()

    def __call__(self, facts: Facts) -> Iterator[Fault]:
        """Yield the faults of a host or an image."""
        return self.judge(facts)

    @property
    def family(self) -> str:
        """The ids' common start: "NFS1" for read-ahead."""
        return self.id[:4]


def rule(
    id_: str, name: str, severity: Severity, *, source: str, needs: tuple[Need, ...] = ()
) -> Callable[[Callable[[Facts], Iterator[Fault]]], Rule]:
    """Make a Rule of the function that yields its faults.

    An id and a name never change their meaning, even for a removed rule. `source` is the page, the kernel
    file or the manual on which the rule is based. Without its `needs` a rule is skipped.
    """
    return lambda judge: Rule(id_, name, severity, judge, source, frozenset(needs))


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding, with the fields of `nfstuned.check/1` in docs/json.md."""

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
    """The results of all rules."""

    findings: tuple[Finding, ...]
    skipped: tuple[str, ...]
    """The ids of the rules that were skipped, because the facts lack their needs."""
    crashed: bool = False
    """A rule raised: the verdict is not complete."""
    doubts: tuple[str, ...] = ()
    """Unanswered questions and texts that were not understood, for people, each once."""
