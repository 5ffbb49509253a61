r"""`/proc/fs/cifs/Stats`: how many requests went to each SMB share (smb2_print_stats in smb2ops.c).

A share begins with `1) \\server\share`, perhaps with a tab and `DISCONNECTED` behind it, and has one line for
each kind of request: `Creates: 12 total 1 failed`. SMB1 shares have other lines and are not counted.
"""

from __future__ import annotations

import re

from nfstuned.model.facts import SmbOps

METADATA = frozenset({"Creates", "Closes", "QueryDirectories", "QueryInfos", "SetInfos", "ChangeNotifies"})
DATA = frozenset({"Reads", "Writes"})
_SHARE = re.compile(r"\d+\) (\\\\[^\t]+)")
_COUNT = re.compile(r"([A-Za-z]+): (\d{1,10}) total \d+ failed")


def parse_stats(text: str) -> tuple[SmbOps, ...]:
    """Return the requests to each share since the kernel counts; sessions to one share are added up."""
    sums: dict[str, list[int]] = {}
    current = [0, 0]
    for line in text.split("\n"):
        if match := _SHARE.match(line):
            current = sums.setdefault(match[1].rstrip(), [0, 0])
        elif match := _COUNT.match(line):
            current[0] += int(match[2]) if match[1] in METADATA else 0
            current[1] += int(match[2]) if match[1] in DATA else 0
    return tuple(SmbOps(share, metadata, data) for share, (metadata, data) in sums.items())
