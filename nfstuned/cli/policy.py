"""The policy for a command, or its problems for people."""

from __future__ import annotations

from nfstuned.cli.notes import note
from nfstuned.errors import ConfigError
from nfstuned.host.root import Root
from nfstuned.model.policy import Policy


def usable_policy(root: Root) -> Policy | None:
    """Return the policy in effect; None when it is invalid, its problems named on stderr, one a line."""
    from nfstuned.host.configload import load  # noqa: PLC0415 - pydantic is slow to load

    try:
        return load(root)
    except ConfigError as error:
        for problem in error.problems:
            note(problem)
        return None
