"""Profiles from their layers: the built-in ones, the administrator's, and what inherits from what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nfstuned.model.policy import Profile, ReadAhead
from nfstuned.parse.config.toml import Document, suggestion

_LIMITS = (("read_ahead_kb", "read_ahead_max_kb"), ("nconnect", "nconnect_max"))
_INHERITS = "inherits"
_INSTEAD = {"nconnect": "nconnect_depends", "nconnect_depends": "nconnect"}
"""Keys that exclude each other: a profile that sets one of them does not inherit the other."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A [profile.NAME] table: the keys that it sets, each already checked by itself."""

    document: Document
    name: str
    values: Mapping[str, Any]


@dataclass(slots=True, eq=False)
class _Draft:
    """A profile that is being put together; `own` holds the keys of its own tables and where each was set."""

    name: str
    own: dict[str, tuple[Any, Document]] = field(default_factory=dict)

    def add(self, layer: Layer) -> None:
        self.own.update({key: (value, layer.document) for key, value in layer.values.items()})


class Inheritance:
    """All profiles of a configuration.

    A table of the administrator's with the name of a built-in profile changes that profile: what it does not
    set stays as it was, unless it inherits from another. Of several files that set a key, the last counts.
    A built-in profile inherits from another as that is after the administrator's changes.
    """

    def __init__(self, builtin: list[Layer], own: list[Layer]) -> None:
        self.problems: list[str] = []
        self._builtin = _drafts(builtin)
        self._own = _drafts(own)
        self._done: dict[str, Profile] = {}

    @property
    def names(self) -> list[str]:
        """Every profile's name, the built-in ones first."""
        return list(dict.fromkeys([*self._builtin, *self._own]))

    def profiles(self) -> tuple[Profile, ...]:
        """Return every profile, complete. What is wrong with them is in `problems` afterwards."""
        return tuple(self._settle(name, ()) for name in self.names)

    def _settle(self, name: str, trail: tuple[str, ...]) -> Profile:
        if name not in self._done:
            base = self._base(name, trail)
            self._done[name] = self._complete(self._own.get(name) or self._builtin[name], base)
        return self._done[name]

    def _base(self, name: str, trail: tuple[str, ...]) -> Profile:
        """Return what a profile starts from: an empty profile where it inherits nothing or a wrong name."""
        draft = self._own.get(name)
        if draft is None:
            return self._builtin_base(name, trail)
        parent, document = draft.own.get(_INHERITS, (name, None))
        if parent == name and name in self._builtin:
            return self._complete(self._builtin[name], self._builtin_base(name, trail))
        if document is None:
            return Profile(name)
        path = ("profile", name, _INHERITS)
        if parent not in self.names:
            allowed = ", ".join(self.names)
            self.problems.append(
                document.problem(
                    path, parent, f"unknown profile; {suggestion(parent, self.names)}allowed: {allowed}"
                )
            )
            return Profile(name)
        trail = (*trail, name)
        if parent in trail:
            way = " -> ".join((*trail[trail.index(parent) :], parent))
            allowed = f"a cycle ({way}); allowed: a profile outside it"
            self.problems.append(document.problem(path, parent, allowed))
            return Profile(name)
        return self._settle(parent, trail)

    def _builtin_base(self, name: str, trail: tuple[str, ...]) -> Profile:
        parent, _ = self._builtin[name].own.get(_INHERITS, (None, None))
        return Profile(name) if parent is None else self._settle(parent, (*trail, name))

    def _complete(self, draft: _Draft, base: Profile) -> Profile:
        values = {key: value for key, (value, _) in draft.own.items() if key != _INHERITS}
        dropped = {_INSTEAD[key]: None for key in _INSTEAD if key in values}
        values = dropped | values
        read_ahead = values.pop("read_ahead_kb", None)
        # The sources of the base do not stand for the keys that this profile changes.
        changed = (draft.own.keys() | dropped.keys()) - {"sources"}
        kept = (
            replace(source, keys=tuple(key for key in source.keys if key not in changed))
            for source in base.sources
        )
        sources = (*(source for source in kept if source.keys), *values.pop("sources", ()))
        inherits = base.base if base.base in self._builtin and draft.name not in self._builtin else ""
        builtin = draft.name in self._builtin
        profile = replace(
            base, name=draft.name, inherits=inherits, builtin=builtin, sources=sources, **values
        )
        if isinstance(read_ahead, int):
            profile = replace(profile, read_ahead=ReadAhead(kb=read_ahead))
        elif read_ahead is not None:
            profile = replace(profile, read_ahead=ReadAhead(times_rsize=int(read_ahead.partition("*")[0])))
        self._check_limits(draft, profile)
        return profile

    def _check_limits(self, draft: _Draft, profile: Profile) -> None:
        """Compare what this profile itself sets; what it inherits was compared where it was set."""
        both = profile.nconnect is not None and profile.nconnect_depends is not None
        if both and "nconnect_depends" in draft.own:
            value, document = draft.own["nconnect_depends"]
            allowed = f"there is nconnect = {profile.nconnect}, too; allowed: one of the two"
            self.problems.append(
                document.problem(("profile", draft.name, "nconnect_depends"), value, allowed)
            )
        values = {
            "read_ahead_kb": profile.read_ahead.kb if profile.read_ahead else None,
            "read_ahead_max_kb": profile.read_ahead_max_kb,
            "nconnect": profile.nconnect,
            "nconnect_max": profile.nconnect_max,
        }
        for key, limit in _LIMITS:
            value, most = values[key], values[limit]
            own = next((own for own in (key, limit) if own in draft.own), None)
            if own is None or value is None or most is None or value <= most:
                continue
            document = draft.own[own][1]
            allowed = f"{key} = {value} is above {limit} = {most}; allowed: at most that, or a larger {limit}"
            self.problems.append(document.problem(("profile", draft.name, own), values[own], allowed))


def _drafts(layers: list[Layer]) -> dict[str, _Draft]:
    drafts: dict[str, _Draft] = {}
    for layer in layers:
        drafts.setdefault(layer.name, _Draft(layer.name)).add(layer)
    return drafts
