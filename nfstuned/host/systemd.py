"""Units as the running systemd knows them, asked with systemctl(1) and journalctl(1)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from nfstuned.host.command import run_tool
from nfstuned.model.mounts import UnitState
from nfstuned.parse.etc.services import PROPERTIES, parse_units

SYSTEMCTL_S = 30.0
_JOURNAL_S, _REASONS_S = 10.0, 20.0
_OF_SERVERS = "--grep=^nfs: server .+ (not responding|OK)"
_NO_REASON = "Refer to the "
"""The beginning of the last line of mount.cifs: after the error it names its manual page."""
_MOST_CHARACTERS = 200
"""The length to which a message is cut."""


def observe_states(names: Sequence[str]) -> dict[str, UnitState]:
    """Return the state of units; none where there is no systemd to ask."""
    asked = run_tool(["systemctl", "show", f"--property={','.join(PROPERTIES)}", "--", *names], SYSTEMCTL_S)
    return dict(parse_units(asked.output))


def with_failure_reasons(states: Mapping[str, UnitState]) -> dict[str, UnitState]:
    """Return the states with the last messages of failed units, where the journal can be read.

    All of them together may take _REASONS_S: units after that have no message.
    """
    end, failed = time.monotonic() + _REASONS_S, {}
    for name, state in states.items():
        if state.active == "failed" and (left := end - time.monotonic()) > 0:
            failed[name] = replace(
                state, failure=_last_message(name, state.invocation, min(left, _JOURNAL_S))
            )
    return {**states, **failed}


def kernel_message() -> str:
    """Return the last line of the kernel's log that says whether a server answers; "" without such a line.

    "nfs: server nas not responding, still trying", and "nfs: server nas OK" (net/sunrpc/clnt.c).
    """
    argv = ["journalctl", "--dmesg", "--quiet", "--no-pager", "--output=cat", "--lines=1", _OF_SERVERS]
    return run_tool(argv, _JOURNAL_S).output.strip().rpartition("\n")[2][:_MOST_CHARACTERS]


def _last_message(name: str, invocation: str, seconds: float) -> str:
    """Return a unit's last message of its last start, or of this boot where the start is not known."""
    when = f"_SYSTEMD_INVOCATION_ID={invocation}" if invocation else "--boot"
    of = f"_SYSTEMD_UNIT={name}"
    argv = ["journalctl", "--quiet", "--no-pager", "--output=cat", "--lines=10", when, of]
    lines = run_tool(argv, seconds).output.splitlines()
    messages = (line.strip() for line in reversed(lines) if not line.startswith(_NO_REASON))
    return next(messages, "")[:_MOST_CHARACTERS]
