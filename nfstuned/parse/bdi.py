"""`/sys/class/bdi/MAJOR:MINOR`: one folder for each superblock with a read-ahead (sysfs-class-bdi)."""

from __future__ import annotations

import re

from nfstuned.errors import ParseError
from nfstuned.parse.fields import LARGEST, number

_DEVICE = re.compile(r"[0-9]{1,10}:[0-9]{1,10}")


def is_device_number(name: str) -> bool:
    """Tell whether the name of a bdi, or of a folder of /sys/fs/nfs, is a device number such as "0:43"."""
    return _DEVICE.fullmatch(name) is not None


def parse_read_ahead(text: str, file: str) -> int:
    """Return `read_ahead_kb`, the first line, in KiB; ParseError when it is not a number.

    The kernel takes any unsigned number and prints it signed (mm/backing-dev.c): a value that reads as
    negative is an enormous one, and is returned as such. Writing it back restores it.
    """
    token = text.partition("\n")[0]
    negative = token.startswith("-")
    try:
        value = number("read-ahead", token[negative:])
    except ValueError:
        raise ParseError(file, 1, f"read-ahead is not a number: {token[:80]!a}") from None
    return LARGEST + 1 - value if negative and value else value
