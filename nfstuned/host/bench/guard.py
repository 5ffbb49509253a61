"""The guard of `nfstuned bench`: a process that runs fio, mounts, and puts everything back.

bench starts this file as a program, `python -I -S guard.py RECORD TARGET`, which imports nothing but the
standard library and so starts in no time. Its orders are lines of JSON. When they end, however bench has
ended, also by kill -9, the guard ends fio and puts everything back. Should the guard be killed, the next
bench of the same folder starts another guard with its record.

Mounts are in a mount namespace of the guard's own, over /run, which every system has. No other program sees
them, and the kernel unmounts them when the guard and its fio have ended.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import re
import secrets
import select
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfstuned.host.root import Root

END_S = 60.0
"""For a mount, an unmount, or the removal of the files: a server may take its time for each."""
SPACE_S = 20.0
"""For the free space, before anything has been changed."""
GONE_S = 5.0
"""How long a killed program has to end."""
BUSY_S = 10.0
"""How long a program that was killed may take to close its files."""
POINT = "/run"
"""Where the guard's namespace has bench's mount."""
FILE = re.compile(r"\d+-\d+-\d+\.\d+\.\d+", re.ASCII)
"""The names that host.bench.fio has fio give its files."""
_ENDING = ".json"
_STEP_S = 0.1
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HOST_NAME_ENDING = "-nfstuned-bench"
_LONGEST_HOST_NAME = 64
"""__NEW_UTS_LEN."""
_CLONE_NEWNS, _CLONE_NEWUTS = 0x00020000, 0x04000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_SYNCHRONOUS = 2, 4, 8, 16
_MS_NOATIME, _MS_REC, _MS_SLAVE = 1024, 1 << 14, 1 << 19
_UMOUNT_NOFOLLOW = 8
_PR_SET_PDEATHSIG = 1


def record_folder(root: Root) -> str:
    """Return the folder of a user's records; the next bench reads them, also after a boot."""
    if os.geteuid() == 0:
        return root.path("var/lib/nfstuned/bench")
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return f"{state}/nfstuned/bench"


def new_record(folder: str) -> str:
    """Return the name of a record that nobody has written yet."""
    return f"{folder}/{os.getpid()}-{secrets.token_hex(6)}{_ENDING}"


def restore_leftovers(folder: str, target: str) -> str:
    """Put back everything that the records of a target name; return the first problem."""
    with suppress(FileNotFoundError):
        for name in sorted(os.listdir(folder)):
            with suppress(OSError, KeyError, TypeError, ValueError):
                record = f"{folder}/{name}"
                with open(record, encoding="utf-8") as file:
                    ours = name.endswith(_ENDING) and json.loads(file.readline())["target"] == target
                if ours and (left := Guard(record, target).end()):
                    return left[0]
    return ""


class Guard:
    """bench's side: the connection to the guard's process."""

    def __init__(self, record: str, target: str) -> None:
        """Start the process; `target` is the folder of the mount that is measured."""
        os.makedirs(os.path.dirname(record), 0o700, exist_ok=True)
        name = os.path.basename(record).removesuffix(_ENDING)
        self.record = record
        self.folder = f"{target.rstrip('/')}/.nfstuned-bench-{name}"
        """The folder to measure in, which nobody has made yet."""
        self._process = subprocess.Popen(  # noqa: S603 - our own file
            [sys.executable, "-I", "-S", __file__, record, target],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # ^C is not for it
        )

    @property
    def pid(self) -> int:
        """The guard's process id."""
        return self._process.pid

    def ask(self, order: str, *arguments: object, seconds: float = END_S) -> Any:  # noqa: ANN401 - JSON
        """Return the answer to an order of `Restorer`. Raises OSError unless the order was carried out."""
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps([order, *arguments]) + "\n")
            self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            raise OSError(f"no answer within {seconds:g} s")
        line = self._process.stdout.readline()
        if not line:
            raise OSError("the guard has ended")
        result, problem = json.loads(line)
        if problem:
            raise OSError(problem)
        return result

    def run(self, argv: list[str], seconds: float) -> tuple[str, str]:
        """Run fio for so long at most; return its output, and the problem. Raises OSError."""
        output, problem = self.ask("run", argv, seconds, seconds=seconds + END_S)
        return output, problem

    def space(self, folder: str) -> int:
        """Return the free bytes of a folder. Raises OSError where bench may not make files there."""
        try:
            return int(self.ask("space", folder, seconds=SPACE_S))
        except OSError:
            self._process.kill()  # it may wait for the server, and has nothing to put back
            raise

    def end(self) -> tuple[str, ...]:
        """Let everything be put back; return the problems, which the next start tries to solve."""
        try:
            answers, _ = self._process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            return (f"the server has not answered for {END_S:g} s; {self.folder} is removed when it answers",)
        if self._process.returncode == 0:
            # After ^C there may be an answer before, which nobody has read.
            return tuple(json.loads(answers.splitlines()[-1]))
        if not os.path.exists(self.record):
            return ()
        later = "the next bench of the same folder puts them back"
        return (f"the changes in {self.record}: the guard has ended, and {later}",)


@dataclass(frozen=True, slots=True)
class Changes:
    """Everything to put back: a line of a record. A mount is not in it, since it ends with the guard."""

    target: str
    folder: str = ""
    """bench's own, which is perhaps not made yet; "" before."""
    point: str = ""
    """The mount point above the folder."""
    inode: int | None = None
    """The folder's. Its mount has another device when it is mounted again, as after a boot."""
    bdi: str = ""
    """The file of the superblock's read-ahead; "" where it stays as it is."""
    bdi_inode: int = 0
    kb: int = 0


class Restorer:
    """The guard's side: it carries out orders until they end, and then puts everything back."""

    def __init__(self, record: str, target: str) -> None:
        """Take over the changes of a record, if there is one. Raises BlockingIOError for a guard's own."""
        self.changes = Changes(target)
        self._record = record
        self._file: IO[str] | None = None
        self._program: subprocess.Popen[bytes] | None = None
        self._has_namespaces = self._has_mount = False
        if os.path.exists(record):
            lines = [line for line in self._opened_record() if line.endswith("\n")]
            self.changes = Changes(**json.loads(lines[-1])) if lines else self.changes

    def _opened_record(self) -> IO[str]:
        if self._file is None:
            self._file = open(self._record, "a+", encoding="utf-8")  # noqa: SIM115 - the lock is held to the end
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file.seek(0)
        return self._file

    def _announce(self, changes: Changes) -> None:
        """Write changes to the record before they are made. Raises OSError: nothing may be changed then."""
        self._opened_record().write(json.dumps(asdict(changes)) + "\n")
        self._opened_record().flush()
        self.changes = changes

    def obey(self) -> None:
        """Carry out the orders until they end; each is the name and the arguments of a method."""
        for line in sys.stdin:
            order, *arguments = json.loads(line)
            try:
                answer = getattr(self, order)(*arguments), ""
            except EOFError:
                return
            except OSError as error:
                answer = None, _reason(error)
            _print(answer)

    def space(self, folder: str) -> int:
        """Return the free bytes. Raises OSError where bench may not make files in the folder."""
        room = os.statvfs(folder)
        if room.f_flag & os.ST_RDONLY:
            raise OSError(errno.EROFS, "it is mounted read-only, and bench has to make files", folder)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise OSError(errno.EACCES, "this user may not make files there", folder)
        return room.f_bavail * room.f_frsize

    def make(self, folder: str, point: str) -> None:
        """Make a folder that nobody else may enter on the mount at `point`. Raises OSError."""
        self._announce(replace(self.changes, folder=folder, point=point))
        os.mkdir(folder, 0o700)
        made = os.open(folder, _FOLDER)
        try:
            # Somebody may have replaced it by another folder; in an empty folder nothing can be lost.
            if os.listdir(made):
                raise OSError(errno.ENOTEMPTY, "is not the folder that was just made", folder)
            self._announce(replace(self.changes, inode=os.fstat(made).st_ino))
        finally:
            os.close(made)

    def keep_read_ahead(self, bdi: str, inode: int, kb: int) -> None:
        """Have a superblock's read-ahead set back to `kb` at the end."""
        self._announce(replace(self.changes, bdi=bdi, bdi_inode=inode, kb=kb))

    def run(self, argv: list[str], seconds: float) -> tuple[str, str]:
        """Run fio; return its output, and the problem. Raises OSError, and EOFError where bench has ended."""
        with (
            open(os.memfd_create("output"), encoding="utf-8", errors="replace") as output,
            open(os.memfd_create("errors"), encoding="utf-8", errors="replace") as errors,
        ):
            self._program = subprocess.Popen(  # noqa: S603 - no shell sees the words
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                cwd="/",  # where fio leaves files of its own
                preexec_fn=_end_with_the_guard,  # noqa: PLW1509 - the guard has one thread
            )
            deadline, problem = time.monotonic() + seconds, ""
            while self._program.poll() is None and not problem:
                if select.select([sys.stdin], [], [], _STEP_S)[0]:
                    self._program.kill()
                    raise EOFError
                if time.monotonic() > deadline:
                    self._end_program()
                    problem = f"no end within {seconds:.0f} s: the server does not answer, or very slowly"
            output.seek(0)
            errors.seek(0)
            lines = [line.strip() for line in errors if line.strip()]
            if not problem and self._program.returncode:
                problem = lines[-1] if lines else f"fio ended with status {self._program.returncode}"
            return output.read(), problem

    def mount(self, own: Mapping[str, Any]) -> None:
        """Have the kernel mount an OwnMount, without mount.nfs and the files that it reads. Raises OSError.

        A mount that the host unmounts is unmounted in the namespace, too (MS_SLAVE). The host name is the
        same at each measurement: a server remembers a client for some time.
        """
        if not self._has_namespaces:
            name = os.uname().nodename[: _LONGEST_HOST_NAME - len(_HOST_NAME_ENDING)] + _HOST_NAME_ENDING
            about = "a mount namespace of its own"
            _call(about, "unshare", _CLONE_NEWNS | _CLONE_NEWUTS)
            _call(about, "sethostname", os.fsencode(name), len(os.fsencode(name)))
            _call(about, "mount", b"none", b"/", None, _MS_REC | _MS_SLAVE, None)
            self._has_namespaces = True
        flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC | _MS_NOATIME
        flags |= _MS_SYNCHRONOUS if own["synchronous"] else 0
        source, fstype, options = (os.fsencode(own[key]) for key in ("source", "fstype", "options"))
        about = f"mounting {own['source']} with {own['options']}"
        _call(about, "mount", source, POINT.encode(), fstype, flags, options)
        self._has_mount = True

    def unmount(self) -> None:
        """Unmount, never lazily nor by force, once a killed fio has closed its files. Raises OSError."""
        deadline = time.monotonic() + BUSY_S
        while self._has_mount:
            busy = errno.EBUSY if time.monotonic() < deadline else 0
            self._has_mount = not _call(
                "unmounting bench's own mount", "umount2", POINT.encode(), _UMOUNT_NOFOLLOW, expected=busy
            )
            time.sleep(_STEP_S if self._has_mount else 0)

    def put_back(self) -> list[str]:
        """Put everything back, then remove the record; return the problems.

        The read-ahead is the first: every later step can wait for a server. fio ends before its files are
        removed, or it would write them again.
        """
        steps = self._restore_read_ahead, self._end_program, self.unmount, self._remove_folder
        problems = [problem for step in steps if (problem := _problem_of(step))]
        if not problems:
            with suppress(FileNotFoundError):
                os.unlink(self._record)
        return problems

    def _restore_read_ahead(self) -> None:
        """Write the old value, if it is still the same superblock."""
        if self.changes.bdi:
            with suppress(FileNotFoundError), open(self.changes.bdi, "r+b", buffering=0) as file:
                if os.fstat(file.fileno()).st_ino == self.changes.bdi_inode:
                    file.write(b"%d\n" % self.changes.kb)

    def _end_program(self) -> None:
        if self._program is not None:
            self._program.kill()
            with suppress(subprocess.TimeoutExpired):
                self._program.wait(GONE_S)

    def _remove_folder(self) -> None:
        """Remove bench's files and folder, and nothing from another folder of its name.

        Users who may write to the folder above can rename it and put another in its place. Where its mount is
        gone it is still on the server.
        """
        path = self.changes.folder
        if not path:
            return
        try:
            if self.changes.inode is not None:
                self._remove_files(path)
            os.rmdir(path)
        except FileNotFoundError:
            if not os.path.ismount(self.changes.point):
                problem = "still on the server: the next bench of the same folder removes it"
                raise OSError(errno.ENODEV, problem, path) from None

    def _remove_files(self, path: str) -> None:
        folder = os.open(path, _FOLDER)
        try:
            if os.fstat(folder).st_ino != self.changes.inode:
                problem = "is not the folder that bench made: nothing in it was removed"
                raise OSError(errno.ESTALE, problem, path)
            for name in filter(FILE.fullmatch, os.listdir(folder)):
                if stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                    os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)


def _call(about: str, name: str, *arguments: object, expected: int = 0) -> bool:
    """Call the C library; return False for an expected errno. Raises OSError."""
    words = (ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments)
    if not getattr(ctypes.CDLL(None, use_errno=True), name)(*words):
        return True
    number = ctypes.get_errno()
    if number != expected:
        raise OSError(number, os.strerror(number), about)
    return False


def _end_with_the_guard() -> None:
    """Have the kernel kill this process when the guard ends."""
    _call("ending with the guard", "prctl", _PR_SET_PDEATHSIG, signal.SIGKILL.value)


def _problem_of(step: Callable[[], None]) -> str:
    try:
        step()
    except OSError as error:
        return _reason(error)
    return ""


def _reason(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)


def _print(answer: object) -> None:
    with suppress(BrokenPipeError):  # bench may have been killed
        os.write(sys.stdout.fileno(), json.dumps(answer).encode() + b"\n")


def main(record: str, target: str) -> None:
    """Carry out bench's orders, put everything back, and print the problems."""
    try:
        restorer = Restorer(record, target)
    except BlockingIOError:
        _print([f"{record}: another bench of this folder runs, or restores its changes: try again later"])
    else:
        restorer.obey()
        _print(restorer.put_back())


if __name__ == "__main__":
    main(*sys.argv[1:])
