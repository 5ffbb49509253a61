"""The read-ahead of a superblock in sysfs: its bdi, the record of its value, and changes with their undo.

Every write keeps the old value first and is read back after (Documentation/ABI/testing/sysfs-class-bdi). The
records are in /run/nfstuned/read-ahead, a small file a superblock: a crash can leave a record without a
change, never a change without its record. The folder is the only truth: the daemon, `apply` and `undo` all
read it again.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from nfstuned.errors import ParseError
from nfstuned.host.root import Root
from nfstuned.model.mounts import Action, Hold, Outcome, Record, Result
from nfstuned.model.policy import KERNEL_KB, MOST_KB
from nfstuned.parse.proc.mounts import is_anonymous_device, parse_read_ahead

if TYPE_CHECKING:
    from typing_extensions import Self


BDI_FOLDER = "sys/class/bdi"
GONE = (errno.ENOENT, errno.ENODEV)
"""The kernel's errors for a bdi that was removed: before it was opened, and after."""
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
"""The kernel keeps a read-ahead in whole pages of this many KiB, rounded down."""


def bdi_file(root: Root, device: str) -> str:
    """Return the path of a device's read_ahead_kb."""
    return f"{root.prefix}{BDI_FOLDER}/{device}/read_ahead_kb"


def identity(root: Root, device: str) -> int | None:
    """Return the inode of the device's read_ahead_kb; None without such a bdi, or in `root.faults`.

    Device numbers are given to the next mount at once; sysfs hands out inodes cyclically, so that the same
    number with the same inode is the same superblock. Looking it up never touches the mount.
    """
    return root.inode(f"{BDI_FOLDER}/{device}/read_ahead_kb")


def identities(root: Root, between: Callable[[], None] | None = None) -> dict[str, int]:
    """Return every bdi of a superblock without a disk with its identity.

    Those that could not be looked up are in `root.faults`. `between` is called after each.
    """
    found: dict[str, int] = {}
    for name in root.names(BDI_FOLDER):
        if is_anonymous_device(name) and (inode := identity(root, name)) is not None:
            found[name] = inode
            if between is not None:
                between()
    return found


class Bdi:
    """An open read_ahead_kb: whatever becomes of the device number, reads and writes reach this bdi or none.

    Open it before reading facts about the device: they are then about this bdi, or the bdi is gone and the
    write fails with ENODEV.
    """

    __slots__ = ("_fd", "device", "inode", "name")

    def __init__(self, root: Root, device: str) -> None:
        self.device = device
        self.name = bdi_file(root, device)
        self._fd = os.open(self.name, os.O_RDWR | os.O_CLOEXEC)
        try:
            self.inode = os.fstat(self._fd).st_ino
        except OSError:
            # A file that is open for writing keeps sysfs from becoming read-only.
            os.close(self._fd)
            raise

    def read_kb(self) -> int:
        """Return the read-ahead in KiB. Raises OSError when the bdi is gone, ParseError for nonsense."""
        text = os.pread(self._fd, 64, 0)
        if not text:
            raise ParseError(self.name, 1, "the file is empty")
        return parse_read_ahead(text.decode("ascii", "replace"), self.name)

    def write_kb(self, value: int) -> None:
        """Set the read-ahead in KiB. Raises OSError."""
        os.pwrite(self._fd, b"%d\n" % value, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)


FIRST_START = "run/nfstuned/first-start"
"""A package makes this file when it is installed, and only then."""
RECORDS = "run/nfstuned/read-ahead"
LENGTH = 96
"""Bytes of a record's file: four JSON values of at most 20 characters, and spaces."""
_NOTHING_KB = -1
"""In the place of the written value: the superblock was mounted before the installation."""


class State:
    """The records of a host.

    A file has the bdi's inode, the original value, the written value, and `true` for a superblock that the
    service leaves alone, the adapted value, or `false`. 0.1.0 reads exactly four values, and leaves alone
    where the fourth is `true`: after a downgrade it must neither lose an original value nor tune a
    superblock that is held.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self._folder = root.path(RECORDS)

    def prepare(self) -> None:
        """Make the folder, which everyone may read whatever the umask is. Raises OSError."""
        from nfstuned.host.files.write import make_folders  # noqa: PLC0415 - to read records needs none of it

        make_folders(self._root.path, RECORDS)

    def get(self, device: str) -> Record | None:
        """Return the record of a device number; None where no record is whole. Raises OSError."""
        try:
            bdi, original, written, mark = json.loads(self._root.read(f"{RECORDS}/{device}"))
        except (FileNotFoundError, RecursionError, TypeError, ValueError):
            return None
        if not all(type(value) is int for value in (bdi, original, written)):
            return None
        if mark is True and written == _NOTHING_KB:
            return Record(device, bdi, original, original, Hold.EXISTING)
        moved = type(mark) is int and KERNEL_KB <= mark <= MOST_KB
        hold = Hold.UNDONE if mark is True else None
        return Record(device, bdi, original, written, hold, mark if moved else None)

    def all(self) -> dict[str, Record]:
        """Return every record by its device number; files with other names are no records. Raises OSError."""
        try:
            names = self._root.listing(RECORDS)
        except FileNotFoundError:
            names = []
        devices = filter(is_anonymous_device, names)
        return {device: record for device in devices if (record := self.get(device)) is not None}

    def put(self, record: Record) -> None:
        """Keep a record. Raises OSError.

        A single write(2) of always the same length replaces the record before it: whenever a reader looks or
        the daemon is killed, there is the old record, the new record, or (instead of the first) none.
        """
        written = _NOTHING_KB if record.hold is Hold.EXISTING else record.written_kb
        mark = True if record.hold else record.adapted_kb or False
        values = (record.bdi, record.original_kb, written, mark)
        fd = self._open(record.device)
        try:
            os.write(fd, json.dumps(values).ljust(LENGTH).encode())
        finally:
            os.close(fd)

    def _open(self, device: str) -> int:
        from nfstuned.host.files.write import FOR_ALL  # noqa: PLC0415 - as above

        name, flags = f"{self._folder}/{device}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        try:
            fd = os.open(name, flags, FOR_ALL)
        except FileNotFoundError:
            # Somebody has removed the folder: its records are lost, and tuning goes on.
            self.prepare()
            fd = os.open(name, flags, FOR_ALL)
        try:
            os.fchmod(fd, FOR_ALL)
        except OSError:
            os.close(fd)
            raise
        return fd

    def drop(self, device: str) -> None:
        """Forget a device number; it is no error when nothing is known of it."""
        with suppress(FileNotFoundError):
            os.unlink(f"{self._folder}/{device}")


def apply_action(root: Root, state: State, action: Action) -> Outcome:
    """Carry out an action; a refusal is an outcome, never an exception."""
    try:
        with Bdi(root, action.device) as bdi:
            if bdi.inode != action.bdi:
                return Outcome(
                    action, Result.SKIPPED, "unmounted meanwhile; its device number belongs to another device"
                )
            return write(bdi, state, action)
    except (OSError, ParseError) as error:
        return refused(action, error)


def write(bdi: Bdi, state: State, action: Action) -> Outcome:
    """Write a value to an open bdi, its record first. Raises OSError and ParseError.

    A value that is another when it is read back is another writer's: the record stays nfstuned's own.
    """
    known = state.get(action.device)
    if known is None or known.bdi != bdi.inode:
        known = Record(action.device, bdi.inode, action.old_kb, action.old_kb)
    # Another number than the adapted one is the profile's, after a change of the configuration.
    adapted = known.adapted_kb if known.adapted_kb == action.new_kb else None
    state.put(known._replace(written_kb=action.new_kb, hold=None, adapted_kb=adapted))
    _write_or_forget(bdi, state, action.new_kb, known)
    value = bdi.read_kb()
    if value != action.new_kb:
        return Outcome(action, Result.FAILED, f"it was {value} KiB when it was read back")
    return Outcome(action, Result.DONE, action.why)


def _write_or_forget(bdi: Bdi, state: State, kb: int, before: Record) -> None:
    """Write a value; where that fails, put the record from before back. Raises OSError.

    Otherwise the old value would be another writer's at the next look, or put back at the next undo.
    """
    try:
        bdi.write_kb(kb)
    except OSError:
        with suppress(OSError):
            state.put(before)
        raise


def undo(root: Root, state: State) -> tuple[Outcome, ...]:
    """Put back each read-ahead that nfstuned set, unless somebody has changed it since."""
    return _undo_all(root, state, Hold.UNDONE)


def _undo_all(root: Root, state: State, hold: Hold | None) -> tuple[Outcome, ...]:
    records = sorted(state.all().values(), key=lambda record: int(record.device.partition(":")[2]))
    return tuple(_undo(root, state, record, hold) for record in records if record.hold is None)


def hold_existing(root: Root, state: State) -> None:
    """Hold every superblock that exists, at the first start after the package's installation.

    A superblock that comes meanwhile is a new one. One with the value of its record stays the service's: an
    installation that was interrupted is completed while the service runs. Raises OSError, and the sign of
    that start stays, where a superblock cannot be held: at a start without it, its value would change.
    """
    if not root.exists(FIRST_START):
        return
    with root.faults.block() as faults:
        devices = identities(root)
    if faults:
        fault = next(iter(faults.values()))
        raise OSError(errno.EIO, fault.message, fault.file)
    for device in devices:
        _hold(root, state, device)
    os.unlink(root.path(FIRST_START))


def _hold(root: Root, state: State, device: str) -> None:
    """Hold a superblock, unless it is gone. Raises OSError."""
    try:
        # Nobody changes a value that is no number.
        with suppress(ParseError), Bdi(root, device) as bdi:
            value, known = bdi.read_kb(), state.get(device)
            if known is None or (known.bdi, known.written_kb) != (bdi.inode, value):
                state.put(Record(device, bdi.inode, value, value, Hold.EXISTING))
    except OSError as error:
        if error.errno not in GONE:
            raise


def restore(root: Root, state: State) -> tuple[Outcome, ...]:
    """Put back what undo() would, without a memory of it: whoever tunes next meets untouched superblocks."""
    # Without a hold: where a record cannot be dropped, the next start tunes the superblock all the same.
    outcomes = _undo_all(root, state, None)
    for outcome in outcomes:
        if outcome.result is Result.DONE:
            state.drop(outcome.action.device)
    return outcomes


def _undo(root: Root, state: State, record: Record, hold: Hold | None) -> Outcome:
    """Put back the value of a record, which gets the hold; a refusal is an outcome."""
    action = Action(
        "read-ahead", record.device, record.bdi, record.device, record.written_kb, record.original_kb, "undo"
    )
    try:
        with Bdi(root, record.device) as bdi:
            if bdi.inode != record.bdi:
                state.drop(record.device)
                return Outcome(action, Result.SKIPPED, "unmounted since")
            value = bdi.read_kb()
            if value != record.written_kb:
                return Outcome(action, Result.SKIPPED, f"changed to {value} by another writer since")
            state.put(Record(record.device, record.bdi, record.original_kb, record.original_kb, hold))
            _write_or_forget(bdi, state, record.original_kb, record)
            return Outcome(action, Result.DONE, "the value before nfstuned")
    except (OSError, ParseError) as error:
        return refused(action, error)


def refused(action: Action, error: OSError | ParseError) -> Outcome:
    """Return the outcome of an action that the kernel refused."""
    if isinstance(error, ParseError):
        return Outcome(action, Result.FAILED, str(error))
    if error.errno in GONE:
        return Outcome(action, Result.SKIPPED, "unmounted meanwhile")
    reason = f"{error.filename or action.device}: {os.strerror(error.errno or 0)}"
    if isinstance(error, PermissionError) and os.geteuid() != 0:
        reason += "; run it as root"
    return Outcome(action, Result.FAILED, reason)
