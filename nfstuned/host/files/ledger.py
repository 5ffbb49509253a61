"""Files that a command wrote, and its list of them: exactly these can be taken back, also after a kill.

Each is written by descriptors of folders inside the root, never by a path, which a link could lead out of it.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from nfstuned.errors import ParseError
from nfstuned.host.files.write import (
    FOLDER_FOR_ALL,
    finished,
    link_name,
    opened_folder,
    remove_leftovers,
    rename,
)
from nfstuned.host.image_root import ImageRoot
from nfstuned.host.root import UnusableError
from nfstuned.model.change import LINK, Content, FileStep, Installed, Link, Work, digest, encoded, is_file

SCHEMA = "nfstuned.installed/1"
_DIGEST = rf"(?s)[0-9a-f]{{64}}|{LINK}.+"


class Ledger:
    """The list of files that a command wrote, kept in a file below a root."""

    def __init__(self, root: ImageRoot, path: str) -> None:
        """Read the list. Raises ParseError where it is damaged, and OSError."""
        self._root = root
        self._path = path
        self.known = self._read()

    def _read(self) -> Installed:
        digest_now = digest_at(self._root, self._path)
        if digest_now is None:
            return Installed()
        if not is_file(digest_now):
            raise ParseError(self._root.path(self._path), 0, "is not a regular file: move it away")
        return parse_installed(self._root.read(self._path), self._root.path(self._path))

    def digests(self, paths: Iterable[str] = ()) -> dict[str, str | None]:
        """Return the digest of each of these files, and of those in the list. Raises OSError."""
        return {path: digest_at(self._root, path) for path in (*paths, *self.known.digests)}

    def carry_out(self, work: Work) -> None:
        """Write and remove as planned. Raises OSError.

        The list comes first, with the digests of each file before and afterwards, and goes last: a kill
        leaves no file that it does not name.
        """
        self.tidy()
        if not work.contents:
            self._withdraw(work)
            take_folders(self._root, self.known.folders)
            take(self._root, self._path)
            take_folders(self._root, self.known.folders)
            return
        known, contents = self.known, work.contents
        written = [step.path for step in work.steps if step.step is FileStep.WRITE]
        after = {path: values for path, values in known.digests.items() if path in contents}
        after |= {path: (digest(contents[path]),) for path in written}
        during = {path: (*values, *known.digests.get(path, ())) for path, values in after.items()}
        made = missing_folders(self._root, (*written, self._path))
        folders = tuple(dict.fromkeys((*known.folders, *made)))
        texts = {**known.before, **work.replaced}
        self._write(Installed({**known.digests, **during}, folders, texts))
        for path in written:
            put(self._root, path, contents[path], work.found[path])
        self._withdraw(work)
        self._write(Installed(after, folders, {path: text for path, text in texts.items() if path in after}))

    def finished(self, work: Work) -> set[str]:
        """Return the files with a step that is carried out; a file that cannot be read has none."""
        paths = set()
        for step in work.steps:
            if step.step not in {FileStep.WRITE, FileStep.REMOVE}:
                continue
            content = work.contents.get(step.path, self._replaced(step.path))
            with suppress(OSError):
                if digest_at(self._root, step.path) == (None if content is None else digest(content)):
                    paths.add(step.path)
        return paths

    def _replaced(self, path: str) -> bytes | None:
        text = self.known.before.get(path)
        return None if text is None else encoded(text)

    def tidy(self) -> None:
        """Remove the temporary files that a kill left next to the files of the list."""
        for folder in {path.rpartition("/")[0] for path in (*self.known.digests, self._path)}:
            with suppress(OSError), self._root.place(f"{folder}/x", last=False) as (fd, _):
                remove_leftovers(fd)

    def _withdraw(self, work: Work) -> None:
        for path in (step.path for step in work.steps if step.step is FileStep.REMOVE):
            text = self._replaced(path)
            if text is None:
                take(self._root, path)
            else:
                put(self._root, path, text, work.found[path])

    def _write(self, installed: Installed) -> None:
        text = render_installed(installed).encode()
        put(self._root, self._path, text, digest_at(self._root, self._path))


def digest_at(root: ImageRoot, path: str) -> str | None:
    """Return the digest of a file or a link; None where there is nothing, "" for anything else.

    Raises OSError where nobody knows, as with folders that this user may not enter.
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
    folders: dict[str, None] = {}
    for path in paths:
        parts = path.split("/")[:-1]
        for count in range(1, len(parts) + 1):
            folder = "/".join(parts[:count])
            if not root.exists(folder):
                folders[folder] = None
    return tuple(folders)


def put(root: ImageRoot, path: str, content: Content, before: str | None) -> None:
    """Replace a file that has the digest `before`, or make it where that is None. Raises OSError.

    Missing folders are made.
    """
    with _named(root.path(path)):
        for folder in missing_folders(root, [path]):
            with root.place(folder, last=False) as (above, name):
                os.mkdir(name, dir_fd=above)
                os.chmod(name, FOLDER_FOR_ALL, dir_fd=above)
        with root.place(path, last=False) as (place, name), opened_folder(".", place) as folder_fd:
            with finished(folder_fd, content) as new:
                if before is None:
                    link_name(folder_fd, new, name)
                elif digest_at(root, path) == before:
                    rename(folder_fd, new, name)
                else:
                    raise OSError(errno.EBUSY, "was changed meanwhile: look again")
            os.fsync(folder_fd)


def take(root: ImageRoot, path: str) -> None:
    """Remove a file; it is no error when it is gone. Raises OSError."""
    with suppress(FileNotFoundError), _named(root.path(path)), root.place(path, last=False) as (folder, name):
        # A read-only file system refuses to remove also a file that is not there.
        os.stat(name, dir_fd=folder, follow_symlinks=False)
        os.unlink(name, dir_fd=folder)


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Let an OSError of the block name this path."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


def take_folders(root: ImageRoot, folders: Iterable[str]) -> None:
    """Remove those of the folders that are empty, the inner ones first."""
    for folder in reversed(tuple(folders)):
        with suppress(OSError), root.place(folder, last=False) as (above, name):
            os.rmdir(name, dir_fd=above)


def parse_installed(text: str, file: str) -> Installed:
    """Return the content of a list; raises ParseError for damage: it names files that are to be removed."""
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise ParseError(file, 0, f"its schema is {document['schema']!r}, not {SCHEMA!r}")
        files, texts = document["files"], document.get("before", {})
        digests = {_checked_text(path): _checked_digests(values) for path, values in files.items()}
        folders = tuple(_checked_text(folder) for folder in document["folders"])
        before = {_checked_text(path): _checked_text(value) for path, value in texts.items()}
    except RecursionError:
        raise ParseError(file, 0, "is damaged (nested too deep): remove it, and the files") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ParseError(
            file, 0, f"is damaged ({type(error).__name__}: {error}): remove it, and the files"
        ) from None
    return Installed(digests, folders, before)


def render_installed(installed: Installed) -> str:
    """Return the text of a list; `parse_installed` reads it back."""
    files = {path: list(digests) for path, digests in sorted(installed.digests.items())}
    document: dict[str, object] = {"schema": SCHEMA, "files": files, "folders": list(installed.folders)}
    if installed.before:
        document["before"] = dict(sorted(installed.before.items()))
    return json.dumps(document, indent=1) + "\n"


def _checked_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"no text: {value!r}")
    encoded(value)  # JSON can have halves of a character, which no file and no name has
    return value


def _checked_digests(values: object) -> tuple[str, ...]:
    digests = tuple(map(str, values)) if isinstance(values, list) else ()
    if not digests or not all(re.fullmatch(_DIGEST, each) for each in digests):
        raise ValueError(f"no digests: {values!r}")
    return digests
