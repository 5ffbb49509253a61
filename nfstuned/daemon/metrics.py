"""The metrics' place in the loop: nothing is loaded before somebody wants them."""

from __future__ import annotations

import select
from collections.abc import Callable, Container
from typing import TYPE_CHECKING

from nfstuned.model.policy import Prometheus

if TYPE_CHECKING:
    from nfstuned.daemon.metrics_writer import Metrics


class MetricsOnDemand:
    """Metrics where the configuration asks for them, else nothing; scrapers wake the loop through `poll`."""

    def __init__(self, poll: select.epoll, build: Callable[[type[Metrics]], Metrics]) -> None:
        self._poll = poll
        self._build = build
        self._metrics: Metrics | None = None
        self._fd = -1

    @property
    def deadline(self) -> float:
        """When `serve` is due though nobody asked; monotonic seconds."""
        return self._metrics.deadline if self._metrics is not None else float("inf")

    def configure(self, settings: Prometheus) -> None:
        """Give what the configuration asks for. Loading the library takes tens of milliseconds, once."""
        if self._metrics is None:
            if not settings.wanted:
                return
            from nfstuned.daemon.metrics_writer import Metrics  # noqa: PLC0415 - the daemon is small without

            self._metrics = self._build(Metrics)
        self._metrics.configure(settings)
        # What was closed is forgotten before anything is opened: descriptors get the same numbers again.
        self._watch()
        self.update()

    def serve(self, ready: Container[int], now: float) -> None:
        """Answer whoever asked; return at once when nobody did."""
        if self._metrics is not None and (self._fd in ready or now >= self._metrics.deadline):
            self._metrics.serve()

    def update(self) -> None:
        """Count the last sample."""
        if self._metrics is not None:
            self._metrics.update()
            self._watch()

    def close(self) -> None:
        """Stop listening."""
        if self._metrics is not None:
            self._metrics.close()

    def _watch(self) -> None:
        """Watch the descriptor that scrapers come to; a closed descriptor has left the poll by itself."""
        fd = self._metrics.fileno() if self._metrics is not None else -1
        if fd != self._fd and fd >= 0:
            self._poll.register(fd, select.EPOLLIN)
        self._fd = fd
