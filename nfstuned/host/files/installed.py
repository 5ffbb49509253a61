"""The files that come with the program: pages of rules, and what is put where the system looks."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import sysconfig
from collections.abc import Iterable
from contextlib import suppress

import nfstuned
from nfstuned.host.files.whole import (
    FOLDER_FOR_ALL,
    NEW,
    link_name,
    opened_folder,
    rename,
    temporary_name,
    write_new,
)
from nfstuned.host.image_root import ImageRoot
from nfstuned.host.root import UnusableError
from nfstuned.model.files import FILES, IDENTITY, SERVICES, Content, Link
from nfstuned.parse.etc.installed import digest

_PACKAGE = os.path.dirname(os.path.abspath(nfstuned.__file__))
_PAGES = os.path.join(_PACKAGE, "data", "rules")
_PAGES_OF_CHECKOUT = os.path.join(os.path.dirname(_PACKAGE), "docs", "rules")
_INSTALLED = os.path.join(_PACKAGE, "data", "install")
_BAKED = os.path.join(_PACKAGE, "data", "bake")
"""Unlike the files to install it is in packages as well."""
_CHECKOUT = os.path.dirname(_PACKAGE)
_COMMAND = b"/usr/bin/nfstuned "
"""What units start: as a word of their own, or of a shell's."""
_PLAIN = re.compile(r"[\w/.+@~-]+", re.ASCII)
"""What needs no quotes in a unit (systemd.syntax(7))."""


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

    Raises OSError where this installation has none of its own, as that of a package.
    """
    texts = {f"{prefix}/{place}": _source(name) for name, place in FILES.items()}
    for unit in (f"{prefix}/{FILES[name]}" for name in SERVICES):
        texts[unit] = texts[unit].replace(_COMMAND, f"{command} ".encode())
    return texts


def own_command(root: ImageRoot) -> str:
    """Return the command of this installation as the host or image of `root` knows it. Raises OSError.

    Root will run it at each boot: so nobody else may have written it.
    """
    # Of `python -m nfstuned` it is the command beside that Python.
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
    _demand_own(path, os.stat(path), stat.S_IWGRP | stat.S_IWOTH)
    # Whoever owns a folder, or may write there, can put another file or folder into the place of this one.
    parts = inside.split("/")[1:-1]
    above = path.removesuffix(inside)
    for depth in range(1 if above else 0, len(parts) + 1):
        folder = "/".join((above, *parts[:depth])) or "/"
        status = os.stat(folder)
        _demand_own(folder, status, 0 if status.st_mode & stat.S_ISVTX else stat.S_IWOTH)
    return inside


def _demand_own(path: str, status: os.stat_result, forbidden: int) -> None:
    """Raise OSError for a file or folder that is another user's, or has a forbidden bit of its mode."""
    if status.st_mode & forbidden or status.st_uid not in {0, os.geteuid()}:
        reason = "another user could change what root would then run: install nfstuned as root"
        raise OSError(errno.EPERM, reason, path)


def baked_text(source: str) -> bytes:
    """Return the text of RULE or IDENTITY, which an image may have without the program. Raises OSError."""
    name = os.path.basename(source) if os.path.isdir(_BAKED) else source
    with open(os.path.join(_BAKED if os.path.isdir(_BAKED) else _CHECKOUT, name), "rb") as file:
        return file.read()


def digest_at(root: ImageRoot, path: str) -> str | None:
    """Return the digest of a file or a link; None where there is nothing, "" for anything else.

    Raises OSError where it cannot be told, as with folders that this user may not enter.
    """
    try:
        with root.place(path, last=False) as (folder, name):
            kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISLNK(kind):
                return digest(Link(os.readlink(name, dir_fd=folder)))
        return digest(root.read_bytes(path)) if stat.S_ISREG(kind) else ""
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnusableError:
        return ""
    except OSError as error:
        raise OSError(error.errno, error.strerror, root.path(path)) from None


def missing_folders(root: ImageRoot, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the folders that must be made for these files, each before the ones in it."""
    missing: dict[str, None] = {}
    for path in paths:
        parts = path.split("/")[:-1]
        for count in range(1, len(parts) + 1):
            folder = "/".join(parts[:count])
            if not root.exists(folder):
                missing[folder] = None
    return tuple(missing)


def put(root: ImageRoot, path: str, content: Content, before: str | None) -> None:
    """Write a file, whole or not at all, in the place of a file whose digest is `before`. Raises OSError.

    Its folders are made where they are missing. A kill may leave a file beside it that ends with
    ".nfstuned-new", which the next call takes away.
    """
    try:
        for folder in missing_folders(root, [path]):
            with root.place(folder, last=False) as (above, name):
                os.mkdir(name, dir_fd=above)
                os.chmod(name, FOLDER_FOR_ALL, dir_fd=above)
        _put(root, path, content, before)
    except OSError as error:
        raise OSError(error.errno, error.strerror, root.path(path)) from None


def _put(root: ImageRoot, path: str, content: Content, before: str | None) -> None:
    """Write a file into a folder that is there. Raises OSError with names below some folder."""
    with root.place(path, last=False) as (folder_fd, name):
        with temporary_name(folder_fd, name) as new:
            if isinstance(content, Link):
                os.symlink(content.target, new, dir_fd=folder_fd)
            else:
                write_new(folder_fd, new, content)
            if before is None:
                link_name(folder_fd, new, name)
            elif digest_at(root, path) == before:
                rename(folder_fd, new, name)
            else:
                raise OSError(errno.EBUSY, "was changed meanwhile: look again", path)
        with opened_folder(".", folder_fd) as folder:
            os.fsync(folder)


def take(root: ImageRoot, path: str) -> None:
    """Remove a file; it is no error when it is gone. Raises OSError."""
    try:
        with root.place(path, last=False) as (folder, name):
            # A file system that is read-only refuses to remove also what is not there.
            os.stat(name, dir_fd=folder, follow_symlinks=False)
            os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise OSError(error.errno, error.strerror, root.path(path)) from None


def sweep(root: ImageRoot, path: str) -> None:
    """Remove what a kill left beside a file while it was written. Raises OSError."""
    folder, _, name = path.rpartition("/")
    with suppress(NotADirectoryError):
        take(root, f"{folder}/.{name}{NEW}")


def take_folders(root: ImageRoot, folders: Iterable[str]) -> None:
    """Remove those of the folders that are empty, the inner ones first."""
    for folder in reversed(tuple(folders)):
        with suppress(OSError), root.place(folder, last=False) as (above, name):
            os.rmdir(name, dir_fd=above)


def _source(name: str) -> bytes:
    """Return a file of this installation: in the package as it is installed, or in a checkout."""
    folder = _BAKED if name == IDENTITY else _INSTALLED
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
            "this installation has no files to install: where a package brought it, it has done that itself"
        )
        raise OSError(errno.ENOENT, reason, path) from None
