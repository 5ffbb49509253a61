"""A policy as people read it, in the form of its own file, and as programs do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from nfstuned.model.policy import (
    ADAPT_DOWN,
    ADAPT_OFF,
    SIZE_UNITS,
    Assignment,
    Policy,
    Profile,
    Source,
    Workload,
)
from nfstuned.view.words import Document, without_secrets

_PLAIN_KEYS = (
    *("nconnect", "nconnect_max", "nconnect_depends", "nconnect_not_for"),
    *("rsize_max", "actimeo_min", "max_channels"),
)
_MATCH_KEYS = ("server", "export", "mount_point")


def policy_document(policy: Policy) -> Document:
    """Return `nfstuned.config/1`: the tables of nfstuned.toml, with the files that they come from."""
    return {
        "schema": "nfstuned.config/1",
        "files": list(policy.files),
        **_daemon_tables(policy),
        "policy": [{**_assignment_values(entry), "origin": entry.origin} for entry in policy.assignments],
        "profile": {
            profile.name: {**_profile_values(profile), "sources": _sources(profile.sources)}
            for profile in policy.profiles
        },
        "workload": {
            workload.name: {**_workload_values(workload), "sources": _sources(workload.sources)}
            for workload in policy.workloads
        },
    }


def _sources(sources: Iterable[Source]) -> list[Document]:
    return [
        {"keys": list(source.keys), "title": source.title, "url": source.url, "read": source.read}
        for source in sources
    ]


def policy_text(policy: Policy) -> str:
    """Return the policy as TOML that nfstuned.toml would take, sources as comments.

    Each profile has all of its values. Its parent is named because rules about a vendor also apply to
    profiles that inherit from the vendor's.
    """
    lines = [
        f"# {', '.join(policy.files) or 'no configuration file, built-in profiles only'}",
        "# A read_ahead_kb in your file is your own number, which reads do not move; remove the others.",
    ]
    for name, table in _daemon_tables(policy).items():
        lines += ["", f"[{name}]", *(f"{key} = {to_toml(value)}" for key, value in table.items())]
    for entry in policy.assignments:
        lines += ["", f"# {entry.origin}", "[[policy]]"]
        lines += [f"{key} = {to_toml(value)}" for key, value in _assignment_values(entry).items()]
    for profile in policy.profiles:
        lines += ["", f"[profile.{profile.name}]", *_table_lines(_profile_values(profile), profile.sources)]
    for workload in policy.workloads:
        values = _workload_values(workload)
        lines += ["", f"[workload.{workload.name}]", *_table_lines(values, workload.sources)]
    return "\n".join(lines) + "\n"


def _table_lines(values: Mapping[str, object], sources: Sequence[Source]) -> Iterator[str]:
    """Yield a table's keys, each with the numbers of its sources, and then the sources."""
    for key, value in values.items():
        references = "".join(f" [{number}]" for number, source in enumerate(sources, 1) if key in source.keys)
        line = f"{key} = {to_toml(value)}"
        yield f"{line:<28} #{references}" if references else line
    for number, source in enumerate(sources, 1):
        yield f"# [{number}] {source.title or 'source'}, read {source.read}"
        yield f"#     {source.url}"


def _daemon_tables(policy: Policy) -> dict[str, dict[str, object]]:
    interval = f"{policy.sample_interval_s:g}s" if policy.sample_interval_s else "0"
    metrics, size = policy.prometheus, policy.sample_file_bytes
    units = (f"{size // factor}{unit}" for unit, factor in SIZE_UNITS.items() if size and size % factor == 0)
    return {
        "daemon": {
            "sample_interval": interval,
            "restore_on_stop": policy.restore_on_stop,
            "mode": policy.mode,
        },
        "samples": {
            "file": policy.sample_file,
            "max_size": next(units, str(size)),
            "keep": policy.sample_files_kept,
        },
        "nconnect": {"mode": policy.nconnect_mode},
        **({"prometheus": asdict(metrics)} if metrics.textfile else {}),
    }


def _assignment_values(entry: Assignment) -> dict[str, object]:
    match = {key: list(patterns) for key in _MATCH_KEYS if (patterns := getattr(entry.match, key))}
    names = {"profile": entry.profile, "workload": entry.workload, "adapt": entry.adapt}
    return {"match": match, **{key: name for key, name in names.items() if name}}


def _profile_values(profile: Profile) -> dict[str, object]:
    wanted = profile.read_ahead
    read_ahead = None
    if wanted is not None:
        read_ahead = wanted.kb if wanted.kb is not None else f"{wanted.times_rsize}*rsize"
    values: dict[str, object] = {
        "inherits": profile.inherits or None,
        "read_ahead_kb": read_ahead,
        "read_ahead_max_kb": profile.read_ahead_max_kb,
        # Its parent may have the opposite.
        "lower": profile.lower if profile.lower or profile.inherits else None,
        "adapt": None if profile.moves == ADAPT_DOWN and not profile.inherits else profile.moves,
        **{key: getattr(profile, key) for key in _PLAIN_KEYS},
    }
    return {key: value for key, value in values.items() if value is not None and value != ()}


def _workload_values(workload: Workload) -> dict[str, object]:
    values = {
        "about": workload.about,
        "read_ahead_kb": workload.read_ahead_kb,
        "adapt": ADAPT_OFF if workload.own else workload.adapt,
    }
    return {key: value for key, value in values.items() if value}


def to_toml(value: object) -> str:
    """Return a value as TOML writes it, without secrets: JSON's escapes, and one that only TOML needs."""
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{key} = {to_toml(item)}" for key, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    return json.dumps(without_secrets(value), ensure_ascii=False).replace("\x7f", "\\u007f")
