"""The files of an image."""

from __future__ import annotations

import os

from nfstuned.host.root import WitnessRoot


class ImageRoot(WitnessRoot):
    """An image's files."""

    def __init__(self, folder: str) -> None:
        """Take the folder; raises OSError where it is none."""
        os.listdir(folder)
        super().__init__(folder)
