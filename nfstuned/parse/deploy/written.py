"""The units and manifests that a script writes, with the mounts of its commands."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Local, Misnamed, Request, Unexpanded
from nfstuned.parse.deploy.deployment import RELEVANT, Found, moved
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
    machines: dict[str, dict[str, list[Word]]] = {}
    for row in parse_command(text, file):
        if isinstance(row, WrittenFile):
            machines.setdefault(row.group, {}).setdefault(row.name, []).append(row.text)
        else:
            yield row
    for group, files in machines.items():
        yield from _grouped((*_of_manifests(files, file), *_of_units(files, file)), group)


def _grouped(rows: Iterable[Found], group: str) -> Iterator[Found]:
    """Yield the rows; requests without a group of their own get this one."""
    for row in rows:
        yield row._replace(group=row.group or group) if isinstance(row, Request) else row


def _of_manifests(files: Mapping[str, list[Word]], file: str) -> Iterator[Found]:
    """Yield the requests of manifests; those of the same object are alternatives, for several clusters."""
    owners: set[str] = set()
    for name, texts in files.items():
        if name and not name.endswith(YAML):
            continue
        for text in texts:
            rows = [*_of_manifest(text, file)]
            requests = [row for row in rows if isinstance(row, Request)]
            if name and texts[1:] and requests:
                yield Unexpanded(_SEVERAL, file, _first(texts[0].lines))
                break
            objects = {request.owner for request in requests if request.owner}
            again = not objects.isdisjoint(owners)
            owners |= objects
            yield from _grouped(rows, f"{file}:{_first(text.lines)}" if again else "")


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
        if RELEVANT.search(text.text):
            rows.append(Unexpanded("a text that is no YAML", file, error.line))
    yield from (moved(row, _place(text.lines), file) for row in rows)


def _of_units(files: Mapping[str, list[Word]], file: str) -> Iterator[Found]:
    """Yield the requests of units and drop-ins by their names."""
    units = {name: words for name, words in files.items() if name and not name.endswith(YAML)}
    whole = {name: "\n".join(marked(word.text) for word in words) for name, words in units.items()}
    for unit, row in unit_requests(whole):
        place = row.request if isinstance(row, (Misnamed, Local)) else row
        lines, name = files[place.file][0].lines, posixpath.basename(unit)
        if any(len(files.get(each, ())) > 1 for each in (unit, place.file)):
            yield Unexpanded(_SEVERAL, file, _first(lines))
        elif isinstance(place, Request) and (
            MARK in f"{name}{place.source}{place.point}{place.options}" or "{" in name
        ):
            yield Unexpanded(EXPANDED, file, _first(lines))
        else:
            found = moved(row, _place(lines), file)
            if isinstance(row, Request) and isinstance(found, Request) and row.source_file:
                at = _place(files[row.source_file][0].lines)
                found = found._replace(source_line=at(row.source_line))
            yield found._replace(unit=unit) if isinstance(found, Misnamed) else found


def _place(lines: Sequence[int]) -> Callable[[int], int]:
    """Return a function that gives the script's line of a line of a text with these lines."""
    return lambda line: (lines[min(line, len(lines)) - 1] or _first(lines)) if line else 0


def _first(lines: Sequence[int]) -> int:
    """Return the first line with a text."""
    return next(filter(None, lines), 1)
