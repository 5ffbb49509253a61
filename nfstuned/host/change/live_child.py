"""What `apply --live` lets a child do, because the kernel may keep whoever does it waiting.

`python -I -S live_child.py ask POINT MOUNT_ID COUNT` sends COUNT requests over a mount, and `write FD WORD`
writes a word to an open file of sysfs. What goes wrong is printed; nothing else is. It imports nothing but
the standard library, and is run as a file, so that it starts in no time.

A request is an fstatfs(2): the kernel asks the server each time, whatever it has cached (nfs_statfs in
fs/nfs/super.c calls its version's statfs at once), and it changes nothing there. The descriptor is an O_PATH
one: to open the folder itself would be a matter between the kernel and the server, with a state to give back.
"""

from __future__ import annotations

import os
import sys


def ask(point: str, mount_id: str, count: str) -> str:
    """Send requests over the mount at `point`; return what is against it. Raises OSError."""
    fd = os.open(point, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as file:
        known = dict(line.split(":", 1) for line in file.read().splitlines() if ":" in line)
    if known.get("mnt_id", "").strip() != mount_id:
        return f"another mount is at {point} by now"
    for _ in range(int(count)):
        os.fstatvfs(fd)
    return ""


def write(fd: str, word: str) -> str:
    """Write a word to an open file. Raises OSError."""
    data = word.encode("ascii")
    return "" if os.write(int(fd), data) == len(data) else "the kernel did not take it"


def main(argv: list[str]) -> None:
    """Do what is asked for, and print what went wrong."""
    try:
        said = ask(*argv[1:]) if argv[0] == "ask" else write(*argv[1:])
    except OSError as error:
        said = error.strerror or str(error)
    sys.stdout.write(said)


if __name__ == "__main__":
    main(sys.argv[1:])
