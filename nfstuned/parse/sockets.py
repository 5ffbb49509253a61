"""`/proc/net/tcp`, `tcp6`: a network namespace's sockets (Documentation/networking/proc_net_tcp.rst)."""

from __future__ import annotations

import re

_HEADER = re.compile(r" *sl +local_address ")
_LISTENING = re.compile(r"^ *[0-9]+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A ", re.MULTILINE)
"""The state 0A is TCP_LISTEN of the kernel's include/net/tcp_states.h."""


def parse_listening(text: str) -> frozenset[int] | None:
    """Return the ports on which something listens, at whichever address; None where the file is not there."""
    if not _HEADER.match(text):
        return None
    return frozenset(int(port, 16) for port in _LISTENING.findall(text))
