"""Superblocks of NFS: `/proc/fs/nfsfs/servers` and `volumes` (fs/nfs/client.c), bdis and their uevents.

A superblock has its row in `volumes` before the kernel announces its bdi, and before mountinfo shows its
mount. A bdi has the folder `/sys/class/bdi/MAJOR:MINOR` (sysfs-class-bdi).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import TypeVar

from nfstuned.errors import ParseError
from nfstuned.model.kernel import NfsClient, Uevent, Volume
from nfstuned.parse.fields import LARGEST, parse_number, quoted

SERVERS = "/proc/fs/nfsfs/servers"
VOLUMES = "/proc/fs/nfsfs/volumes"
UNPRINTABLE = "unprintable"
"""The kernel's own word for an address or a port that it has not formatted (net/sunrpc/clnt.c)."""

_Row = TypeVar("_Row")
_V4_DIGITS, _V6_DIGITS = 8, 32
_PORT_DIGITS = 4
_HEX = re.compile(rf"[0-9a-fA-F]{{1,{_V6_DIGITS}}}")
_SERVER_FIELDS = 5
"""NV SERVER PORT USE HOSTNAME, which takes the rest of the row."""
_VOLUME_FIELDS = 5
"""NV SERVER PORT DEV FSID; FSC follows, and is not read."""


def parse_clients(text: str, file: str = SERVERS) -> tuple[NfsClient | ParseError, ...]:
    """Return the nfs_clients in the file's order; a row that cannot be understood gives way to its error."""
    return _rows(text, file, _server)


def parse_volumes(text: str, file: str = VOLUMES) -> tuple[Volume | ParseError, ...]:
    """Return the superblocks in the file's order; a row that cannot be understood is replaced by its error.

    A superblock that is still being set up has the device "0:0". Kernels that print only seven characters
    of a device (the column was widened before Linux 5.10) cut a longer number off.
    """
    return _rows(text, file, _volume)


def find_volume(text: str, device: str, file: str = VOLUMES) -> Volume | None:
    """Return the newest superblock with that device, None without such a row; no other row is converted.

    Newer rows stand further down, so the search goes upwards: it ends at once for a mount just made.
    Raises ParseError when the row of that device cannot be understood.
    """
    column = f" {device} "  # the FSID may be the same text: the column DEV decides
    at = len(text)
    while (at := text.rfind(column, 0, at)) >= 0:
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        fields = text[start : end if end >= 0 else None].split()
        if len(fields) >= _VOLUME_FIELDS and fields[3] == device:
            try:
                return _volume_of(fields)
            except ValueError as error:
                raise ParseError(file, text.count("\n", 0, start) + 1, str(error)) from None
    return None


def _rows(text: str, file: str, parse: Callable[[str], _Row]) -> tuple[_Row | ParseError, ...]:
    rows: list[_Row | ParseError] = []
    for line, row in enumerate(text.split("\n"), 1):
        if not row or row.startswith("NV "):
            continue
        try:
            rows.append(parse(row))
        except ValueError as error:
            rows.append(ParseError(file, line, str(error)))
    return tuple(rows)


def _server(row: str) -> NfsClient:
    fields = row.split(None, _SERVER_FIELDS - 1)
    if len(fields) < _SERVER_FIELDS:
        raise ValueError(f"{len(fields)} fields, {_SERVER_FIELDS} expected: {quoted(row)}")
    return NfsClient(
        version=_version(fields[0]),
        address=_address(fields[1]),
        port=_port(fields[2]),
        users=parse_number("use count", fields[3]),
        hostname=fields[4],
    )


def _volume(row: str) -> Volume:
    fields = row.split()
    if len(fields) < _VOLUME_FIELDS:
        raise ValueError(f"{len(fields)} fields, {_VOLUME_FIELDS} expected: {quoted(row)}")
    if not is_device_number(fields[3]):
        raise ValueError(f"not a device number: {quoted(fields[3])}")
    return _volume_of(fields)


def _volume_of(fields: list[str]) -> Volume:
    return Volume(
        version=_version(fields[0]),
        address=_address(fields[1]),
        port=_port(fields[2]),
        device=fields[3],
        fsid=fields[4],
    )


def _version(token: str) -> int:
    if not token.startswith("v"):
        raise ValueError(f"not an NFS version: {quoted(token)}")
    return parse_number("NFS version", token[1:])


def _address(token: str) -> str:
    if token == UNPRINTABLE:
        return token
    value = _hex("address", token)
    if len(token) == _V4_DIGITS:
        return f"{value >> 24}.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}"
    if len(token) == _V6_DIGITS:
        return str(ipaddress.IPv6Address(value))
    raise ValueError(f"address of {len(token)} digits: {quoted(token)}")


def _port(token: str) -> int:
    if token == UNPRINTABLE:
        return 0
    if len(token) > _PORT_DIGITS:
        raise ValueError(f"port of {len(token)} digits: {quoted(token)}")
    return _hex("port", token)


def _hex(name: str, token: str) -> int:
    if not _HEX.fullmatch(token):
        raise ValueError(f"{name} is not hexadecimal: {quoted(token)}")
    return int(token, 16)


_DEVICE = re.compile(r"[0-9]{1,10}:[0-9]{1,10}")


def is_device_number(name: str) -> bool:
    """Return whether the name of a bdi, or of a folder of /sys/fs/nfs, is a device number such as "0:43"."""
    return _DEVICE.fullmatch(name) is not None


def parse_read_ahead(text: str, file: str) -> int:
    """Return `read_ahead_kb`, the first line, in KiB; ParseError when it is not a number.

    The kernel takes any unsigned number and prints it signed (mm/backing-dev.c): a value that reads as
    negative is an enormous number, and is returned as such. Writing it back restores it.
    """
    token = text.partition("\n")[0]
    negative = token.startswith("-")
    try:
        value = parse_number("read-ahead", token[negative:])
    except ValueError:
        raise ParseError(file, 1, f"read-ahead is not a number: {quoted(token)}") from None
    return LARGEST + 1 - value if negative and value else value


def parse_uevent(data: bytes, subsystem: str) -> Uevent | None:
    """Return the kernel's event of a subsystem; None for any other message.

    That is another subsystem's, udev's own ("libudev"), or a damaged message.
    """
    if b"\0SUBSYSTEM=" + subsystem.encode("utf-8", "surrogateescape") + b"\0" not in data:
        return None
    head = data[: data.find(b"\0")]
    action, separator, path = head.partition(b"@/")
    if not (separator and action):
        return None
    return Uevent(_text(action), subsystem, _text(path[path.rfind(b"/") + 1 :]))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
