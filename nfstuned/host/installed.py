"""The files that come with the program: pages of rules, units, manuals, completions, the udev rule."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import sysconfig
from itertools import accumulate

import nfstuned
from nfstuned.host.image_root import ImageRoot
from nfstuned.model.change import FILES, IDENTITY, SERVICES

_PACKAGE = os.path.dirname(os.path.abspath(nfstuned.__file__))
_PAGES = os.path.join(_PACKAGE, "data", "rules")
_CHECKOUT = os.path.dirname(_PACKAGE)
_PAGES_OF_CHECKOUT = os.path.join(_CHECKOUT, "docs", "rules")
_TO_INSTALL = os.path.join(_PACKAGE, "data", "install")
_BAKED = os.path.join(_PACKAGE, "data", "bake")
"""The files for an image; a package has them, too, unlike those of _TO_INSTALL."""
_COMMAND = b"/usr/bin/nfstuned "
"""The command of units: a word of their own, or of a shell's."""
_PLAIN = re.compile(r"[\w/.+@~-]+", re.ASCII)
"""A path that needs no quotes in a unit (systemd.syntax(7))."""


def page(rule: str) -> str:
    """Return a rule's page in Markdown; "" when it has none."""
    folder = _PAGES if os.path.isdir(_PAGES) else _PAGES_OF_CHECKOUT
    try:
        with open(os.path.join(folder, f"{rule}.md"), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def contents(prefix: str, command: str) -> dict[str, bytes]:
    """Return the text of each file by its path below the root; the units start `command`.

    Raises OSError where this installation has no such files: a package's has none.
    """
    texts = {f"{prefix}/{place}": _source(name) for name, place in FILES.items()}
    for unit in (f"{prefix}/{FILES[name]}" for name in SERVICES):
        texts[unit] = texts[unit].replace(_COMMAND, f"{command} ".encode())
    return texts


def own_command(root: ImageRoot) -> str:
    """Return the command of this installation as the host or image of `root` knows it. Raises OSError.

    Root will run it at each boot: so nobody else may have written it.
    """
    # Of `python -m nfstuned` it is the command next to that Python.
    named = os.path.basename(sys.argv[0]) == "nfstuned" and "/" in sys.argv[0]
    path = os.path.realpath(sys.argv[0] if named else os.path.join(sysconfig.get_path("scripts"), "nfstuned"))
    top = os.path.realpath(root.prefix)
    inside = path.removeprefix(top.rstrip("/")) if path.startswith(top.rstrip("/") + "/") else path
    if not _PLAIN.fullmatch(inside):
        raise OSError(
            errno.EINVAL, "a unit cannot name it: install nfstuned in a folder with a plain name", path
        )
    if not root.executable(inside.lstrip("/")):
        reason = f"{root.prefix} has no such command: install nfstuned there, at the same place"
        raise OSError(errno.ENOENT, reason, inside)
    # Whoever owns a folder, or may write there, can put another file or folder into the place of this one.
    # Debian's group staff may write to /usr/local: a folder's group counts as the administrators'.
    for name in accumulate(inside.split("/")[1:], "{}/{}".format):
        with root.place(name) as (above, part):
            status = os.stat(part, dir_fd=above, follow_symlinks=False)
        # In a sticky folder nobody replaces another user's file.
        of_folder = 0 if status.st_mode & stat.S_ISVTX else stat.S_IWOTH
        forbidden = of_folder if stat.S_ISDIR(status.st_mode) else stat.S_IWGRP | stat.S_IWOTH
        if status.st_mode & forbidden or status.st_uid not in {0, os.geteuid()}:
            reason = "another user could change the command that root runs: install nfstuned as root"
            raise OSError(errno.EPERM, reason, f"{root.prefix.rstrip('/')}/{name}")
    return inside


def baked_text(source: str) -> bytes:
    """Return the text of RULE or IDENTITY, which an image may have without the program. Raises OSError."""
    name = os.path.basename(source) if os.path.isdir(_BAKED) else source
    with open(os.path.join(_BAKED if os.path.isdir(_BAKED) else _CHECKOUT, name), "rb") as file:
        return file.read()


def _source(name: str) -> bytes:
    """Return a file of this installation: in the package as it is installed, or in a checkout."""
    folder = _BAKED if name == IDENTITY else _TO_INSTALL
    path = (
        os.path.join(folder, os.path.basename(name))
        if os.path.isdir(folder)
        else os.path.join(_CHECKOUT, name)
    )
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        reason = (
            "this installation has no files to install: if a package brought it, the package has installed "
            "them"
        )
        raise OSError(errno.ENOENT, reason, path) from None
