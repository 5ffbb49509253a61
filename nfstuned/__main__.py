"""`nfstuned` and `python -m nfstuned`. The service loads no library of the command line."""

from __future__ import annotations

import gc
import os
import sys

_STREAMS = "nfstuned_streams"
"""The option of Python (-X) with the encoding of the streams."""
INTERRUPTED = 130
"""The exit status that a shell gives a command which Ctrl-C ended: 128 + SIGINT (2)."""


def main() -> int:
    """Run the command that the arguments name; return its exit status, also where Ctrl-C comes early."""
    try:
        ensure_utf_8_names()
        return _run()
    except KeyboardInterrupt:
        return INTERRUPTED


def _run() -> int:
    """Run the daemon, a change of the masks, or the command line; return the exit status."""
    if sys.argv[1:] == ["daemon"]:
        from nfstuned.daemon.loop import serve  # noqa: PLC0415 - the daemon and the command line never load each other

        return serve()
    if sys.argv[1:] in (["udev", "mask"], ["udev", "unmask"]):
        from nfstuned.daemon.mask import change_masks  # noqa: PLC0415 - the unit runs it, and mounts wait
        from nfstuned.host.root import Root  # noqa: PLC0415 - as above

        return change_masks(Root(), sys.argv[2])
    # Modules have no garbage, but the collector's search for it would take a sixth of a command's time: while
    # they load (nfstuned.cli.app starts the collector for the command), and when the process ends.
    gc.disable()
    from nfstuned.cli.app import main as command_line  # noqa: PLC0415 - as above

    status = command_line()
    gc.freeze()
    return status


def ensure_utf_8_names() -> None:
    """Start this process again in Python's UTF-8 mode where the locale has another encoding (execv).

    File names are bytes to the kernel, and the parsers read them as UTF-8. Without the mode, Python would
    encode a name in the locale's encoding, which may lack its letters. stdout and stderr keep the locale's.
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
