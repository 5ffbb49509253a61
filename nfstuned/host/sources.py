"""The files of a check before a deployment: files by name, and all files below folders."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence

from nfstuned.errors import ParseError
from nfstuned.host.root import LARGEST, STDIN, read_proposal
from nfstuned.parse.deploy.deployment import JudgedFile

MOST_FILES = 100_000
"""Below the folders of a check."""
_START = 8192
_SUFFIXES = (".yaml", ".yml", ".json", ".sh", ".tf", "fstab")
_UTF_16 = ("\udcff\udcfe", "\udcfe\udcff")
"""The byte order marks, as bytes that are not UTF-8."""
_PASSED_OVER = frozenset({"node_modules", "__pycache__"})
"""Folders with other people's files; folders with a dot before their names are passed over, too."""


def read_files(paths: Sequence[str]) -> Iterator[JudgedFile | ParseError]:
    """Yield the text of each file, and an error for each that could not be read.

    Of a folder all files are read that are text, in the order of their names; no link to a folder is
    followed. `-` is the standard input.
    """
    seen = 0
    for path in paths:
        if path != STDIN and os.path.isdir(path):
            for file in files_below(path):
                seen += 1
                if seen > MOST_FILES:
                    yield ParseError(
                        path, 0, f"more than {MOST_FILES} files: {file} and all after it were not read"
                    )
                    return
                yield from _read(file, named=False)
        else:
            yield from _read(path, named=True)


def files_below(folder: str) -> Iterator[str]:
    """Yield the files below a folder, and each folder that cannot be listed: to read it fails."""
    failed: list[OSError] = []
    for place, folders, files in os.walk(folder, onerror=failed.append):
        folders[:] = sorted(name for name in folders if name not in _PASSED_OVER and not name.startswith("."))
        yield from (os.path.normpath(os.path.join(place, name)) for name in sorted(files))
    yield from (str(error.filename) for error in failed)


def _read(file: str, *, named: bool) -> Iterator[JudgedFile | ParseError]:
    try:
        if named or _is_regular(file):
            text = _text(file)
            if named or "\0" not in text[:_START]:
                yield JudgedFile(file, text, named)
    except OSError as error:
        if named or error.errno != errno.ENOENT:  # a link that leads nowhere, or a file that has gone
            yield ParseError(file, 0, error.strerror or str(error))


def _text(file: str) -> str:
    """Return a file's text, also in UTF-16 with its mark, as Windows writes it. Raises OSError."""
    text = read_proposal(file)
    if text.startswith(_UTF_16):
        return text.encode("utf-8", "surrogateescape").decode("utf-16", "replace")
    return text


def _is_regular(file: str) -> bool:
    """Whether to read a file of a folder: it is regular, has a text, and may ask for mounts. Raises OSError.

    A file larger than LARGEST is read, which fails, only where its name has a suffix of such files.
    """
    status = os.stat(file)
    if stat.S_ISDIR(status.st_mode):
        return True  # a folder that cannot be listed
    small = status.st_size <= LARGEST or file.endswith(_SUFFIXES)
    return stat.S_ISREG(status.st_mode) and status.st_size > 0 and small
