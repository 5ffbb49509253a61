"""Entries of the journal that the service wrote, for those who may read them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import UNKNOWN, Message
from nfstuned.model.samples import Event
from nfstuned.parse.samples import text_of

JOURNALS = ("var/log/journal", "run/log/journal")
CHANGES = (
    Message.STARTED,
    Message.STOPPED,
    Message.READ_AHEAD_SET,
    Message.READ_AHEAD_CONTESTED,
    Message.READ_AHEAD_LEFT,
    Message.READ_AHEAD_RESTORED,
    Message.READ_AHEAD_FAILED,
    Message.POLICY_CONFLICT,
    Message.CONFIG_LOADED,
    Message.CONFIG_INVALID,
)
"""The changes that the service made to mounts, and their reasons."""
_INSTEAD = "--file FILE reads a file of samples"
_LIBRARY = f"the Python library of systemd is not installed (python3-systemd, systemd-python); {_INSTEAD}"
_NONE = f"there is no journal in /{JOURNALS[0]} or /{JOURNALS[1]}; {_INSTEAD}"
_DENIED = (
    "the journal of this host is not for this user to read: use sudo, "
    "or add the user to the group systemd-journal"
)
_NAMES = {message.id: message.name for message in Message}

Entry = Mapping[str, object]


def entries(root: Root, messages: Iterable[Message], since_s: float | None) -> Iterator[Entry]:
    """Return the entries of any of these messages in the journal's order, those since a Unix time.

    Only entries of root's processes count: any user may send an entry that looks like ours. Raises OSError,
    before the first, where the journal cannot be read.
    """
    try:
        from systemd.journal import DEFAULT_CONVERTERS, Reader  # noqa: PLC0415 - few commands need it, and it may be absent
    except ImportError:
        raise OSError(errno.ENOPKG, _LIBRARY) from None
    _demand_access(root)
    # The library's converters of times and ids that nobody reads cost half of an entry's time.
    raw = dict.fromkeys(DEFAULT_CONVERTERS, lambda value: value)
    reader = Reader(converters=raw) if root.prefix == "/" else Reader(0, root.path(JOURNALS[0]), None, raw)
    reader.data_threshold = 0  # no field is cut
    for message in messages:
        reader.add_match(f"MESSAGE_ID={message.id}")
    reader.add_match("_UID=0")
    if since_s is None:
        reader.seek_head()
    else:
        reader.seek_realtime(max(0.0, since_s))
    return cast("Iterator[Entry]", iter(reader))


def moment(entry: Entry) -> float:
    """Return when the journal got an entry, in Unix seconds."""
    return cast("int", entry["__REALTIME_TIMESTAMP"]) / 1e6


def fields(entry: Entry) -> dict[str, bytes | str]:
    """Return an entry's fields; of a field that is there more than once the first."""
    return {
        name: cast("bytes | str", value[0] if isinstance(value, list) else value)
        for name, value in entry.items()
        if not name.startswith("__")
    }


def changes(root: Root, since_s: float | None) -> Iterator[Event]:
    """Return the service's changes since a Unix time. Raises OSError, before the first, like `entries`."""
    return (_event(moment(entry), fields(entry)) for entry in entries(root, CHANGES, since_s))


def _event(time: float, values: Mapping[str, bytes | str]) -> Event:
    text = {name: text_of(value) for name, value in values.items() if isinstance(value, (bytes, str))}
    device, point = (text.get(f"NFSTUNED_{name}", UNKNOWN) for name in ("DEVICE", "MOUNT_POINT"))
    return Event(
        time,
        _NAMES.get(text.get("MESSAGE_ID", ""), ""),
        text.get("MESSAGE", ""),
        "" if device == UNKNOWN else device,
        "" if point == UNKNOWN else point,
    )


def _demand_access(root: Root) -> None:
    """Raise OSError without a journal that this user may read: the library does not report either."""
    readable, denied = 0, 0
    for folder in JOURNALS:
        for machine in root.names(folder):
            try:
                names = root.listing(f"{folder}/{machine}")
            except PermissionError:
                denied += 1
                continue
            except NotADirectoryError:
                names = []
            for name in names:
                if name.startswith("system") and name.endswith(".journal"):
                    allowed = os.access(root.path(f"{folder}/{machine}/{name}"), os.R_OK, effective_ids=True)
                    readable, denied = readable + allowed, denied + (not allowed)
    if not readable:
        raise OSError(errno.EACCES if denied else errno.ENOENT, _DENIED if denied else _NONE)
