"""Rules NFS7xx: what an image will do at its first boot."""

from __future__ import annotations

from nfstuned.model.finding import Rule

RULES: tuple[Rule, ...] = ()
