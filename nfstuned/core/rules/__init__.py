"""The rule catalogue: every rule of `nfstuned check`, in the order of the ids.

A rule is one value in its family's module, one page in docs/rules/, and at least one host in tests/hosts/
that fails it and one that passes.
"""

from __future__ import annotations

from nfstuned.core.rules import endpoint, host, image, interfaces, nconnect, options, readahead, smb
from nfstuned.model.finding import Rule

RULES: tuple[Rule, ...] = (
    *readahead.RULES,
    *nconnect.RULES,
    *options.RULES,
    *endpoint.RULES,
    *host.RULES,
    *interfaces.RULES,
    *image.RULES,
    *smb.RULES,
)
