"""The decorator of rules, `@rule(ID, NAME, SEVERITY, needs=(…), source=…)`, and names for its arguments."""

from __future__ import annotations

from nfstuned.model.facts import Need, Severity, rule

__all__ = ["ADVICE", "ERROR", "IMAGE", "INFO", "LIVE", "NETWORK", "SAMPLE", "WARNING", "rule"]

ERROR, WARNING, ADVICE, INFO = Severity
LIVE, NETWORK, SAMPLE, IMAGE = Need
