"""The journal: every message has an id, fields of its own and an entry in systemd/nfstuned.catalog.

`journalctl -x` explains the messages, `journalctl NFSTUNED_DEVICE=0:43` finds those about a superblock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum, IntEnum
from functools import lru_cache

from nfstuned.parse.fields import Secretless, is_secretless, mask_secrets

try:
    # Not systemd.journal, which imports sendv from here: it loads logging and uuid, and delays the boot.
    from systemd._journal import sendv
except ImportError:  # not installed; in a checkout the name "systemd" even exists, as our folder
    sendv = None

SOCKET = "/run/systemd/journal/socket"
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
UNKNOWN = "unknown"
"""The value of a field that a message promises and its sender does not know."""

_MOST_FIELDS = 256
"""The size of the cache of field names: more than there are."""
_MOUNT = ("device", "mount_point", "source")


class Priority(IntEnum):
    """The levels of syslog(3) that nfstuned uses."""

    ERROR = 3
    WARNING = 4
    NOTICE = 5
    INFO = 6


class Message(Enum):
    """The entries of the journal: the MESSAGE_ID, and the NFSTUNED_ fields that every such entry has.

    An id never changes its meaning. The catalog may refer to no other fields than those promised here.
    """

    STARTED = ("2c759dce6c5846bba87106e3939d5834", ("version",))
    """The daemon begins; READY=1 follows when it has looked at every mount."""
    STOPPED = ("40599775c7f74136847298e46ad4eff5", ("reason",))
    """The daemon ends; the values that it wrote stay unless restore_on_stop is set."""
    READ_AHEAD_SET = (
        "dde1988f3e324dfd84dd3a90989f9066",
        (*_MOUNT, "provider", "profile", "old_kb", "new_kb", "reason"),
    )
    """A superblock got the read-ahead of its profile, and it was read back."""
    READ_AHEAD_CONTESTED = ("8856ccd810b94cfeb57850a114d0bedd", (*_MOUNT, "old_kb", "new_kb", "writer"))
    """Another program had changed a value to `old_kb`; `new_kb` was written again."""
    READ_AHEAD_LEFT = ("f33562687ae841cdae8787f80e507691", (*_MOUNT, "old_kb", "new_kb", "writer"))
    """Another program keeps writing `old_kb`; nfstuned no longer writes `new_kb` to this superblock."""
    READ_AHEAD_HELD = ("3441f9146f7e4921a193ccf89ff1c39a", ("mounts",))
    """`mounts` were there before the installation, and keep their read-ahead until the next boot."""
    READ_AHEAD_WANTED = (
        "3fd0ff348d8c41bdb64b2ad1fbd19ce5",
        (*_MOUNT, "provider", "profile", "old_kb", "new_kb", "reason"),
    )
    """With mode = "observe": the service would write `new_kb` to a superblock, and does not."""
    READ_AHEAD_ADAPTED = (
        "82edbccc9b9a43c3bf630d220f8817ab",
        (*_MOUNT, "provider", "profile", "old_kb", "new_kb", "most_kb", "reason"),
    )
    """The reads of a superblock have moved its read-ahead, up to `most_kb` at most."""
    READ_AHEAD_RESTORED = ("230913708d0d4b7c923972ca92cfedb6", ("device", "old_kb", "new_kb", "reason"))
    """A superblock got back the value that it had before nfstuned changed it."""
    READ_AHEAD_FAILED = ("660f2b2f659043009b1eaf166aaa014f", (*_MOUNT, "old_kb", "new_kb", "file", "reason"))
    """The kernel refused a value, or the attribute could not be written."""
    CONFIG_LOADED = ("e6efe96d5e274e07bc634c5f138ddade", ("file",))
    """A configuration is in use; `file` names the administrator's files, in their order."""
    CONFIG_INVALID = ("f841f5f931614776925a3da3593500ca", ("file", "reason"))
    """A problem of a configuration that was refused; the last good configuration, if any, stays in use."""
    UNREADABLE = ("2972cddf465d426ba08acdeeb0720398", ("file", "reason"))
    """A file could not be read, or has a line that nfstuned does not understand; its other lines count."""
    EVENTS_LOST = ("c8a81271bb5e4897b56023a5be6a0077", ("reason",))
    """The kernel dropped events for want of room; everything was looked at again."""
    RULE_MASKED = ("025a608cf0324366843fb11937b51555", ("file",))
    """`file` keeps a udev rule of the distribution from writing read-aheads while the service runs."""
    RULE_UNMASKED = ("d14c4827bf9b455f9ec5931e3c4a5f1d", ("file",))
    """`file` was removed: the udev rule that it hid is in force again."""
    RULE_LEFT = ("81a7c7ba169e49bf805d44f1f4c595b2", ("file", "reason"))
    """A udev rule that writes read-aheads stays in force: somebody has changed or configured it. `file` is
    its name, without a folder."""
    RULES_FAILED = ("a4806a3e68064e49a072af13fdaa9c4a", ("reason",))
    """The masks of udev's rules could not be made or taken back, or udev could not reload its rules."""
    UNWATCHED = ("349807775a3445ba8984a88b8dfb674b", ("reason",))
    """Writes of others to a read-ahead are not seen at once: the kernel gives no more watches."""
    SAMPLE = ("ac33837b60f6443f856960df8ada06eb", _MOUNT)
    """The throughput of a superblock over an interval."""
    STALLED = ("e73d8ee692a34640baae1bc80a5685b5", (*_MOUNT, "server", "since", "requests", "operations"))
    """Requests of a superblock wait for their answers: since when (Unix seconds), and which."""
    STALL_ENDED = ("4a84db6796e84adaad7dcb0ac1fd9a3f", (*_MOUNT, "server", "since", "stalled_s", "reason"))
    """A superblock that was stalled waits no more; `reason` is answered, given up or unmounted."""
    SAMPLES_UNWRITTEN = ("7dc1fade2dd640f8ae04b08f85f964c2", ("file", "reason"))
    """Samples cannot be appended to their file; they are in the journal all the same."""
    SAMPLES_WRITTEN = ("af067868f67f42a19fb9421a792f92b2", ("file", "lost"))
    """Samples are appended to their file again; `lost` of them are not in it."""
    PERSIST_UNASKED = ("db5b6cd3f88a4bffa80c8814a2a8e7cd", ("file", "reason"))
    """nfstuned-persist.service could not be asked to persist the nconnect of a new server."""
    CYCLE_FAILED = ("4e73fad58dcc543bb45d3c7816196295", ("reason",))
    """A step of the daemon failed, and sends no WATCHDOG=1; the next step starts afresh."""
    POLICY_CONFLICT = ("6726c25e53d74bb4a1cfd37dd35be9c6", (*_MOUNT, "profile", "new_kb", "reason"))
    """Mounts of a superblock match policies with different values; `new_kb` was chosen."""
    METRICS_FAILED = ("e33b252af0494e59a2b3958152291ae4", ("key", "reason"))
    """A file of metrics could not be written; everything else goes on."""

    def __init__(self, message_id: str, fields: tuple[str, ...]) -> None:
        self.id = message_id
        self.fields = fields


class Journal:
    """Sends messages to the journal where stderr leads there, else to stderr.

    Where the journal refuses an entry, its message goes to stderr instead. `write` takes an entry's fields as
    `NAME=value` in bytes.
    """

    def __init__(self, write: Callable[..., object] | None = None) -> None:
        self.counts: dict[str, int] = {message.name.lower(): 0 for message in Message}
        """How many entries of each message were made, by its name in lower case."""
        self.since = time.time()
        """Since when they are counted: the start of the service, in Unix seconds."""
        self._write = write or ((sendv or send_by_socket) if stderr_is_journal(os.environ) else _to_stderr)

    def send(self, message: Message, text: str, priority: int, **fields: object) -> None:
        """Write an entry; `fields` become NFSTUNED_ fields, without those that are None.

        A promised field without a value is "unknown". Paths may hold surrogate escapes: they arrive as
        the bytes that the kernel gave. Never raises: a full or absent journal must not stop the work. It
        waits for a journald that takes no entries for now, as all services do (unix(7), max_dgram_qlen).
        """
        self.counts[message.name.lower()] += 1
        entry = [
            f"MESSAGE={text}",
            f"MESSAGE_ID={message.id}",
            f"PRIORITY={int(priority)}",
            "SYSLOG_IDENTIFIER=nfstuned",
        ]
        entry += [f"{_field(name)}={UNKNOWN}" for name in message.fields if fields.get(name) is None]
        try:
            secretless: list[str] = []
            for name, value in fields.items():
                if value is not None:
                    (secretless if isinstance(value, Secretless) else entry).append(f"{_field(name)}={value}")
            # Nearly no entry has anything that looks like a secret: all of its fields are looked at together.
            if not is_secretless("\n".join(entry)):
                pairs = (line.partition("=") for line in entry)
                entry = [f"{name}{sign}{mask_secrets(value)}" for name, sign, value in pairs]
            self._write(*_encoded(entry + secretless))
        except (OSError, ValueError) as error:
            try:
                shown = mask_secrets(text)
            except OSError:  # no descriptor is left to read the patterns
                shown = f"an entry {message.name} without its text, which may hold a secret"
            _to_stderr(
                *_encoded([f"MESSAGE={shown} (not in the journal: {error})", f"PRIORITY={int(priority)}"])
            )


@lru_cache(_MOST_FIELDS)
def _field(name: str) -> str:
    return f"NFSTUNED_{name.upper()}"


def _encoded(texts: list[str]) -> list[bytes]:
    """Return texts in UTF-8, with the bytes that the kernel gave, whatever the locale is; never raises."""
    try:
        return [text.encode() for text in texts]  # nearly always, and in half the time
    except UnicodeEncodeError:
        return [_escaped(text) for text in texts]


def _escaped(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate, which JSON can hold
        return text.encode("utf-8", "backslashreplace")


def stderr_is_journal(environ: Mapping[str, str]) -> bool:
    """Return whether stderr is the journal's: JOURNAL_STREAM of systemd.exec(5) names its device and inode.

    On a terminal it is not, and a person who runs the daemon there wants to read its messages.
    """
    try:
        stream = os.fstat(2)
    except OSError:
        return False
    return environ.get("JOURNAL_STREAM") == f"{stream.st_dev}:{stream.st_ino}"


def send_by_socket(*entry: bytes) -> None:
    """Send an entry over journald's own socket, where the library is not there. Raises OSError.

    A datagram, or a sealed memfd for a larger entry: https://systemd.io/JOURNAL_NATIVE_PROTOCOL/
    """
    data = b""
    for field in entry:
        name, _, value = field.partition(b"=")
        # A value with line breaks comes behind its length.
        counted = b"%s\n%s%s" % (name, len(value).to_bytes(8, "little"), value)
        data += (counted if b"\n" in value else field) + b"\n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        try:
            sock.sendto(data, SOCKET)
        except OSError as error:
            if error.errno not in {errno.EMSGSIZE, errno.ENOBUFS}:
                raise
            fd = os.memfd_create("nfstuned-entry", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
                rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, fd.to_bytes(4, sys.byteorder))
                sock.sendmsg([], [rights], 0, SOCKET)


def _to_stderr(*entry: bytes) -> None:
    r"""Print the text behind its `<N>`, which a service manager takes for the priority (sd-daemon(3)).

    Control characters are written as escapes; a line break would begin a new message.
    """
    fields = dict(field.split(b"=", 1) for field in entry)
    text = fields[b"MESSAGE"].decode("utf-8", "backslashreplace")
    if not text.isprintable():
        text = "".join(
            char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
        )
    with suppress(OSError):
        os.write(2, b"<%s>%s\n" % (fields.get(b"PRIORITY", b"4"), text.encode()))
