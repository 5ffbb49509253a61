"""`nfstuned udev mask` and `nfstuned udev unmask`, which the unit runs before its daemon and after it.

They stand here and not with the commands, which are slow to load: mounts at boot wait for the unit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from nfstuned.core.udev.mask import choose
from nfstuned.host.change.udev_mask import (
    made_masks,
    make_masks,
    observe_masks,
    reload_rules,
    take_masks,
    udev_runs,
)
from nfstuned.host.root import Root
from nfstuned.model.udev import MASKS

DONE, FAILED = 0, 1


def change(root: Root, verb: str, tell: Callable[[], str] = reload_rules) -> int:
    """Do what a command's name says, and print what became of each file; return the exit status."""
    try:
        return {"mask": _mask, "unmask": _unmask}[verb](root, tell)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        hint = "; run it as root" if isinstance(error, PermissionError) and os.geteuid() else ""
        sys.stderr.write(f"udev's rules stay as they are: {where}{error.strerror}{hint}\n")
        return FAILED


def _mask(root: Root, tell: Callable[[], str]) -> int:
    """Bring the masks in line with what an administrator has set by now."""
    if not udev_runs(root):
        return DONE
    seen = observe_masks(root)
    choice = choose(seen.files, seen.settings)
    wanted = [one.name for one in choice if not one.left]
    new = [name for name in wanted if name not in seen.masked]
    old = [name for name in seen.masked if name not in wanted]
    take_masks(root, old)
    make_masks(root, new)
    for name in old:
        sys.stdout.write(f"/{MASKS}/{name} removed\n")
    for name in wanted:
        sys.stdout.write(f"/{MASKS}/{name} masks the distribution's rule\n")
    for one in choice:
        if one.left:
            sys.stdout.write(f"{one.name} is left as it is: {one.left}\n")
    return _told(tell) if old or new else DONE


def _unmask(root: Root, tell: Callable[[], str]) -> int:
    """Leave udev as it was."""
    masked = made_masks(root)
    take_masks(root, masked)
    for name in masked:
        sys.stdout.write(f"/{MASKS}/{name} removed\n")
    return _told(tell) if masked else DONE


def _told(tell: Callable[[], str]) -> int:
    problem = tell()
    if problem:
        sys.stderr.write(f"udev could not be told: {problem}\n")
    return FAILED if problem else DONE
