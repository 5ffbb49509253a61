"""Kernel uevents: the datagrams of a netlink socket's kernel group (lib/kobject_uevent.c)."""

from __future__ import annotations

from nfstuned.model.kernel import Uevent

_KEY = b"\0SUBSYSTEM="


def parse_uevent(data: bytes, subsystem: str | None = None) -> Uevent | None:
    """Return the event, None for any other message: udev's own ("libudev"), or damaged ones.

    With `subsystem`, events of all others are None too, at the price of one search.
    """
    if subsystem is None:
        start = data.find(_KEY) + len(_KEY)
        end = data.find(b"\0", start)
        if start < len(_KEY) or end < 0:
            return None
        subsystem = _text(data[start:end])
    elif _KEY + subsystem.encode("utf-8", "surrogateescape") + b"\0" not in data:
        return None
    head = data[: data.find(b"\0")]
    action, separator, path = head.partition(b"@/")
    if not (separator and action):
        return None
    return Uevent(_text(action), subsystem, _text(path[path.rfind(b"/") + 1 :]))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
