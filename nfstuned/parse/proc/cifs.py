r"""`/proc/fs/cifs/DebugData` and `Stats`: SMB sessions, their channels and shares, and their requests.

The format belongs to the kernel's cifs_debug.c (fs/smb/client, before 6.4 fs/cifs), which promises nothing.
These differences between kernels are understood:

- To 5.11 servers have no heading: each begins with `Number of credits: 8190 Dialect 0x311 signed`, and a
  session is `1) Name: 10.10.10.10 Uses: 1 ...` at the start of a line, with the address as its name.
  Connections that are channels stand among the servers too, without a session. There is no host name.
- Since 5.12 a server is `1) ConnectionId: 0x1 Hostname: sa1.example` (at first without a host name), channels
  only stand in their sessions, and a session is `<tab>1) Address: 10.10.10.10` (of SMB1 still `Name:`).
- `SessionId: 0x..` and the flags after it (`encrypted`, `signed`) stand behind the TCP status to 5.11, behind
  the security type later. 6.6 and later add the cipher where the key is long: `encrypted(gcm256)`.
- The credits are a single number, and three with commas in later 6.6 and all newer kernels.
- A channel that was given up stays in the count, as `Channel: 2 DISABLED`, since 6.7.
- Kernels since 6.1 add lines (interface weights, client GUID, capabilities, compression, DFS, network
  namespace) that change nothing here. They are passed over, and so will be those of 7.x.

`signed` behind the dialect is the state of the connection's packets, `signed` behind the session is
the request of the mount; either makes it sign.

A share begins with `1) \\server\share`, perhaps with a tab and `DISCONNECTED` behind it, and has a line
for each kind of request: `Creates: 12 total 1 failed`. SMB1 shares have other lines and are not counted.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from nfstuned.errors import ParseError
from nfstuned.model.kernel import Mount
from nfstuned.model.system import SmbOps, SmbSession
from nfstuned.parse.proc.mounts import SMB, parse_mountinfo
from nfstuned.parse.tree import FileTree

_SERVER = r"\d+\) ConnectionId: 0x[0-9a-f]+ (?:Hostname: (\S+))?"
_DIALECT = r"Number of credits: [-\d,]+ Dialect 0x([0-9a-f]{1,8})(.*)"
_SESSION = r"\t?\d+\) (?:Address|Name): (\S+) "
_FLAGS = r" SessionId: 0x[0-9a-f]+(.*)"
_EXTRA = r"\tExtra Channels: (\d{1,4})"
_DISABLED = r"\t\tChannel: \d+ DISABLED"
_SEALED_SHARE = r"Serial Number: 0x[0-9a-f]+ .*\b[Ee]ncrypted\b"
_SHARE = r"\t\d+\) (\\\\.+?) Mounts: \d+ "


class _Server(NamedTuple):
    """The server of the sessions that follow."""

    host: str = ""
    dialect: int | None = None
    signed: bool = False


def parse_debug_data(text: str) -> tuple[SmbSession, ...]:
    """Return the sessions in the file's order; all other lines are passed over."""
    server, sessions = _Server(), list[SmbSession]()
    for line in text.split("\n"):
        if match := re.match(_SERVER, line):
            server = _Server(match[1] or "")
        elif match := re.match(_DIALECT, line):
            server = server._replace(dialect=int(match[1], 16), signed=" signed" in match[2])
        elif match := re.match(_SESSION, line):
            host, dialect, signed = server.host or match[1], server.dialect, server.signed
            sessions.append(SmbSession(host, match[1], dialect=dialect, channels=1, signed=signed))
        elif sessions:
            sessions[-1] = _with_line(sessions[-1], line)
    return tuple(sessions)


def _with_line(session: SmbSession, line: str) -> SmbSession:
    """Return the session with the facts of a line below its first."""
    if match := re.search(_FLAGS, line):
        flags = match[1]
        return session._replace(signed=session.signed or " signed" in flags, encrypted=" encrypted" in flags)
    if match := re.match(_EXTRA, line):
        return session._replace(channels=session.channels + int(match[1]))
    if re.search(_SEALED_SHARE, line):
        return session._replace(encrypted=True)
    if re.match(_DISABLED, line):
        return session._replace(channels=max(1, session.channels - 1))
    if match := re.match(_SHARE, line):
        return session._replace(shares=(*session.shares, match[1]))
    return session


METADATA = frozenset({"Creates", "Closes", "QueryDirectories", "QueryInfos", "SetInfos", "ChangeNotifies"})
DATA = frozenset({"Reads", "Writes"})
_COUNTED_SHARE = r"\d+\) (\\\\[^\t]+)"
_COUNT = r"([A-Za-z]+): (-?\d{1,10}) total -?\d+ failed"
_WRAP = 1 << 32
"""The counters have 32 bits, and are printed as numbers with a sign (smb2_print_stats, `%d`)."""


def parse_stats(text: str) -> tuple[SmbOps, ...]:
    """Return the requests to each share since the kernel counts; the sessions to a share are added up.

    A counter wraps after 2**32 requests: the growth of a sum is right modulo 2**32, as the counters are.
    """
    sums: dict[str, list[int]] = {}
    current = [0, 0]
    for line in text.split("\n"):
        if match := re.match(_COUNTED_SHARE, line):
            current = sums.setdefault(match[1].rstrip(), [0, 0])
        elif match := re.match(_COUNT, line):
            count = int(match[2]) % _WRAP
            current[0] += count if match[1] in METADATA else 0
            current[1] += count if match[1] in DATA else 0
    return tuple(SmbOps(share, metadata, data) for share, (metadata, data) in sums.items())


CIFS = "proc/fs/cifs"
_HALF = 1 << 31


def read_smb_mounts(root: FileTree) -> tuple[tuple[Mount, ...], tuple[ParseError, ...]]:
    """Return the live SMB mounts, and the lines that could not be understood."""
    name = f"{root.view}/mountinfo"
    rows = parse_mountinfo(root.read_or_empty(name), f"/{name}", SMB)
    mounts = tuple(row for row in rows if isinstance(row, Mount))
    return mounts, tuple(row for row in rows if isinstance(row, ParseError))


def read_smb_sessions(root: FileTree) -> tuple[SmbSession, ...]:
    """Return the sessions of /proc/fs/cifs/DebugData; none for a user who may not read it.

    The kernel answers from its memory: a dead server does not hold this up.
    """
    return parse_debug_data(root.read_or_empty(f"{CIFS}/DebugData"))


def read_smb_operations(root: FileTree) -> tuple[SmbOps, ...]:
    """Return the requests to each share so far, from /proc/fs/cifs/Stats."""
    return parse_stats(root.read_or_empty(f"{CIFS}/Stats"))


def added_smb_operations(before: tuple[SmbOps, ...], after: tuple[SmbOps, ...]) -> tuple[SmbOps, ...]:
    """Return the requests to each share between two looks; a share with a sum that fell is left out.

    A sum that fell by 2**31 or more looks as if a counter had wrapped.
    """
    earlier = {counters.share: counters for counters in before}
    growths = (
        SmbOps(now.share, _grown(then.metadata, now.metadata), _grown(then.data, now.data))
        for now in after
        if (then := earlier.get(now.share)) is not None
    )
    return tuple(growth for growth in growths if growth.metadata >= 0 and growth.data >= 0)


def _grown(before: int, now: int) -> int:
    """Return how much a sum of counters of 32 bits grew, also where some wrapped; negative: it fell."""
    return (now - before + _HALF) % (2 * _HALF) - _HALF
