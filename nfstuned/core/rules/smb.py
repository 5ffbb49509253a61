"""Rules SMB6xx: SMB mounts through the kernel's cifs."""

from __future__ import annotations

from nfstuned.model.finding import Rule

RULES: tuple[Rule, ...] = ()
