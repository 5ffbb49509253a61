"""What `nfstuned bench` lets children do: whatever touches the mount, and putting back when bench has ended.

`python -I -S guard_child.py guard RECORD` takes from standard input a line for each thing to put back, writes
it to RECORD, answers "ok", and puts everything back when the input ends, however bench ended. `sweep RECORD`
does so for what a guard left behind. `look FOLDER` says what room there is, and `make FOLDER` makes a folder
and says its inode.
What goes wrong is printed. It imports nothing but the standard library, and is run as a file, so that it
starts in no time.
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

GONE_S = 5.0
"""How long a killed program has to end."""
FILE = re.compile(r"\d+-\d+-\d+\.\d+\.\d+", re.ASCII)
"""The names that host.bench.fio has fio give its files."""
_STEP_S = 0.05
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def guard(record: str) -> str:
    """Take lines until the input ends, then put everything back; return what could not be.

    The record is for the next start, should this process be killed; somebody may have removed it by then.
    """
    lines = []
    with open(record, "x", encoding="utf-8") as file:
        for line in sys.stdin:
            file.write(line)
            file.flush()
            lines.append(line)
            sys.stdout.write("ok\n")
            sys.stdout.flush()
    return _finish(lines, record)


def sweep(record: str) -> str:
    """Put back what a guard that was killed left; return what could not be."""
    with open(record, encoding="utf-8") as file:
        return _finish([line for line in file if line.endswith("\n")], record)


def _finish(lines: list[str], record: str) -> str:
    """Put back what lines name, and remove their record when all of it is; return what is not.

    Programs end first, or they would go on with their files. The folder comes last, whose server may not
    answer.
    """
    items = [json.loads(line) for line in lines]
    ordered = sorted(items, key=lambda item: _ORDER.index(item["what"]))
    problems = [problem for item in ordered if (problem := _put_back(item))]
    if not problems:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(record)
    return "\n".join(problems)


def _put_back(item: dict[str, object]) -> str:
    """Put one thing back; return why it is not."""
    try:
        _PUT_BACK[str(item["what"])](item)
    except OSError as error:
        return f"{error.filename or item['what']}: {error.strerror}"
    return ""


def _end(item: dict[str, object]) -> None:
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


def _unmount(item: dict[str, object]) -> None:
    """End the process that holds a mount in a namespace of its own; the kernel unmounts it with the process.

    Nobody else has the mount, and whatever used it has ended before: it is not detached from anything. Where
    the server does not answer, the process stays until it does, and is left for the next start to see.
    """
    _end(item)
    if start_of(int(str(item["pid"]))) == item["began"]:
        raise OSError(errno.EBUSY, "still mounted for bench: its server does not answer", item["source"])


def _remove_point(item: dict[str, object]) -> None:
    """Remove a mount point of bench's, and bench's folder of them when it is the last."""
    path = str(item["path"])
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(path)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(path))


def _set_back(item: dict[str, object]) -> None:
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


def _remove_files(item: dict[str, object]) -> None:
    """Remove bench's files from the folder that it made, and from no other that has its name by now.

    Whoever may write beside it can rename it and put another in its place. It is told by its inode alone: the
    device of a mount is another one when the folder is mounted anew, as after a boot.
    """
    with contextlib.suppress(FileNotFoundError):
        _empty(str(item["path"]), item["inode"])


def _remove_folder(item: dict[str, object]) -> None:
    """Remove a folder that is empty. Where its mount is gone it is still on the server."""
    path = str(item["path"])
    try:
        os.rmdir(path)
    except FileNotFoundError:
        if not os.path.ismount(str(item["point"])):
            raise OSError(
                errno.ENODEV, "still on the server: the next bench of the same folder removes it", path
            ) from None


def _remove_both(item: dict[str, object]) -> None:
    """Remove files and folder as a record of an earlier version has them: it does not know the inode."""
    with contextlib.suppress(FileNotFoundError):
        _empty(str(item["path"]), None)
    _remove_folder(item)


def _empty(path: str, inode: object) -> None:
    """Remove bench's files from a folder; whatever else somebody put there stays. Raises OSError."""
    folder = os.open(path, _FOLDER)
    try:
        if inode is not None and os.fstat(folder).st_ino != inode:
            raise OSError(errno.ESTALE, "is not the folder that bench made: nothing in it was removed", path)
        for name in filter(FILE.fullmatch, os.listdir(folder)):
            if stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)


def _leave(item: dict[str, object]) -> None:
    """Do nothing: who began it is for the next start to know."""


_ORDER = ("owner", "program", "mount", "point", "read-ahead", "files", "empty-folder", "folder")
_PUT_BACK = {
    "owner": _leave,
    "program": _end,
    "mount": _unmount,
    "point": _remove_point,
    "read-ahead": _set_back,
    "files": _remove_files,
    "empty-folder": _remove_folder,
    "folder": _remove_both,
}


def look(folder: str) -> str:
    """Return as JSON the free bytes and files, and whether it may be written to. Raises OSError."""
    room = os.statvfs(folder)
    return json.dumps(
        {
            "free_bytes": room.f_bavail * room.f_frsize,
            # NFSv3 servers without a limit say 0 of 0.
            "free_files": room.f_favail if room.f_files else None,
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


_WORDS = {"guard": guard, "sweep": sweep, "look": look, "make": make}


def main(argv: list[str]) -> int:
    """Do what is asked for; what goes wrong is on stderr."""
    try:
        said = _WORDS[argv[0]](argv[1])
    except OSError as error:
        sys.stderr.write(f"{error.filename or argv[1]}: {error.strerror}\n")
        return 1
    sys.stdout.write(said)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
