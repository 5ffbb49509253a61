"""Masks for the udev rules of distributions, made and taken back by the unit while its daemon runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from nfstuned.host.root import Root
from nfstuned.model.masks import FOLDER_MADE, MASK, MASKED_NAMES, MASKS, is_mask

_UDEV = "run/udev"
_NEW = ".nfstuned-new"
_RELOAD = ("udevadm", "control", "--reload", "--timeout=10")
_RELOAD_S = 15.0


def reload_rules() -> str:
    """Have udev read its rules again; return why it could not, "" where it did."""
    from nfstuned.host.command import run  # noqa: PLC0415 - the unit mostly ends without it

    return run(_RELOAD, _RELOAD_S).problem


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
        with suppress(FileExistsError):
            os.mkdir(folder, 0o755)
            os.chmod(folder, 0o755)  # noqa: S103 - whatever the umask is: udev's other folders are so
            text += FOLDER_MADE
        # Its name must not end with .rules before it is whole.
        new = f"{folder}/.{name}{_NEW}"
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            os.write(fd, text.encode())
            os.fchmod(fd, 0o644)
            # A link, unlike a rename, takes no name that somebody else has got meanwhile.
            os.link(new, f"{folder}/{name}")
        finally:
            os.close(fd)
            os.unlink(new)


def take_masks(root: Root, names: Iterable[str]) -> None:
    """Take the masks of these names back, and the folder if it was made for them. Raises OSError."""
    made = False
    for name in names:
        made |= root.read(f"{MASKS}/{name}").endswith(FOLDER_MADE)
        os.unlink(root.path(f"{MASKS}/{name}"))
    if made:
        with suppress(OSError):
            os.rmdir(root.path(MASKS))
