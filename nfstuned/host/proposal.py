"""A proposed fstab in the place of the host's own."""

from __future__ import annotations

from nfstuned.host.root import Root


class ProposedRoot(Root):
    """A host whose /etc/fstab is another text; everything else is as it is."""

    def __init__(self, prefix: str, fstab: str) -> None:
        super().__init__(prefix)
        self._fstab = fstab

    def read(self, name: str) -> str:
        """Return a file's text like Root.read, and the proposal for etc/fstab. Raises OSError."""
        return self._fstab if name == "etc/fstab" else super().read(name)
