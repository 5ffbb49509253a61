"""How bad a finding is."""

from __future__ import annotations

from enum import Enum


class Severity(str, Enum):
    """How bad a finding is, the worst first."""

    ERROR = "error"
    """It will not work, or the vendor does not support it."""
    WARNING = "warning"
    """It loses performance, or is not guaranteed."""
    ADVICE = "advice"
    """Better for most."""
    INFO = "info"
    """Worth knowing."""

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)
