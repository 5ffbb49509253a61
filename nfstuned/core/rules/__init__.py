"""The rule catalogue: every rule of `nfstuned check`, in the order of the ids.

A rule is one value in its family's module, one page in docs/rules/, and at least one host in tests/hosts/
that fails it and one that passes.
"""

from __future__ import annotations

from nfstuned.core.rules import (
    nfs1_read_ahead,
    nfs2_connections,
    nfs2_lines,
    nfs2_nconnect,
    nfs3_options,
    nfs4_endpoint,
    nfs5_interfaces,
    nfs5_system,
    nfs7_image,
    smb6,
)
from nfstuned.model.finding import Rule

RULES: tuple[Rule, ...] = (
    *nfs1_read_ahead.RULES,
    *nfs2_nconnect.RULES,
    *nfs2_nconnect.COMBINED_RULES,
    *nfs2_connections.RULES,
    *nfs2_lines.RULES,
    *nfs3_options.RULES,
    *nfs4_endpoint.RULES,
    *nfs5_system.RULES,
    *nfs5_interfaces.RULES,
    *nfs7_image.RULES,
    *smb6.RULES,
)
