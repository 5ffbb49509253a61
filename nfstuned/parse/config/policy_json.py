"""A policy as JSON: how the child that validates the configuration hands it to the daemon."""

from __future__ import annotations

import json
from typing import Any

from nfstuned.model.policy import (
    Assignment,
    Match,
    Policy,
    Profile,
    Prometheus,
    Provider,
    ReadAhead,
    Source,
    Workload,
)


def policy_to_json(policy: Policy) -> str:
    """Return the policy as a JSON object; its keys are the fields' names."""
    from dataclasses import asdict  # noqa: PLC0415 - the daemon, which reads it, does without

    return json.dumps(asdict(policy))


def policy_from_json(text: str) -> Policy:
    """Return the policy that `policy_to_json` wrote; raises ValueError for anything else."""
    try:
        values = json.loads(text)
        profiles = tuple(_profile(profile) for profile in values.pop("profiles"))
        assignments = tuple(
            Assignment(Match(**{key: tuple(globs) for key, globs in entry.pop("match").items()}), **entry)
            for entry in values.pop("assignments")
        )
        prometheus = Prometheus(**values.pop("prometheus"))
        files = tuple(values.pop("files"))
        workloads = tuple(
            Workload(**{**workload, "sources": _sources(workload)}) for workload in values.pop("workloads")
        )
        providers = tuple(map(_provider, values.pop("providers")))
        return Policy(
            profiles,
            assignments,
            files=files,
            prometheus=prometheus,
            workloads=workloads,
            providers=providers,
            **values,
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a policy: {error!r}") from None


def _provider(values: dict[str, Any]) -> Provider:
    lists = {key: tuple(values[key]) for key in ("servers", "client_options")}
    return Provider(**{**values, **lists})


def _profile(values: dict[str, Any]) -> Profile:
    read_ahead = values.pop("read_ahead")
    chosen = ReadAhead(**read_ahead) if read_ahead else None
    others = tuple(values["nconnect_not_for"])
    return Profile(
        **{**values, "read_ahead": chosen, "nconnect_not_for": others, "sources": _sources(values)}
    )


def _sources(values: dict[str, Any]) -> tuple[Source, ...]:
    return tuple(Source(**{**source, "keys": tuple(source["keys"])}) for source in values["sources"])
