"""The journal's entries by journalctl(1), for installations without the Python library of systemd."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, cast

from nfstuned.host.tools import search_path

_MICROSECONDS = "__REALTIME_TIMESTAMP"
_MOST_ERRORS = 1000
"""Characters of an error message."""


def read_entries(
    matches: Sequence[str], since_s: float | None, folder: str | None
) -> Iterator[Mapping[str, object]]:
    """Yield the entries that match, since a Unix time, in the form of systemd-python's reader.

    `folder` is another host's journal. Raises OSError where journalctl cannot be run, or fails.
    """
    argv = ["journalctl", "--output=json", "--all", "--quiet", "--no-pager"]
    argv += [] if folder is None else [f"--directory={folder}"]
    argv += [] if since_s is None else [f"--since=@{int(max(0.0, since_s))}"]
    environment = {**os.environ, "PATH": search_path(), "LC_ALL": "C"}
    with tempfile.TemporaryFile() as errors:
        command = [*argv, *matches]
        with subprocess.Popen(  # noqa: S603 - no shell
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        ) as process:
            try:
                for line in cast("IO[bytes]", process.stdout):
                    entry = _entry(line)
                    if since_s is None or entry[_MICROSECONDS] >= since_s * 1e6:
                        yield entry
                status = process.wait()
            finally:
                process.kill()
        if status:
            errors.seek(0)
            why = errors.read(_MOST_ERRORS).decode(errors="replace").strip()
            raise OSError(errno.EIO, f"journalctl ended with {status}: {why.partition(chr(10))[0]}")


def _entry(line: bytes) -> dict[str, Any]:
    """Return an entry: text that is no UTF-8 comes as a list of bytes (systemd.io/JOURNAL_EXPORT_FORMATS).

    Raises OSError for a line that is cut.
    """
    try:
        entry: dict[str, Any] = {name: _value(value) for name, value in json.loads(line).items()}
        entry[_MICROSECONDS] = int(entry[_MICROSECONDS])
    except (ValueError, KeyError, TypeError):
        raise OSError(errno.EIO, "journalctl printed a line that is not an entry") from None
    return entry


def _value(value: object) -> object:
    if isinstance(value, list):
        return bytes(value) if all(isinstance(part, int) for part in value) else [*map(_value, value)]
    return value
