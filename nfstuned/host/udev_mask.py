"""Masks for the udev rules of distributions, made and taken back by the unit while its daemon runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from nfstuned.host.files.write import finished, link_name, make_folder, opened_folder
from nfstuned.host.root import Root
from nfstuned.model.udev import FOLDER_MADE, MASK, MASKED_NAMES, MASKS, is_mask

_UDEV = "run/udev"
_RELOAD = ("udevadm", "control", "--reload", "--timeout=10")
_RELOAD_S = 15.0


def reload_rules() -> str:
    """Have udev read its rules again; return why it could not, "" where it did."""
    from nfstuned.host.tools import run_tool  # noqa: PLC0415 - the unit mostly ends without it

    return run_tool(_RELOAD, _RELOAD_S).problem


def udev_runs(root: Root) -> bool:
    """Return whether there is a udev that reads rules."""
    return root.exists(_UDEV)


def made_masks(root: Root) -> tuple[str, ...]:
    """Return the names that nfstuned masks now. Raises OSError."""
    paths = {name: f"{MASKS}/{name}" for name in MASKED_NAMES}
    return tuple(name for name, path in paths.items() if root.exists(path) and is_mask(root.read(path)))


def make_masks(root: Root, names: Iterable[str]) -> None:
    """Mask the rules files of these names. Raises OSError."""
    folder, text = root.path(MASKS), MASK
    for name in names:
        if make_folder(folder):
            text += FOLDER_MADE
        try:
            with opened_folder(folder) as folder_fd, finished(folder_fd, text.encode()) as new:
                link_name(folder_fd, new, name)
        except OSError as error:
            where = error.filename and os.path.join(folder, error.filename)
            raise OSError(error.errno, error.strerror, where) from None


def take_masks(root: Root, names: Iterable[str]) -> None:
    """Take the masks of these names back, and the folder if it was made for them. Raises OSError."""
    made = False
    for name in names:
        made |= root.read(f"{MASKS}/{name}").endswith(FOLDER_MADE)
        os.unlink(root.path(f"{MASKS}/{name}"))
    if made:
        with suppress(OSError):
            os.rmdir(root.path(MASKS))
