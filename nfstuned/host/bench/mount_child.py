"""The process that mounts for `nfstuned bench`, where nobody else sees it.

`python -I -S mount_child.py POINT NAME` waits for a line on standard input, by which its guard knows of it.
Then it has a mount namespace and a host name (NAME) of its own, and takes a line of JSON at a time:
{"source", "fstype", "options", "synchronous"} is mounted on POINT, null is unmounted. It answers "ok", or why
not. When the input ends it unmounts, and when it ends, also by kill -9, the kernel does: the namespace has no
other process, and the host's own never has the mount.

It imports nothing but the standard library, and is run as a file, so that it starts in no time.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import sys
import time
from collections.abc import Mapping

_CLONE_NEWNS, _CLONE_NEWUTS = 0x00020000, 0x04000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_SYNCHRONOUS = 2, 4, 8, 16
_MS_NOATIME, _MS_REC, _MS_SLAVE = 1024, 1 << 14, 1 << 19
_UMOUNT_NOFOLLOW = 8
BUSY_S = 10.0
"""How long a program that was killed may take to close its files."""
_STEP_S = 0.05
_LIBC = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    """Call the C library. Raises OSError."""
    if getattr(_LIBC, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def separate(name: str) -> None:
    """Leave the host's mount namespace and host name. Raises OSError.

    What the host unmounts afterwards is unmounted here, too (MS_SLAVE): nothing of its own is held.
    """
    _call("unshare", _CLONE_NEWNS | _CLONE_NEWUTS)
    encoded = os.fsencode(name)
    _call("sethostname", encoded, ctypes.c_size_t(len(encoded)))
    _call("mount", b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_SLAVE), None)


def mount(point: str, wanted: Mapping[str, object]) -> None:
    """Have the kernel mount, without mount.nfs and the files that it reads. Raises OSError."""
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC | _MS_NOATIME
    if wanted["synchronous"]:
        flags |= _MS_SYNCHRONOUS
    source, fstype, options = (os.fsencode(str(wanted[key])) for key in ("source", "fstype", "options"))
    _call("mount", source, os.fsencode(point), fstype, ctypes.c_ulong(flags), options)


def unmount(point: str) -> None:
    """Unmount, never lazily nor by force, once what was killed has closed its files. Raises OSError."""
    deadline = time.monotonic() + BUSY_S
    while not _unmounted(point, last=time.monotonic() > deadline):
        time.sleep(_STEP_S)


def _unmounted(point: str, *, last: bool) -> bool:
    """Return whether it can be and is unmounted. Raises OSError for what is no matter of waiting."""
    try:
        _call("umount2", os.fsencode(point), _UMOUNT_NOFOLLOW)
    except OSError as error:
        if error.errno != errno.EBUSY or last:
            raise
        return False
    return True


def main(point: str, name: str) -> int:
    """Do what the lines of standard input ask for."""
    mounted = separated = False
    for line in sys.stdin:
        answer = "ok"
        try:
            if not separated:
                separate(name)
                separated = True
            elif (wanted := json.loads(line)) is not None:
                mount(point, wanted)
                mounted = True
            elif mounted:
                unmount(point)
                mounted = False
        except OSError as error:
            answer = error.strerror or "it failed"
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()
    if mounted:
        unmount(point)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
