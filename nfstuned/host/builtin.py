"""The policy of a host without any configuration, validated beforehand: pydantic takes long to load."""

from __future__ import annotations

import os

from nfstuned.model.policy import Policy
from nfstuned.parse.policyjson import policy_from_json

_DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data")
PROFILES = os.path.join(_DATA, "profiles")
FILE = os.path.join(_DATA, "builtin.json")
"""Made of data/profiles; tests/host/test_builtin.py holds both together."""


def builtin_policy() -> Policy:
    """Return the built-in profiles as a policy."""
    with open(FILE, encoding="utf-8") as file:
        return policy_from_json(file.read())
