"""The Policy of `/etc/nfstuned/nfstuned.toml` and its drop-ins (nfstuned.toml(5)).

The main file is the first. The scalar keys of a later file replace those of earlier files, and its [[policy]]
entries are tried before theirs. Within a file the first [[policy]] entry that matches wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, cast, get_args

from pydantic import BaseModel, ValidationError

from nfstuned.model.policy import (
    SAMPLE_INTERVAL_S,
    Assignment,
    ConfigError,
    Match,
    Policy,
    Profile,
    Prometheus,
    Provider,
    ReadAhead,
    Setter,
    Source,
    Workload,
)
from nfstuned.parse.config import BuiltinFile, CheckFile, CheckTable, ConfigFile, PolicyTable
from nfstuned.parse.toml import Document, Path, parse_toml, suggestion

NamedText = tuple[str, str]
"""A file's name and its content."""
Keys = dict[str, tuple[Any, Document]]
"""The keys that a profile's own tables set: the value of each, and the last file that sets it."""

_LISTEN_REMEDY = (
    "the service itself listens nowhere any more: remove the line, and let nfstuned-exporter.service serve "
    "the metrics (systemctl enable --now nfstuned-exporter, see METRICS in nfstuned(8))"
)
_REMOVED_KEYS: Mapping[Path, str] = {
    ("prometheus", "listen"): _LISTEN_REMEDY,
    ("prometheus", "allow_remote"): _LISTEN_REMEDY,
}
"""Keys of earlier releases, and the remedy for each."""
_NO_SAMPLES = (
    'metrics are counted with each sample, and daemon.sample_interval is "0"; allowed: "1s" to "24h"'
)
_SCALARS = {
    ("daemon", "sample_interval"): "sample_interval_s",
    ("daemon", "restore_on_stop"): "restore_on_stop",
    ("daemon", "mode"): "mode",
    ("samples", "file"): "sample_file",
    ("samples", "max_size"): "sample_file_bytes",
    ("samples", "keep"): "sample_files_kept",
    ("nconnect", "mode"): "nconnect_mode",
}
"""Scalar keys, and the field of Policy that each sets."""
_NAMED = frozenset({"profile", "workload", "provider"})
"""Tables of named tables, such as [profile.NAME]."""
_TABLE_FORMS = {
    "policy": "[[policy]] entries",
    "profile": "[profile.NAME] tables",
    "workload": "[workload.NAME] tables",
}
"""The form of these tables, for an error about anything else under their names."""
_LIMITS = (("read_ahead_kb", "read_ahead_max_kb"), ("nconnect", "nconnect_max"))
"""Keys of a profile, and the key that limits each."""
_NUMBERS = ("read_ahead_kb", "nconnect")
"""`nfstuned why` names the lines that set these keys of a profile."""
_EXCLUSIVE = {"nconnect": "nconnect_depends", "nconnect_depends": "nconnect"}
"""Keys that exclude each other: a profile that sets one of them does not inherit the other."""


def parse_config(builtin: Iterable[NamedText], files: Iterable[NamedText]) -> Policy:
    """Return the policy of the built-in profiles and the administrator's files, the main file first.

    Raises ConfigError with every problem of every file, a line for each.
    """
    problems: list[str] = []
    base = [_File.read(name, text, BuiltinFile, problems) for name, text in builtin]
    own = [_File.read(name, text, ConfigFile, problems) for name, text in files]
    inheritance = _Inheritance(_profile_keys(base), _profile_keys(own), _setters(own), problems)
    profiles = inheritance.profiles()
    workloads = _workloads(base, own)
    for file in reversed(own):
        file.check_names(inheritance.names, list(workloads), problems)
    settings = {
        name: value
        for file in own
        for (table, key), name in _SCALARS.items()
        if (value := _set_keys(getattr(file.tables, table)).get(key)) is not None
    }
    if places := [file.mode_place for file in own if file.mode_place]:
        settings["mode_place"] = places[-1]
    metrics = [(file.document, _set_keys(file.tables.prometheus)) for file in own]
    prometheus = Prometheus(**{key: value for _, table in metrics for key, value in table.items()})
    if prometheus.textfile and not settings.get("sample_interval_s", SAMPLE_INTERVAL_S):
        document, path = next((d, table["textfile"]) for d, table in reversed(metrics) if "textfile" in table)
        problems.append(document.problem(("prometheus", "textfile"), path, _NO_SAMPLES))
    if problems:
        raise ConfigError(tuple(problems))
    return Policy(
        profiles,
        tuple(chain.from_iterable(file.assignments() for file in reversed(own))),
        prometheus=prometheus,
        files=tuple(file.document.file for file in own),
        workloads=tuple(workloads.values()),
        providers=tuple(
            Provider(name, **_set_keys(table))
            for file in base
            if isinstance(file.tables, BuiltinFile)
            for name, table in file.tables.provider.items()
        ),
        **settings,
    )


def parse_check(name: str, text: str, model: type[CheckFile]) -> CheckTable:
    """Return the [check] table of a file. Raises ConfigError with every problem of the file."""
    problems: list[str] = []
    file = _File.read(name, text, cast("type[ConfigFile]", model), problems)
    if problems:
        raise ConfigError(tuple(problems))
    return file.tables.check


def _set_keys(table: BaseModel) -> dict[str, Any]:
    """Return the keys that a table sets, with its sources as values of the model."""
    values = {key: getattr(table, key) for key in table.model_fields_set}
    if "sources" in values:
        values["sources"] = tuple(Source(s.url, s.read, s.keys, s.title) for s in values["sources"])
    return values


@dataclass(frozen=True, slots=True)
class _File:
    """A file, and its valid tables."""

    document: Document
    tables: ConfigFile

    @classmethod
    def read(cls, name: str, text: str, model: type[ConfigFile], problems: list[str]) -> _File:
        """Return a file with its valid tables; the problems of the others go to `problems`."""
        try:
            document = parse_toml(name, text, partial(_allowed_at, model))
        except ConfigError as error:
            problems.extend(error.problems)
            return cls(Document(name, {}, ""), model())
        values = document.values
        try:
            return cls(document, model.model_validate(values))
        except ValidationError as error:
            details = error.errors(include_url=False)
        problems.extend(_problem(document, model, detail) for detail in details)
        wrong = {detail["loc"][: 2 if detail["loc"][0] in {*_NAMED, "policy"} else 1] for detail in details}
        return cls(document, model.model_validate(_without(values, wrong)))

    def assignments(self) -> Iterable[Assignment]:
        """Yield the [[policy]] entries of a file without problems: their numbers are the file's."""
        for number, entry in enumerate(self.tables.policy, 1):
            match = Match(entry.match.server, entry.match.export, entry.match.mount_point)
            origin = f"policy {number} of {self.document.file}"
            place = self.document.place(("policy", number - 1))
            yield Assignment(match, entry.profile, origin, entry.workload, entry.adapt, place)

    @property
    def mode_place(self) -> str:
        """`file:line` of the service's mode; "" where the file sets none."""
        is_set = "mode" in self.tables.daemon.model_fields_set
        return self.document.place(("daemon", "mode")) if is_set else ""

    def check_names(self, profiles: list[str], workloads: list[str], problems: list[str]) -> None:
        """Add a problem for each [[policy]] entry that names no known profile or workload."""
        entries = self.document.values.get("policy")
        for number, entry in enumerate(entries if isinstance(entries, list) else ()):
            if not isinstance(entry, dict):
                continue
            names = {key: entry[key] for key in ("profile", "workload") if isinstance(entry.get(key), str)}
            if not names and "adapt" not in entry:
                path = ("policy", number, "profile")
                allowed = f"{_allowed(PolicyTable, 'profile')}, or the key workload or adapt"
                problems.append(self.document.problem(path, "", f"missing; {allowed}"))
            for key, known in (("profile", profiles), ("workload", workloads)):
                if (name := names.get(key)) is not None and name not in known:
                    allowed = f"unknown {key}; {suggestion(name, known)}allowed: {', '.join(known)}"
                    problems.append(self.document.problem(("policy", number, key), name, allowed))


def _without(values: Mapping[str, Any], wrong: set[tuple[str | int, ...]]) -> dict[str, Any]:
    """Return a file's values without the wrong tables."""
    valid: dict[str, Any] = {}
    for key, value in values.items():
        if (key,) in wrong:
            continue
        if key in _NAMED:
            valid[key] = {name: table for name, table in value.items() if (key, name) not in wrong}
        elif key == "policy":
            valid[key] = [entry for number, entry in enumerate(value) if (key, number) not in wrong]
        else:
            valid[key] = value
    return valid


def _problem(document: Document, model: type[BaseModel], detail: Mapping[str, Any]) -> str:
    """Return the line for an error of pydantic, with the allowed values."""
    path, value = tuple(detail["loc"]), detail["input"]
    if path[-1] == "[key]" and path[0] in _NAMED:
        allowed = f"allowed in a {path[0]}'s name: letters, digits, _ and -"
        return document.problem(path[:-1], value, allowed)
    path = path[:-1] if path[-1] == "[key]" else path
    names, model = _table_of(model, path)
    if detail["type"] == "extra_forbidden":
        known = sorted(model.model_fields)
        unknown = f"unknown key; {suggestion(names[-1], known)}allowed: {', '.join(known)}"
        allowed = _REMOVED_KEYS.get(path, unknown)
    elif len(names) == 1:
        allowed = f"allowed: {_TABLE_FORMS.get(names[0], 'a table') if len(path) == 1 else 'a table'}"
    elif detail["type"] == "missing":
        value, allowed = "", f"missing; {_allowed(model, names[-1])}"
    else:
        error = detail["ctx"]["error"] if detail["type"] == "value_error" else ""
        allowed = str(error) or _allowed(model, names[-1])
    return document.problem(path, value, allowed)


def _table_of(model: type[BaseModel], path: Path) -> tuple[list[str], type[BaseModel]]:
    """Return the names of a path without those of profiles and entries, and the table of the last name.

    A key in a value that is no table of ours, such as severity.NFS307, has no name of its own. Raises
    KeyError where the tables have no such key.
    """
    fields = path[:1] + path[2:] if path[0] in _NAMED else path
    names = [part for part in fields if isinstance(part, str)]
    for place, name in enumerate(names[:-1], 1):
        annotation = model.model_fields[name].annotation
        inner = (get_args(annotation) or (annotation,))[-1]
        if not hasattr(inner, "model_fields"):
            return names[:place], model
        model = inner
    return names, model


def _allowed_at(model: type[BaseModel], path: Path) -> str:
    """Return the allowed values of the key at a path in words; "" where no key or a table is there."""
    try:
        names, model = _table_of(model, path)
        return _allowed(model, names[-1]) if model.model_fields[names[-1]].description else ""
    except (KeyError, AttributeError):
        return ""


def _allowed(model: type[BaseModel], key: str) -> str:
    return f"allowed: {model.model_fields[key].description}"


def _workloads(builtin: Sequence[_File], own: Sequence[_File]) -> dict[str, Workload]:
    """Return the workloads by name. A later table replaces the keys that it sets, and keeps the others.

    A new read-ahead drops the sources of the old one.
    """
    known: dict[str, Workload] = {}
    for file in (*builtin, *own):
        for name, table in file.tables.workload.items():
            values = _set_keys(table)
            before = known.get(name, Workload(name))
            if "read_ahead_kb" in values:
                place = file.document.place(("workload", name, "read_ahead_kb")) if file in own else ""
                before = replace(before, sources=(), own=file in own, place=place)
            known[name] = replace(before, **values)
    return known


def _profile_keys(files: Iterable[_File]) -> dict[str, Keys]:
    """Return the keys of each profile; where several files set a key, the last file counts.

    A wrong table only gives its parent: entries for its profile are then not reported as well.
    """
    profiles: dict[str, Keys] = {}
    for file in files:
        tables = file.document.values.get("profile")
        for name, values in tables.items() if isinstance(tables, dict) else ():
            if (table := file.tables.profile.get(name)) is not None:
                keys = _set_keys(table)
            else:
                parent = values.get("inherits") if isinstance(values, dict) else None
                keys = {"inherits": parent} if isinstance(parent, str) else {}
            own = profiles.setdefault(name, {})
            own.update({key: (value, file.document) for key, value in keys.items()})
    return profiles


def _setters(files: Iterable[_File]) -> dict[str, tuple[Setter, ...]]:
    """Return the lines of administrators' files that set a number, by the profile, in their order."""
    setters: dict[str, tuple[Setter, ...]] = {}
    for file in files:
        for name, table in file.tables.profile.items():
            values = _set_keys(table)
            setters[name] = setters.get(name, ()) + tuple(
                Setter(key, values[key], file.document.place(("profile", name, key)))
                for key in _NUMBERS
                if key in values
            )
    return setters


class _Inheritance:
    """The profiles of a configuration, completed by inheritance.

    An administrator's table with the name of a built-in profile changes this profile: it keeps the keys that
    the table does not set, unless the table inherits from another profile. A built-in profile inherits the
    administrator's changes of its parent.
    """

    def __init__(
        self,
        builtin: dict[str, Keys],
        own: dict[str, Keys],
        setters: Mapping[str, tuple[Setter, ...]],
        problems: list[str],
    ) -> None:
        self.names = list(dict.fromkeys([*builtin, *own]))
        """Every profile's name, the built-in ones first."""
        self._builtin = builtin
        self._own = own
        self._setters = setters
        self._problems = problems
        self._resolved: dict[str, Profile] = {}

    def profiles(self) -> tuple[Profile, ...]:
        """Return every profile, complete."""
        return tuple(self._resolve(name, ()) for name in self.names)

    def _resolve(self, name: str, trail: tuple[str, ...]) -> Profile:
        if name not in self._resolved:
            base = self._parent(name, trail)
            own = self._own[name] if name in self._own else self._builtin[name]
            self._resolved[name] = self._inherit(name, own, base)
        return self._resolved[name]

    def _parent(self, name: str, trail: tuple[str, ...]) -> Profile:
        """Return the parent, an empty profile where no parent is valid; `trail` are the heirs so far."""
        if name not in self._own:
            return self._builtin_parent(name, trail)
        parent, document = self._own[name].get("inherits", (name, None))
        if parent == name and name in self._builtin:
            return self._inherit(name, self._builtin[name], self._builtin_parent(name, trail))
        if document is None:
            return Profile(name)
        trail = (*trail, name)
        if parent not in self.names:
            allowed = f"unknown profile; {suggestion(parent, self.names)}allowed: {', '.join(self.names)}"
        elif parent in trail:
            cycle = " -> ".join((*trail[trail.index(parent) :], parent))
            allowed = f"a cycle ({cycle}); allowed: a profile outside it"
        else:
            return self._resolve(parent, trail)
        self._problems.append(document.problem(("profile", name, "inherits"), parent, allowed))
        return Profile(name)

    def _builtin_parent(self, name: str, trail: tuple[str, ...]) -> Profile:
        parent, _ = self._builtin[name].get("inherits", (None, None))
        return Profile(name) if parent is None else self._resolve(parent, (*trail, name))

    def _inherit(self, name: str, own: Keys, base: Profile) -> Profile:
        values = {key: value for key, (value, _) in own.items() if key != "inherits"}
        dropped = {_EXCLUSIVE[key]: None for key in _EXCLUSIVE if key in values}
        values = dropped | values
        read_ahead = values.pop("read_ahead_kb", None)
        # The sources of the base are not the sources of the keys that this profile changes.
        changed = (own.keys() | dropped.keys()) - {"sources"}
        inherited = (
            replace(source, keys=tuple(key for key in source.keys if key not in changed))
            for source in base.sources
        )
        sources = (*(source for source in inherited if source.keys), *values.pop("sources", ()))
        builtin = name in self._builtin
        inherits = base.base if base.base in self._builtin and not builtin else ""
        profile = replace(base, name=name, inherits=inherits, builtin=builtin, sources=sources, **values)
        is_own = own is self._own.get(name)
        if is_own:
            setters = (*base.setters, *self._setters.get(name, ()))
        else:
            setters = tuple(setter for setter in base.setters if setter.key not in changed)
        profile = replace(profile, setters=setters)
        if isinstance(read_ahead, int):
            profile = replace(profile, read_ahead=ReadAhead(kb=read_ahead, own=is_own))
        elif read_ahead is not None:
            times = int(read_ahead.partition("*")[0])
            profile = replace(profile, read_ahead=ReadAhead(times_rsize=times, own=is_own))
        self._check_limits(own, profile)
        return profile

    def _check_limits(self, own: Keys, profile: Profile) -> None:
        """Compare the keys that this profile sets with their limits; the parent has compared its own keys."""
        if (
            profile.nconnect is not None
            and profile.nconnect_depends is not None
            and "nconnect_depends" in own
        ):
            allowed = f"nconnect = {profile.nconnect} is set, too; allowed: one of the two"
            self._add_problem(profile.name, "nconnect_depends", own, allowed)
        kb = profile.read_ahead.kb if profile.read_ahead else None
        for (key, limit), value in zip(_LIMITS, (kb, profile.nconnect), strict=True):
            most = getattr(profile, limit)
            setter = next((name for name in (key, limit) if name in own), None)
            if setter is None or value is None or most is None or value <= most:
                continue
            allowed = f"{key} = {value} is above {limit} = {most}; allowed: at most that, or a larger {limit}"
            self._add_problem(profile.name, setter, own, allowed)

    def _add_problem(self, name: str, key: str, own: Keys, allowed: str) -> None:
        value, document = own[key]
        self._problems.append(document.problem(("profile", name, key), value, allowed))
