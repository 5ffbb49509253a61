"""`/etc/nfstuned/nfstuned.toml` and its drop-ins to a Policy (nfstuned.toml(5)).

A later file counts more than an earlier one, the main file least: its scalar keys replace theirs, its
[[policy]] entries are asked before theirs. Within a file the first [[policy]] entry that matches wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from nfstuned.errors import ConfigError
from nfstuned.model.policy import (
    SAMPLE_INTERVAL_S,
    Assignment,
    Match,
    Policy,
    Prometheus,
    Provider,
    Source,
    Workload,
)
from nfstuned.parse.config.profiles import Inheritance, Layer
from nfstuned.parse.config.tables import (
    PROFILE_NAME,
    ConfigFile,
    DaemonTable,
    MatchTable,
    NconnectTable,
    PolicyTable,
    ProfileTable,
    PrometheusTable,
    ProviderTable,
    SamplesTable,
    SourceTable,
    WorkloadTable,
)
from nfstuned.parse.config.toml import Document, Path, parse_toml, suggestion

Tables = list[tuple[Document, Mapping[str, Any]]]
"""Each file's table with the file, in the order in which they count."""

_SERVED = (
    "the service itself listens nowhere any more: take the line out, and let nfstuned-exporter.service serve "
    "the metrics (systemctl enable --now nfstuned-exporter, see METRICS in nfstuned(8))"
)
_REMOVED: Mapping[Path, str] = {("prometheus", "listen"): _SERVED, ("prometheus", "allow_remote"): _SERVED}
"""Keys that were there once, and the remedy of each."""
_NO_SAMPLES = (
    'metrics are counted when a sample is taken, and daemon.sample_interval is "0"; allowed: "1s" to "24h"'
)


def prometheus(tables: Tables) -> Prometheus:
    """Return the tables of all files joined: the keys of a later table replace those of an earlier table."""
    return Prometheus(**{key: value for _, table in tables for key, value in table.items()})


def mistakes(tables: Tables, interval_s: float) -> Iterator[str]:
    """Yield what only the tables together get wrong, with the file and the line that set the key last."""
    metrics = prometheus(tables)
    if metrics.textfile and not interval_s:
        document, table = next((d, table) for d, table in reversed(tables) if "textfile" in table)
        yield document.problem(("prometheus", "textfile"), table["textfile"], _NO_SAMPLES)


Text = tuple[str, str]
"""A file's name and what is in it."""

_SETTINGS = {
    ("daemon", "sample_interval"): "sample_interval_s",
    ("daemon", "restore_on_stop"): "restore_on_stop",
    ("samples", "file"): "sample_file",
    ("samples", "max_size"): "sample_file_bytes",
    ("samples", "keep"): "sample_files_kept",
    ("nconnect", "mode"): "nconnect_mode",
}
_TABLES: Mapping[str, type[BaseModel]] = {
    "daemon": DaemonTable,
    "samples": SamplesTable,
    "nconnect": NconnectTable,
}
_NESTED: Mapping[tuple[type[BaseModel], str], type[BaseModel]] = {
    (PolicyTable, "match"): MatchTable,
    (ProfileTable, "sources"): SourceTable,
    (WorkloadTable, "sources"): SourceTable,
}


def parse_config(builtin: Iterable[Text], files: Iterable[Text]) -> Policy:
    """Return the policy of the built-in profiles and the administrator's files, the later counting more.

    Raises ConfigError with every problem of every file, a line for each.
    """
    problems: list[str] = []
    base = [_File.read(name, text, problems, own=True) for name, text in builtin]
    own = [_File.read(name, text, problems) for name, text in files]
    known = Inheritance(
        [layer for file in base for layer in file.layers], [layer for file in own for layer in file.layers]
    )
    profiles = known.profiles()
    workloads = _workloads([*base, *own])
    entries = [entry for file in reversed(own) for entry in file.entries]
    for entry in entries:
        entry.check(known.names, list(workloads), known.problems)
    problems.extend(known.problems)
    settings = {key: value for file in own for key, value in file.settings.items()}
    metrics = [file.metrics for file in own if file.metrics is not None]
    problems.extend(mistakes(metrics, settings.get("sample_interval_s", SAMPLE_INTERVAL_S)))
    if problems:
        raise ConfigError(tuple(problems))
    assignments = tuple(entry.assignment for entry in entries if entry.assignment is not None)
    names = tuple(file.name for file in own)
    return Policy(
        profiles,
        assignments,
        prometheus=prometheus(metrics),
        files=names,
        workloads=tuple(workloads.values()),
        providers=tuple(provider for file in base for provider in file.providers),
        **settings,
    )


def _workloads(files: Iterable[_File]) -> dict[str, Workload]:
    """Return the workloads by name: a later table changes the keys that it sets, an earlier one keeps others.

    The sources of numbers that it changes go.
    """
    known: dict[str, Workload] = {}
    for file in files:
        for name, values in file.workloads.items():
            before = known.get(name, Workload(name))
            sources = before.sources if "read_ahead_kb" not in values else ()
            known[name] = replace(before, **{"sources": sources, **values})
    return known


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of [[policy]]; no assignment where something in it is wrong."""

    document: Document
    number: int
    names: Mapping[str, str]
    """Its profile and its workload, where it names them."""
    assignment: Assignment | None

    def check(self, profiles: list[str], workloads: list[str], problems: list[str]) -> None:
        if not self.names:
            problems.append(self._problem("profile", "", "missing; allowed: the name of a profile"))
        for key, known in (("profile", profiles), ("workload", workloads)):
            name = self.names.get(key)
            if name is not None and name not in known:
                allowed = f"unknown {key}; {suggestion(name, known)}allowed: {', '.join(known)}"
                problems.append(self._problem(key, name, allowed))

    def _problem(self, key: str, value: str, allowed: str) -> str:
        return self.document.problem(("policy", self.number, key), value, allowed)


@dataclass(slots=True, eq=False)
class _File:
    """The right tables of a file; `settings` have the names that Policy gives them."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    metrics: tuple[Document, Mapping[str, Any]] | None = None
    entries: list[_Entry] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)
    workloads: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The keys that the file's tables set, by the workload's name."""
    providers: list[Provider] = field(default_factory=list)

    @classmethod
    def read(cls, name: str, text: str, problems: list[str], *, own: bool = False) -> _File:
        """Return the right tables of a file; the problems of the others go to `problems`.

        `own` files are nfstuned's: they alone have [provider.NAME] tables.
        """
        file = cls(name)
        try:
            document = parse_toml(name, text)
        except ConfigError as error:
            problems.extend(error.problems)
            return file
        for key, value in document.values.items():
            if key not in ConfigFile.model_fields and not (own and key == "provider"):
                problems.append(document.problem((key,), value, _unknown(key, ConfigFile)))
        check = _Checker(document, problems)
        for table, model in _TABLES.items():
            for key, value in (check.table((table,), model, document.values.get(table, {})) or {}).items():
                file.settings[_SETTINGS[table, key]] = value
        metrics = check.table(("prometheus",), PrometheusTable, document.values.get("prometheus", {}))
        file.metrics = (document, metrics or {})
        file.entries = check.entries()
        file.layers = check.layers()
        file.workloads = check.workloads()
        if own:
            file.providers = check.providers()
        return file


@dataclass(frozen=True, slots=True)
class _Checker:
    """Checks the tables of a file, each by itself, so that no problem hides another."""

    document: Document
    problems: list[str]

    def table(self, path: Path, model: type[BaseModel], value: object) -> dict[str, Any] | None:
        """Return the keys that a table sets; None, with a problem each, when keys are wrong."""
        try:
            table = model.model_validate(value)
        except ValidationError as error:
            self.problems.extend(
                self._problem(path, model, detail) for detail in error.errors(include_url=False)
            )
            return None
        return {key: getattr(table, key) for key in table.model_fields_set}

    def _problem(self, path: Path, model: type[BaseModel], detail: Mapping[str, Any]) -> str:
        """Return the problem that pydantic saw in a table, with what is allowed instead."""
        names = [part for part in detail["loc"] if isinstance(part, str)]
        value = detail["input"]
        for name in names[:-1]:
            model = _NESTED[model, name]
        if not names:
            allowed = "allowed: a table"
        elif detail["type"] == "extra_forbidden":
            allowed = _REMOVED.get((*path, names[-1])) or _unknown(names[-1], model)
        else:
            allowed = f"allowed: {model.model_fields[names[-1]].description}"
            if detail["type"] == "missing":
                value, allowed = "", f"missing; {allowed}"
            elif detail["type"] == "value_error":
                allowed = str(detail["ctx"]["error"]) or allowed
        return self.document.problem((*path, *detail["loc"]), value, allowed)

    def entries(self) -> list[_Entry]:
        values = self.document.values.get("policy", [])
        if not isinstance(values, list):
            self.problems.append(self.document.problem(("policy",), values, "allowed: [[policy]] entries"))
            return []
        entries: list[_Entry] = []
        for number, value in enumerate(values):
            entry = self.table(("policy", number), PolicyTable, value)
            if isinstance(value, dict):
                keys = ("profile", "workload")
                names = {key: value[key] for key in keys if isinstance(value.get(key), str)}
                assignment = None if entry is None else self._assignment(number, entry)
                entries.append(_Entry(self.document, number, names, assignment))
        return entries

    def _assignment(self, number: int, entry: dict[str, Any]) -> Assignment:
        table: MatchTable = entry["match"]
        match = Match(table.server, table.export, table.mount_point)
        origin = f"policy {number + 1} of {self.document.file}"
        return Assignment(match, entry.get("profile", ""), origin, entry.get("workload", ""))

    def layers(self) -> list[Layer]:
        return [self._layer(name, value) for name, value in self._named("profile")]

    def workloads(self) -> dict[str, dict[str, Any]]:
        found = {}
        for name, value in self._named("workload"):
            values = self.table(("workload", name), WorkloadTable, value)
            if values is not None:
                found[name] = _with_sources(values)
        return found

    def providers(self) -> list[Provider]:
        tables = (
            (name, self.table(("provider", name), ProviderTable, value))
            for name, value in self._named("provider")
        )
        return [Provider(name, **values) for name, values in tables if values is not None]

    def _named(self, kind: str) -> Iterator[tuple[str, object]]:
        """Yield the tables of a kind with their names."""
        values = self.document.values.get(kind, {})
        if not isinstance(values, dict):
            self.problems.append(self.document.problem((kind,), values, f"allowed: [{kind}.NAME] tables"))
            return
        for name, value in values.items():
            if not re.fullmatch(PROFILE_NAME, name):
                allowed = f"allowed in a {kind}'s name: letters, digits, _ and -"
                self.problems.append(self.document.problem((kind, name), name, allowed))
            yield name, value

    def _layer(self, name: str, value: object) -> Layer:
        values = self.table(("profile", name), ProfileTable, value)
        if values is None:
            parent = value.get("inherits") if isinstance(value, dict) else None
            values = {"inherits": parent} if isinstance(parent, str) else {}
        return Layer(self.document, name, _with_sources(values))


def _with_sources(values: dict[str, Any]) -> dict[str, Any]:
    """Return a table's keys with its sources as the policy has them."""
    if "sources" not in values:
        return values
    return {**values, "sources": tuple(Source(s.url, s.read, s.keys, s.title) for s in values["sources"])}


def _unknown(key: str, model: type[BaseModel]) -> str:
    names = sorted(model.model_fields)
    return f"unknown key; {suggestion(key, names)}allowed: {', '.join(names)}"
