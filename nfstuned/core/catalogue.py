"""The catalogue as people ask for it: a rule by its id or name, and the words that mean rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from nfstuned.core.diagnose import CRASHED, select
from nfstuned.core.rules import RULES
from nfstuned.model.finding import Rule

CATALOGUE: tuple[Rule, ...] = (CRASHED, *RULES)
"""Every id that a finding can have."""
_NEAR = 0.5


def find(word: str) -> tuple[Rule, ...]:
    """Return the rule of that id or name, in whatever case; NFS and SMB have rules of the same name."""
    wanted = word.strip().lower()
    return tuple(rule for rule in CATALOGUE if wanted in {rule.id.lower(), rule.name})


def nearest(word: str, most: int = 3) -> tuple[str, ...]:
    """Return the ids whose id or name looks most like `word`, the nearest first; it may be none."""
    ids = {spelling: rule.id for rule in CATALOGUE for spelling in (rule.id.lower(), rule.name)}
    wanted = word.strip().lower()
    found = get_close_matches(wanted, ids, len(ids), _NEAR)
    # NFS10x is nearer to NFS101 than to NFS510: people err towards the end of an id.
    found.sort(key=lambda spelling: _shared(wanted, spelling), reverse=True)
    return tuple(dict.fromkeys(ids[spelling] for spelling in found))[:most]


def _shared(one: str, other: str) -> int:
    """Return how many letters two words begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))


def words(lists: Iterable[str]) -> tuple[str, ...]:
    """Return the words of comma-separated lists."""
    return tuple(word.strip() for text in lists for word in text.split(",") if word.strip())


def unknown(chosen: Sequence[str]) -> str:
    """Return the first word that means no rule, "" when every one does."""
    return next((word for word in chosen if not select(CATALOGUE, (word,), ())), "")


def correction(word: str) -> str:
    """Return what to tell of a word that means no rule."""
    names = {rule.id: rule.name for rule in CATALOGUE}
    told = ", ".join(f"{near} ({names[near]})" for near in nearest(word))
    return f"no rule is called {word!r}; {f'did you mean {told}?' if told else 'nfstuned rules lists them'}"
