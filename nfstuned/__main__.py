"""`nfstuned` and `python -m nfstuned`: what the unit runs starts without the command line's libraries."""

from __future__ import annotations

import os
import sys

_STREAMS = "nfstuned_streams"
"""The option of Python (-X) that says which encoding the streams have."""
INTERRUPTED = 130
"""What a shell says of a command that Ctrl-C ended."""


def main() -> int:
    """Run the command that the arguments name; return its exit status, also where Ctrl-C comes early."""
    try:
        names_in_utf_8()
        return _run()
    except KeyboardInterrupt:
        return INTERRUPTED


def _run() -> int:
    if sys.argv[1:] == ["daemon"]:
        from nfstuned.daemon.main import run  # noqa: PLC0415 - one of the two is never loaded

        return run()
    if sys.argv[1:] in (["udev", "mask"], ["udev", "unmask"]):
        from nfstuned.daemon.mask import change  # noqa: PLC0415 - the unit runs it, and mounts wait
        from nfstuned.host.root import Root  # noqa: PLC0415 - as above

        return change(Root(), sys.argv[2])
    from nfstuned.cli import main as command_line  # noqa: PLC0415 - as above

    return command_line()


def names_in_utf_8() -> None:
    """Begin anew in Python's UTF-8 mode where the locale has another encoding; the streams keep theirs.

    Names are bytes to the kernel. Parsers read them as UTF-8, and Python would give them back to the kernel
    in the locale's encoding, which may not even have the letters.
    """
    if sys.getfilesystemencoding() != "utf-8" and sys.executable:
        encoding = sys.stdout.encoding if sys.stdout is not None else "ascii"
        mode = ("-X", "utf8", "-X", f"{_STREAMS}={encoding}")
        try:  # noqa: SIM105 - contextlib takes time to load, in which Ctrl-C would be a traceback
            os.execv(sys.executable, [sys.executable, *mode, *sys.orig_argv[1:]])  # noqa: S606 - itself
        except OSError:
            pass
    encoding = sys._xoptions.get(_STREAMS)  # noqa: SLF001 - documented, if not by every Python
    if isinstance(encoding, str):
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.reconfigure(encoding=encoding, errors="backslashreplace")  # type: ignore[union-attr]  # typeshed says TextIO


if __name__ == "__main__":
    sys.exit(main())
