"""The suites that come with nfstuned."""

from __future__ import annotations

import os

import nfstuned
from nfstuned.model.bench import Suite
from nfstuned.parse.config.suites import parse_suite

FOLDER = os.path.join(os.path.dirname(nfstuned.__file__), "data", "suites")
_ENDING = ".toml"


def names() -> tuple[str, ...]:
    """Return the names of the suites."""
    return tuple(sorted(name.removesuffix(_ENDING) for name in os.listdir(FOLDER) if name.endswith(_ENDING)))


def suite(name: str, *, full: bool) -> Suite:
    """Return a suite. Raises OSError for a name that is none."""
    with open(os.path.join(FOLDER, name + _ENDING), encoding="utf-8") as file:
        return parse_suite(file.read(), name, full=full)
