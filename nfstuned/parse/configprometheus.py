"""What the tables about metrics come to, and what only all files together can get wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nfstuned.model.policy import Prometheus
from nfstuned.parse.configvalues import is_local
from nfstuned.parse.tomltext import Document

Tables = list[tuple[Document, Mapping[str, Any]]]
"""Each file's table with the file, in the order in which they count."""

_REMOTE = (
    "other machines would reach it, and it asks nobody for a password; "
    "allowed: an address of 127.0.0.0/8, [::1], unix:/PATH, or allow_remote = true beside it"
)
_NO_SAMPLES = (
    'metrics are counted when a sample is taken, and daemon.sample_interval is "0"; allowed: "1s" to "24h"'
)


def prometheus(tables: Tables) -> Prometheus:
    """Return the tables of all files as one: the keys of a later one replace those of an earlier one."""
    return Prometheus(**{key: value for _, table in tables for key, value in table.items()})


def mistakes(tables: Tables, interval_s: float) -> Iterator[str]:
    """Yield what no table gets wrong by itself, with the file and the line of the last that has the key."""
    meant = prometheus(tables)
    if meant.listen and not meant.allow_remote and not is_local(meant.listen):
        yield _problem(tables, "listen", _REMOTE)
    if meant.wanted and not interval_s:
        yield _problem(tables, "listen" if meant.listen else "textfile", _NO_SAMPLES)


def _problem(tables: Tables, key: str, allowed: str) -> str:
    document, table = next(item for item in reversed(tables) if key in item[1])
    return document.problem(("prometheus", key), table[key], allowed)
