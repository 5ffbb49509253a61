"""Rules NFS5xx: the kernel, the machine and its network interfaces."""

from __future__ import annotations

from nfstuned.core.rules import system
from nfstuned.model.finding import Rule

RULES: tuple[Rule, ...] = (*system.RULES,)
