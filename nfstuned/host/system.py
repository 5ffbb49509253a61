"""What of a host or an image is not about one mount: parameters, helpers, services."""

from __future__ import annotations

from nfstuned.host.root import Root
from nfstuned.host.tls import observe_tls
from nfstuned.model.facts import System


def observe_system(root: Root, *, image: bool) -> System:
    """Return it; of an image nothing that only a running kernel knows."""
    return System(tls=observe_tls(root, image=image))
