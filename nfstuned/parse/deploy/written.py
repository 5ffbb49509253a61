"""The units and manifests that a script writes, with the mounts of its commands."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Local, Misnamed, Request, Unexpanded
from nfstuned.parse.deploy.deployment import Found
from nfstuned.parse.deploy.docker import compose_requests, is_compose
from nfstuned.parse.deploy.hostfiles import unit_requests
from nfstuned.parse.deploy.kubernetes import is_manifest, kubernetes_requests
from nfstuned.parse.deploy.script import EXPANDED, YAML, WrittenFile, marked, parse_command
from nfstuned.parse.deploy.shell import MARK, Word
from nfstuned.parse.yaml import parse_documents

_SEVERAL = "a file that several commands write"
_VARIABLE = "<variable>"
"""A placeholder, as people write it into YAML."""


def script_requests(text: str, file: str) -> Iterator[Found]:
    """Yield the mounts of a script's commands, and of the units and manifests that it writes.

    A unit with a variable, and a file that several commands write, is named, not judged.
    """
    files: dict[str, list[Word]] = {}
    for row in parse_command(text, file):
        if isinstance(row, WrittenFile):
            files.setdefault(row.name, []).append(row.text)
        else:
            yield row
    yield from (row for manifest in files.pop("", ()) for row in _of_manifest(manifest, file))
    for name in [name for name in files if name.endswith(YAML)]:
        texts = files.pop(name)
        rows = [row for manifest in texts for row in _of_manifest(manifest, file)]
        if texts[1:] and any(isinstance(row, Request) for row in rows):
            rows = [Unexpanded(_SEVERAL, file, _first(texts[0].lines))]
        yield from rows
    yield from _of_units(files, file)


def _of_manifest(text: Word, file: str) -> Iterator[Found]:
    """Yield the requests of manifests of Kubernetes, or of a compose file."""
    rows: list[Found] = []
    try:
        for document in parse_documents(marked(text.text).replace(MARK, _VARIABLE), file):
            if is_manifest(document):
                rows += kubernetes_requests(document, file)
            elif is_compose(document):
                rows += compose_requests(document, file)
    except ParseError as error:
        rows.append(Unexpanded("a text that is no YAML", file, error.line))
    yield from (_moved(row, text.lines, file) for row in rows)


def _of_units(files: dict[str, list[Word]], file: str) -> Iterator[Found]:
    """Yield the requests of units and drop-ins by their names."""
    whole = {name: "\n".join(marked(word.text) for word in words) for name, words in files.items()}
    for unit, row in unit_requests(whole):
        place = row.request if isinstance(row, (Misnamed, Local)) else row
        lines, name = files[place.file][0].lines, posixpath.basename(unit)
        if files[unit][1:] or files[place.file][1:]:
            yield Unexpanded(_SEVERAL, file, _first(lines))
        elif isinstance(place, Request) and (
            MARK in f"{name}{place.source}{place.point}{place.options}" or "{" in name
        ):
            yield Unexpanded(EXPANDED, file, _first(lines))
        else:
            moved = _moved(row, lines, file)
            yield moved._replace(unit=unit) if isinstance(moved, Misnamed) else moved


def _moved(row: Found, lines: Sequence[int], file: str) -> Found:
    """Return a row of a text with these lines in a file."""

    def at(line: int) -> int:
        return (lines[min(line, len(lines)) - 1] or _first(lines)) if line else 0

    def place(request: Request) -> Request:
        below = tuple(map(at, request.option_lines))
        return request._replace(
            file=file, line=at(request.line), option_lines=below, source_line=at(request.source_line)
        )

    match row:
        case Request():
            return place(row)
        case Misnamed():
            return row._replace(request=place(row.request))
        case Local():
            return row._replace(request=place(row.request), below=place(row.below))
        case Unexpanded():
            return row._replace(file=file, line=at(row.line))
        case ParseError():
            return type(row)(file, at(row.line), row.message)


def _first(lines: Sequence[int]) -> int:
    """Return the first line with a text."""
    return next(filter(None, lines), 1)
