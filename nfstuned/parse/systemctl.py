"""What `systemctl show` prints of mount units: blocks of NAME=value, with an empty line between them."""

from __future__ import annotations

from collections.abc import Mapping

from nfstuned.model.remount import UnitState

PROPERTIES = ("Id", "LoadState", "FragmentPath", "NeedDaemonReload", "LazyUnmount", "ForceUnmount", "BoundBy")


def parse_units(text: str) -> Mapping[str, UnitState]:
    """Return what is said of each unit, by its name; of what an older systemd does not say, nothing holds."""
    found: dict[str, UnitState] = {}
    for block in text.split("\n\n"):
        values = dict(line.partition("=")[::2] for line in block.split("\n") if "=" in line)
        if name := values.get("Id"):
            found[name] = UnitState(
                loaded=values.get("LoadState") == "loaded",
                fragment=values.get("FragmentPath", ""),
                stale=values.get("NeedDaemonReload") == "yes",
                lazy=values.get("LazyUnmount") == "yes",
                force=values.get("ForceUnmount") == "yes",
                bound_by=tuple(values.get("BoundBy", "").split()),
            )
    return found
