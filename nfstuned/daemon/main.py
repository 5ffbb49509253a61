"""The service's entry."""

from __future__ import annotations

import gc
import os

from nfstuned import __version__
from nfstuned.daemon.loop import Daemon
from nfstuned.host.process import without_huge_pages
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Journal, Message, Priority


def serve() -> int:
    """Serve until SIGTERM; return the exit status: 1 when the kernel's events cannot be had."""
    without_huge_pages()
    journal = Journal()
    journal.send(Message.STARTED, f"nfstuned {__version__}", Priority.INFO, version=__version__)
    try:
        daemon = Daemon(Root(), journal)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        text = f"cannot start: {where}{error.strerror}" + ("" if os.geteuid() == 0 else "; run it as root")
        journal.send(Message.STOPPED, text, Priority.ERROR, reason=text)
        return 1
    # The modules live as long as the process: keep collections away from them.
    gc.collect()
    gc.freeze()
    return daemon.run()
