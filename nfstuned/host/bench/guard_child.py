"""The children of `nfstuned bench`: they touch the mount, and put everything back when bench has ended.

`python -I -S guard_child.py guard RECORD` takes a line of JSON at a time from standard input. A thing to put
back is written to RECORD. "separate" gives the process a mount namespace and a host name of its own, "mount"
mounts there, "unmount" unmounts; when the process ends, also by kill -9, the kernel unmounts: no other
process is in the namespace. The answer is "ok" or a reason. When the input ends, however bench ended,
everything is put back.

`sweep RECORD` does so for a guard that was killed. `look FOLDER` prints the free space, and `make FOLDER`
makes a folder and prints its inode. Problems are printed.

It imports nothing but the standard library, and is run as a file, so that it starts in no time.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import signal
import stat
import sys
import time
from collections.abc import Callable, Mapping

GONE_S = 5.0
"""How long a killed program has to end."""
BUSY_S = 10.0
"""How long a program that was killed may take to close its files."""
FILE = re.compile(r"\d+-\d+-\d+\.\d+\.\d+", re.ASCII)
"""The names that host.bench.fio has fio give its files."""
_STEP_S = 0.05
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CLONE_NEWNS, _CLONE_NEWUTS = 0x00020000, 0x04000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_SYNCHRONOUS = 2, 4, 8, 16
_MS_NOATIME, _MS_REC, _MS_SLAVE = 1024, 1 << 14, 1 << 19
_UMOUNT_NOFOLLOW = 8
_Item = Mapping[str, object]


def guard(record: str) -> str:
    """Take lines until the input ends, then put everything back; return the problems, a line each.

    The record is for the next start, should this process be killed; somebody may have removed it by then.
    """
    lines, mounted = [], ""
    with open(record, "x", encoding="utf-8") as file:
        for line in sys.stdin:
            item = json.loads(line)
            answer = "ok"
            if item["kind"] in {"separate", "mount", "unmount"}:
                try:
                    mounted = _change_mounts(item, mounted)
                except OSError as error:
                    answer = error.strerror or "it failed"
            else:
                file.write(line)
                file.flush()
                lines.append(line)
            sys.stdout.write(answer + "\n")
            sys.stdout.flush()
    return _finish(lines, record, mounted)


def _change_mounts(item: _Item, mounted: str) -> str:
    """Make the namespaces, a mount in them, or unmount it; return the mount point, "" for none."""
    if item["kind"] == "separate":
        _separate(str(item["name"]))
    elif item["kind"] == "mount":
        _mount(item)
        return str(item["point"])
    elif mounted:
        _unmount(mounted)
    return ""


def _call(name: str, *arguments: object) -> None:
    """Call the C library. Raises OSError."""
    import ctypes  # noqa: PLC0415 - for mounts alone

    words = (ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments)
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*words):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _separate(name: str) -> None:
    """Leave the host's mount namespace and host name. Raises OSError.

    A mount that the host unmounts afterwards is unmounted here, too (MS_SLAVE): this process holds none of
    the host's mounts.
    """
    _call("unshare", _CLONE_NEWNS | _CLONE_NEWUTS)
    encoded = os.fsencode(name)
    _call("sethostname", encoded, len(encoded))
    _call("mount", b"none", b"/", None, _MS_REC | _MS_SLAVE, None)


def _mount(wanted: _Item) -> None:
    """Have the kernel mount, without mount.nfs and the files that it reads. Raises OSError."""
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC | _MS_NOATIME
    if wanted["synchronous"]:
        flags |= _MS_SYNCHRONOUS
    source, point, fstype, options = (
        os.fsencode(str(wanted[key])) for key in ("source", "point", "fstype", "options")
    )
    _call("mount", source, point, fstype, flags, options)


def _unmount(point: str) -> None:
    """Unmount, never lazily nor by force, once killed programs have closed their files. Raises OSError."""
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            _call("umount2", os.fsencode(point), _UMOUNT_NOFOLLOW)
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
        else:
            return
        time.sleep(_STEP_S)


def undo_record(record: str) -> str:
    """Put back everything that a killed guard left; return the problems, a line each."""
    with open(record, encoding="utf-8") as file:
        return _finish([line for line in file if line.endswith("\n")], record)


def _finish(lines: list[str], record: str, mounted: str = "") -> str:
    """Put back everything that lines name, then remove their record; return the problems, a line each.

    The read-ahead comes first: everything after it can wait for a server. Programs end before their files
    are removed, or they would go on with them.
    """
    # The first line names the owner, for the next start.
    items: list[_Item] = [item for item in map(json.loads, lines) if item["kind"] != "owner"]
    if mounted:
        items.append({"kind": "mounted", "point": mounted})
    order = list(PUT_BACK)
    ordered = sorted(items, key=lambda item: order.index(str(item["kind"])))
    problems = [problem for item in ordered if (problem := _put_back(item))]
    if not problems:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(record)
    return "\n".join(problems)


def _put_back(item: _Item) -> str:
    """Put one thing back; return the problem."""
    try:
        PUT_BACK[str(item["kind"])](item)
    except OSError as error:
        return f"{error.filename or item['kind']}: {error.strerror}"
    return ""


def _end(item: _Item) -> None:
    """End a program, if it is still the same one."""
    pid, began = int(str(item["pid"])), str(item["began"])
    if start_of(pid) != began:
        return
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + GONE_S
    while start_of(pid) == began and time.monotonic() < deadline:
        time.sleep(_STEP_S)


def start_of(pid: int) -> str:
    """Return when a program began, in ticks since the boot; "" where it has ended (proc(5), stat)."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in {"Z", "X"} else fields[19]


def _remove_point(item: _Item) -> None:
    """Remove a mount point of bench's, and bench's folder of them when it is the last."""
    path = str(item["path"])
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(path)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(path))


def _set_back(item: _Item) -> None:
    """Write the old value, if it is still the same superblock."""
    try:
        fd = os.open(str(item["file"]), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if os.fstat(fd).st_ino == item["inode"]:
            os.pwrite(fd, b"%d\n" % int(str(item["kb"])), 0)
    finally:
        os.close(fd)


def _remove_files(item: _Item) -> None:
    """Remove bench's files from the folder that it made, and from no other that has its name by now.

    Users who may write to the folder above can rename it and put another in its place. Its inode alone names
    it: the device of a mount is another one when the folder is mounted again, as after a boot.
    """
    with contextlib.suppress(FileNotFoundError):
        _empty(str(item["path"]), item["inode"])


def _remove_folder(item: _Item) -> None:
    """Remove a folder that is empty. Where its mount is gone it is still on the server."""
    path = str(item["path"])
    try:
        os.rmdir(path)
    except FileNotFoundError:
        if not os.path.ismount(str(item["point"])):
            raise OSError(
                errno.ENODEV, "still on the server: the next bench of the same folder removes it", path
            ) from None


def _empty(path: str, inode: object) -> None:
    """Remove bench's files from a folder; other files stay. Raises OSError."""
    folder = os.open(path, _FOLDER)
    try:
        if os.fstat(folder).st_ino != inode:
            raise OSError(errno.ESTALE, "is not the folder that bench made: nothing in it was removed", path)
        for name in filter(FILE.fullmatch, os.listdir(folder)):
            if stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)


PUT_BACK: dict[str, Callable[[_Item], None]] = {
    "read-ahead": _set_back,
    "program": _end,
    "mounted": lambda item: _unmount(str(item["point"])),  # its users have ended before
    "point": _remove_point,
    "files": _remove_files,
    "empty-folder": _remove_folder,
}
"""In the order in which it is done."""


def folder_state(folder: str) -> str:
    """Return as JSON the free bytes, and whether it may be written to. Raises OSError."""
    room = os.statvfs(folder)
    return json.dumps(
        {
            "free_bytes": room.f_bavail * room.f_frsize,
            "read_only": bool(room.f_flag & os.ST_RDONLY),
            "writable": os.access(folder, os.W_OK | os.X_OK),
        }
    )


def make(folder: str) -> str:
    """Make a folder that nobody else may enter, and return its inode. Raises OSError."""
    os.mkdir(folder, 0o700)
    made = os.open(folder, _FOLDER)
    try:
        # In the meantime somebody may have put another one in its place; in an empty one nothing can be lost.
        if os.listdir(made):
            raise OSError(errno.ENOTEMPTY, "is not the folder that was just made", folder)
        return str(os.fstat(made).st_ino)
    finally:
        os.close(made)


_WORDS = {"guard": guard, "sweep": undo_record, "look": folder_state, "make": make}


def main(argv: list[str]) -> int:
    """Run one of the words; problems are on stderr."""
    try:
        output = _WORDS[argv[0]](argv[1])
    except OSError as error:
        sys.stderr.write(f"{error.filename or argv[1]}: {error.strerror}\n")
        return 1
    sys.stdout.write(output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
