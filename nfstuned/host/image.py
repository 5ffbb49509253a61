"""An image's root: its files, and nothing outside of it."""

from __future__ import annotations

from nfstuned.host.intent import observe_intent
from nfstuned.host.root import Root
from nfstuned.model.work import Snapshot
from nfstuned.parse.kernel import parse_os_release


def observe_image(root: Root) -> Snapshot:
    """Return what an image's files ask for; no kernel runs that could have mounts."""
    found = observe_intent(root, ())
    return Snapshot(
        requests=tuple(found.requests),
        settings=tuple(found.settings),
        maps=tuple(found.maps),
        distribution=parse_os_release(root.read_or_empty("etc/os-release")),
        problems=tuple(found.problems),
    )
