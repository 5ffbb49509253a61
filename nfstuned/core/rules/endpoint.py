"""Rules NFS4xx: names, addresses, ports and TLS tunnels."""

from __future__ import annotations

from nfstuned.model.finding import Rule

RULES: tuple[Rule, ...] = ()
