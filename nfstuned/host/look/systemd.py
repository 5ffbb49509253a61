"""Units as the running systemd knows them, asked with systemctl(1) and journalctl(1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nfstuned.host.command import run
from nfstuned.model.requests import UnitState
from nfstuned.parse.etc.units import PROPERTIES, parse_units

SYSTEMCTL_S = 30.0
_JOURNAL_S = 5.0
_OF_SERVERS = "--grep=^nfs: server .+ (not responding|OK)"
_MOST_SAID = 200
"""In characters, of what a failed unit said last."""


def observe_states(names: Sequence[str]) -> dict[str, UnitState]:
    """Return the state of units; none where there is no systemd to ask."""
    asked = run(["systemctl", "show", f"--property={','.join(PROPERTIES)}", "--", *names], SYSTEMCTL_S)
    return dict(parse_units(asked.output))


def with_last_words(states: Mapping[str, UnitState]) -> dict[str, UnitState]:
    """Return the states with what the programs of failed units said last, where the journal is to be read."""
    return {
        name: replace(state, said=_last_words(name)) if state.active == "failed" else state
        for name, state in states.items()
    }


def kernel_words() -> str:
    """Return the last line of the kernel's log that says whether a server answers; "" without such a line.

    "nfs: server nas not responding, still trying", and "nfs: server nas OK" (net/sunrpc/clnt.c).
    """
    argv = ["journalctl", "--dmesg", "--quiet", "--no-pager", "--output=cat", "--lines=1", _OF_SERVERS]
    return run(argv, _JOURNAL_S).output.strip().rpartition("\n")[2][:_MOST_SAID]


def _last_words(name: str) -> str:
    argv = ["journalctl", "--quiet", "--no-pager", "--output=cat", "--lines=1", f"_SYSTEMD_UNIT={name}"]
    said = run(argv, _JOURNAL_S).output.strip().rpartition("\n")[2]
    return said[:_MOST_SAID]
