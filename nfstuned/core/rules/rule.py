"""The decorator that makes a rule of a function: `@rule(ID, NAME, SEVERITY, needs=(…), source=…)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nfstuned.model.facts import Facts
from nfstuned.model.finding import Fault, Need, Rule, Severity

ERROR, WARNING, ADVICE, INFO = Severity
LIVE, NETWORK, SAMPLE, IMAGE = Need


def rule(
    id_: str, name: str, severity: Severity, *, source: str, needs: tuple[Need, ...] = ()
) -> Callable[[Callable[[Facts], Iterator[Fault]]], Rule]:
    """Make a Rule of the function that yields its faults.

    An id is never used again for another rule, and an id and a name never change their meaning. `source` is
    the page, the kernel file or the manual that the rule rests on. Without its `needs` a rule is skipped.
    """
    return lambda judge: Rule(id_, name, severity, judge, source, frozenset(needs))
