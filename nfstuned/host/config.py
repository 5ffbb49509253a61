"""The names of the configuration's files, and the policy of a host without any."""

from __future__ import annotations

import os

import nfstuned
from nfstuned.errors import ConfigError
from nfstuned.host.root import Root
from nfstuned.model.policy import Policy, policy_from_json

MAIN = "etc/nfstuned/nfstuned.toml"
DROP_INS = "etc/nfstuned/conf.d"
INVALID = 2
"""The exit status of a validation that found problems; its output then holds them, one a line."""


def find_files(root: Root) -> tuple[str, ...]:
    """Return the names of the administrator's files in their order: the main file, then the drop-ins by name.

    Raises ConfigError where a folder cannot be looked at.
    """
    try:
        main = (MAIN,) if root.demand_existence(MAIN) else ()
    except OSError as error:
        raise ConfigError((f"{root.path(MAIN)}: cannot be looked at: {error.strerror}",)) from None
    try:
        names = root.listing(DROP_INS)
    except FileNotFoundError:
        names = []
    except OSError as error:
        raise ConfigError((f"{root.path(DROP_INS)}: cannot be listed: {error.strerror}",)) from None
    # A leading dot is an editor's: `.#50-site.toml` is Emacs's lock, a link to nowhere.
    wanted = (name for name in names if name.endswith(".toml") and not name.startswith("."))
    return (*main, *(f"{DROP_INS}/{name}" for name in wanted))


_DATA = os.path.join(os.path.dirname(nfstuned.__file__), "data")
PROFILES, WORKLOADS = os.path.join(_DATA, "profiles"), os.path.join(_DATA, "workloads")
FILE = os.path.join(_DATA, "builtin.json")
"""Made of data/profiles; tests/host/test_builtin.py holds both together."""


def builtin_policy() -> Policy:
    """Return the built-in profiles as a policy."""
    with open(FILE, encoding="utf-8") as file:
        return policy_from_json(file.read())
