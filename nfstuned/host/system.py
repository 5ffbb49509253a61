"""What of a host or an image is not about one mount: parameters, helpers, services."""

from __future__ import annotations

from nfstuned.host.image import at_first_boot
from nfstuned.host.root import Root
from nfstuned.model.facts import System


def observe_system(root: Root, *, image: bool) -> System:
    """Return it; of an image nothing that only a running kernel knows."""
    return at_first_boot(root, System()) if image else System()
