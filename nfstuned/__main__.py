"""`nfstuned` and `python -m nfstuned`: what the unit runs starts without the command line's libraries."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command that the arguments name; return its exit status."""
    if sys.argv[1:] == ["daemon"]:
        from nfstuned.daemon.main import run  # noqa: PLC0415 - one of the two is never loaded

        return run()
    if sys.argv[1:] in (["udev", "mask"], ["udev", "unmask"]):
        from nfstuned.daemon.mask import change  # noqa: PLC0415 - the unit runs it, and mounts wait
        from nfstuned.host.root import Root  # noqa: PLC0415 - as above

        return change(Root(), sys.argv[2])
    from nfstuned.cli import main as command_line  # noqa: PLC0415 - as above

    return command_line()


if __name__ == "__main__":
    sys.exit(main())
