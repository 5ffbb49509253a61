"""What `apply --live` lets a child do, because the kernel may keep whoever does it waiting.

`python -I -S live_child.py ask POINT MOUNT_ID COUNT` sends COUNT requests over a mount, and `write FD WORD`
writes a word to an open file of sysfs. What goes wrong is printed; nothing else is. It imports nothing but
the standard library, and is run as a file, so that it starts in no time.

A request is an fstatfs(2): the kernel asks the server each time, whatever it has cached (nfs_statfs in
fs/nfs/super.c calls its version's statfs at once), and it changes nothing there. An O_PATH descriptor is
enough for it, which takes no permission to read the folder (open(2)).
"""

from __future__ import annotations

import os
import sys


def ask(point: str, mount_id: str, count: str) -> str:
    """Send `count` requests over the mount at `point`; return why none was sent, "" where all were.

    Raises OSError where the kernel or the server refuses a request.
    """
    fd = os.open(point, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as file:
        known = dict(line.split(":", 1) for line in file.read().splitlines() if ":" in line)
    if known.get("mnt_id", "").strip() != mount_id:
        return f"another mount is at {point} by now"
    for _ in range(int(count)):
        os.fstatvfs(fd)
    return ""


def write(fd: str, word: str) -> str:
    """Write a word to an open file; return why not all of it was taken. Raises OSError."""
    data = word.encode("ascii")
    return "" if os.write(int(fd), data) == len(data) else "the kernel did not take it"


def main(argv: list[str]) -> None:
    """Run `ask` or `write`, as the arguments say, and print why it failed."""
    try:
        said = ask(*argv[1:]) if argv[0] == "ask" else write(*argv[1:])
    except OSError as error:
        said = error.strerror or str(error)
    sys.stdout.write(said)


if __name__ == "__main__":
    main(sys.argv[1:])
