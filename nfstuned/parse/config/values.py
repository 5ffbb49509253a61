"""The values of nfstuned.toml that are more than a number or a name: from what TOML gives, or ValueError.

The error's text says what is wrong; where it is empty, the key's own description says what is allowed.
"""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_interface, ip_network
from posixpath import normpath

from nfstuned.model.policy import LEAST_KB, MOST_KB
from nfstuned.parse.config.toml import shown

DURATION = r"^(0|[1-9][0-9]{0,4}[smh])$"
_UNITS = {"s": 1, "m": 60, "h": 3600}
SIZE = r"^(0|[1-9][0-9]{0,5}[KMG])$"
SIZE_UNITS = {"G": 1 << 30, "M": 1 << 20, "K": 1 << 10}
_LEAST_BYTES, _MOST_BYTES = 64 << 10, 64 << 30
FILE = r"^/([^/\u0000-\u001f\u007f]+/)*[^/\u0000-\u001f\u007f]+$"
_LONGEST_S = 86400
TIMES_RSIZE = r"^[1-9][0-9]?\*rsize$"
NFS_VERSION = r"^(3|4\.[0-2])$"
TEXTFILE = r"^/.+\.prom$"


def duration(value: object) -> float:
    """Return the seconds of "60s", "5m" or "1h", at most a day; "0" is 0."""
    if not isinstance(value, str) or not re.fullmatch(DURATION, value):
        raise ValueError
    seconds = 0 if value == "0" else int(value[:-1]) * _UNITS[value[-1]]
    if seconds > _LONGEST_S:
        raise ValueError
    return float(seconds)


def size(value: object) -> int:
    """Return the bytes of "64K", "16M" or "1G" (powers of 1024), from 64 KiB to 64 GiB; "0" is 0."""
    if not isinstance(value, str) or not re.fullmatch(SIZE, value):
        raise ValueError
    number = 0 if value == "0" else int(value[:-1]) * SIZE_UNITS[value[-1]]
    if number and not _LEAST_BYTES <= number <= _MOST_BYTES:
        raise ValueError
    return number


def file(value: object) -> str:
    """Return the absolute path of a file, without `.` and `..`; "" for none."""
    if isinstance(value, str):
        named = re.fullmatch(FILE, value) and not {".", ".."} & set(value.split("/"))
        if named or not value:
            return value
    raise ValueError


def read_ahead(value: object) -> object:
    """Return a number of KiB within the bounds, or "15*rsize", as it is."""
    if isinstance(value, str) and re.fullmatch(TIMES_RSIZE, value):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and LEAST_KB <= value <= MOST_KB:
        return value
    raise ValueError


def globs(value: object) -> tuple[str, ...]:
    """Return the patterns as a tuple; a single pattern needs no list."""
    patterns = [value] if isinstance(value, str) else value
    if not isinstance(patterns, list) or not patterns or not all(isinstance(p, str) and p for p in patterns):
        raise ValueError
    return tuple(patterns)


def versions(value: object) -> tuple[str, ...]:
    """Return versions of NFS as a tuple; a single version needs no list, and a list may be empty."""
    named = () if value == [] else globs(value)
    if not all(re.fullmatch(NFS_VERSION, version) for version in named):
        raise ValueError
    return named


def servers(value: object) -> tuple[str, ...]:
    """Return server patterns: globs, addresses and networks.

    What looks like an address or a network and is none is refused: as a glob it would match nothing.
    """
    patterns = globs(value)
    for pattern in patterns:
        try:
            if "/" in pattern:
                ip_network(pattern)
            elif re.fullmatch(r"[0-9.]+|\[?[^][*?]*:[^][*?]*\]?", pattern):
                # No name has a colon; a scope counts nowhere, and need not be one.
                ip_address(re.sub(r"^\[(.*)\]$", r"\1", pattern).partition("%")[0])
        except ValueError as error:  # noqa: PERF203 - a handful
            raise ValueError(
                f"{shown(pattern)} is no address or network ({error}); {_allowed_server(pattern)}"
            ) from None
    return patterns


def _allowed_server(pattern: str) -> str:
    try:
        network = ip_interface(pattern).network
    except ValueError:
        return 'allowed: an address, a network such as "10.1.2.0/24", or a glob such as "*.example.com"'
    return f"allowed: {network} for the network"


def textfile_path(value: object) -> str:
    """Return an absolute path that ends with .prom, as it is: node_exporter reads no other files."""
    if not (
        isinstance(value, str)
        and re.fullmatch(TEXTFILE, value)
        and value.isprintable()
        and normpath(value) == value
    ):
        raise ValueError
    return value
