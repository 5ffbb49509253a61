"""`/sys/class/bdi/MAJOR:MINOR` (sysfs-class-bdi), and the kernel's uevents about it."""

from __future__ import annotations

import re

from nfstuned.errors import ParseError
from nfstuned.model.kernel import Uevent
from nfstuned.parse.fields import LARGEST, number, quoted

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
        value = number("read-ahead", token[negative:])
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
