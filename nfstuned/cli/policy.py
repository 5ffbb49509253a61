"""The policy for a command, or its problems for people."""

from __future__ import annotations

from nfstuned.app.policy import configuration
from nfstuned.cli.talk import note
from nfstuned.errors import ConfigError
from nfstuned.host.root import Root
from nfstuned.model.policy import Policy


def usable_policy(root: Root) -> Policy | None:
    """Return the policy in effect; None when it is invalid, its problems named on stderr, one a line."""
    try:
        return configuration(root)
    except ConfigError as error:
        for problem in error.problems:
            note(problem)
        return None
