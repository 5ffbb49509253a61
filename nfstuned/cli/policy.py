"""The policy for a command, or its problems for people."""

from __future__ import annotations

from nfstuned.cli.talk import note
from nfstuned.errors import ConfigError
from nfstuned.host.config import builtin_policy, find_files
from nfstuned.host.root import Root
from nfstuned.model.policy import Policy


def usable_policy(root: Root) -> Policy | None:
    """Return the policy in effect; None when it is invalid, its problems named on stderr, one a line."""
    try:
        return _load(root)
    except ConfigError as error:
        for problem in error.problems:
            note(problem)
        return None


def image_policy(root: Root) -> Policy:
    """Return an image's policy; the built-in one when its files are invalid, which a rule tells."""
    try:
        return _load(root)
    except ConfigError:
        return builtin_policy()


def _load(root: Root) -> Policy:
    if not find_files(root):
        return builtin_policy()
    from nfstuned.host.config_load import load  # noqa: PLC0415 - pydantic is slow to load

    return load(root)
