"""The service's entry."""

from __future__ import annotations

import gc

from nfstuned import __version__
from nfstuned.daemon.loop import Daemon
from nfstuned.host.journal import Journal, Message, Priority
from nfstuned.host.root import Root


def run() -> int:
    """Serve until SIGTERM; return the exit status."""
    journal = Journal()
    journal.send(Message.STARTED, f"nfstuned {__version__}", Priority.INFO, version=__version__)
    daemon = Daemon(Root(), journal)
    # What is loaded by now lives as long as the process: keep collections away from it.
    gc.collect()
    gc.freeze()
    return daemon.run()
