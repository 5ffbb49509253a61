"""Rules NFS3xx: mount options."""

from __future__ import annotations

from nfstuned.model.finding import Rule

RULES: tuple[Rule, ...] = ()
