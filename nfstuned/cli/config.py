"""`nfstuned config show|check|schema`."""

from __future__ import annotations

import sys

from nfstuned.cli.policy import usable_policy
from nfstuned.host.root import Root
from nfstuned.view.policy import policy_document, policy_text
from nfstuned.view.words import to_json

VALID, INVALID = 0, 2


def show(root: Root, form: str) -> int:
    """Print the policy in effect."""
    policy = usable_policy(root)
    if policy is None:
        return INVALID
    sys.stdout.write(to_json(policy_document(policy)) + "\n" if form == "json" else policy_text(policy))
    return VALID


def check(root: Root) -> int:
    """Say whether the configuration is valid: yes on stdout, its problems on stderr."""
    policy = usable_policy(root)
    if policy is None:
        return INVALID
    sys.stdout.write(f"valid: {', '.join(policy.files) or 'no configuration file, built-in profiles only'}\n")
    return VALID


def print_schema() -> int:
    """Print the JSON Schema of a configuration file."""
    from nfstuned.parse.config.tables import schema  # noqa: PLC0415 - pydantic is slow to load

    sys.stdout.write(to_json(schema()) + "\n")
    return VALID
