"""The rule catalogue: every rule of `nfstuned check`, in the order of the ids.

A rule is one value in its family's module, one page in docs/rules/, and at least one host in tests/hosts/
that fails it and one that passes.
"""

from __future__ import annotations

from nfstuned.core.rules import (
    combined,
    endpoint,
    host,
    image,
    interfaces,
    mountconf,
    nconnect,
    options,
    readahead,
    smb,
    transports,
)
from nfstuned.model.finding import Rule

RULES: tuple[Rule, ...] = (
    *readahead.RULES,
    *nconnect.RULES,
    *combined.RULES,
    *transports.RULES,
    *mountconf.RULES,
    *options.RULES,
    *endpoint.RULES,
    *host.RULES,
    *interfaces.RULES,
    *image.RULES,
    *smb.RULES,
)
