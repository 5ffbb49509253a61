"""The policy of a host or an image: its own configuration, or the built-in profiles where it has none."""

from __future__ import annotations

from nfstuned.errors import ConfigError
from nfstuned.host.config import builtin_policy, find_files
from nfstuned.host.root import Root
from nfstuned.model.policy import Policy


def configuration(root: Root) -> Policy:
    """Return the policy of the files below `root`; raises ConfigError with every problem of every file."""
    if not find_files(root):
        return builtin_policy()
    from nfstuned.host.config_load import load  # noqa: PLC0415 - pydantic is slow to load

    return load(root)


def image_policy(root: Root) -> Policy:
    """Return an image's policy; the built-in profiles when its files are invalid, which a rule tells."""
    try:
        return configuration(root)
    except ConfigError:
        return builtin_policy()
