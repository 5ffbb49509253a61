"""A policy as people read it, in the form of its own file, and as programs do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from nfstuned.model.policy import Assignment, Policy, Profile, Source
from nfstuned.parse.config.values import SIZE_UNITS
from nfstuned.view.words import Document

_KEYS = ("nconnect", "nconnect_max", "rsize_max", "actimeo_min", "max_channels")
_MATCH = ("server", "export", "mount_point")


def policy_document(policy: Policy) -> Document:
    """Return `nfstuned.config/1`: the tables of nfstuned.toml, with the files that they come from."""
    return {
        "schema": "nfstuned.config/1",
        "files": list(policy.files),
        **_tables(policy),
        "policy": [{**_entry(entry), "origin": entry.origin} for entry in policy.assignments],
        "profile": {
            profile.name: {**_keys(profile), "sources": [_source(source) for source in profile.sources]}
            for profile in policy.profiles
        },
    }


def policy_text(policy: Policy) -> str:
    """Return the policy as TOML that nfstuned.toml would take, sources as comments.

    Inheritance is resolved, and still named: the rules of a vendor count for what inherits from its profile.
    """
    return "\n".join(_lines(policy)) + "\n"


def _lines(policy: Policy) -> Iterator[str]:
    yield f"# {', '.join(policy.files) or 'no configuration file, built-in profiles only'}"
    for name, table in _tables(policy).items():
        yield from ("", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items()))
    for entry in policy.assignments:
        yield from ("", f"# {entry.origin}", "[[policy]]")
        yield from (f"{key} = {_toml(value)}" for key, value in _entry(entry).items())
    for profile in policy.profiles:
        yield from ("", f"[profile.{profile.name}]", *_profile(profile))


def _profile(profile: Profile) -> Iterator[str]:
    """Yield a profile's keys, each with the numbers of its sources, and then the sources."""
    for key, value in _keys(profile).items():
        marks = "".join(f" [{number}]" for number, s in enumerate(profile.sources, 1) if key in s.keys)
        line = f"{key} = {_toml(value)}"
        yield f"{line:<28} #{marks}" if marks else line
    for number, source in enumerate(profile.sources, 1):
        yield f"# [{number}] {source.title or 'source'}, read {source.read}"
        yield f"#     {source.url}"


def _tables(policy: Policy) -> dict[str, dict[str, object]]:
    interval = f"{policy.sample_interval_s:g}s" if policy.sample_interval_s else "0"
    metrics = policy.prometheus
    return {
        "daemon": {"sample_interval": interval, "restore_on_stop": policy.restore_on_stop},
        "samples": {
            "file": policy.sample_file,
            "max_size": _size(policy.sample_file_bytes),
            "keep": policy.sample_files_kept,
        },
        "nconnect": {"mode": policy.nconnect_mode},
        **(
            {"prometheus": {key: value for key, value in asdict(metrics).items() if value}}
            if metrics.wanted
            else {}
        ),
    }


def _size(number: int) -> str:
    """Return a number of bytes as the configuration takes it."""
    for unit, factor in SIZE_UNITS.items():
        if number and number % factor == 0:
            return f"{number // factor}{unit}"
    return str(number)


def _entry(entry: Assignment) -> dict[str, object]:
    match = {key: list(patterns) for key in _MATCH if (patterns := getattr(entry.match, key))}
    return {"match": match, "profile": entry.profile}


def _keys(profile: Profile) -> dict[str, object]:
    wanted = profile.read_ahead
    read_ahead = None
    if wanted is not None:
        read_ahead = wanted.kb if wanted.kb is not None else f"{wanted.times_rsize}*rsize"
    values: dict[str, object] = {
        "inherits": profile.inherits or None,
        "read_ahead_kb": read_ahead,
        "read_ahead_max_kb": profile.read_ahead_max_kb,
        "lower": profile.lower or None,
        **{key: getattr(profile, key) for key in _KEYS},
    }
    return {key: value for key, value in values.items() if value is not None}


def _source(source: Source) -> dict[str, object]:
    return {"keys": list(source.keys), "title": source.title, "url": source.url, "read": source.read}


def _toml(value: object) -> str:
    """Return a value as TOML writes it; strings are escaped as in JSON, which TOML's basic strings allow."""
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{key} = {_toml(item)}" for key, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    return json.dumps(value, ensure_ascii=False)
