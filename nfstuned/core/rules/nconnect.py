"""Rules NFS2xx: nconnect and the transports of a server."""

from __future__ import annotations

from nfstuned.model.finding import Rule

RULES: tuple[Rule, ...] = ()
