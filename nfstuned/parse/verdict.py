"""A host's verdict: the document nfstuned.check/1 (docs/json.md), also of other hosts and versions.

Its author is a stranger: a value of another kind than the document has is refused, and unknown keys are
ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import NamedTuple

from nfstuned.errors import ParseError
from nfstuned.model.facts import BROKEN, CLEAN, Severity
from nfstuned.parse.fields import count, quoted

CHECK = "nfstuned.check/1"
MOST_FINDINGS = 10_000
"""In a document."""
_RULE = re.compile(r"(?:NFS|SMB)[0-9]{3}")
_NAME = re.compile(r"[a-z0-9-]{1,80}")
_MOST_NAME = 253
"""Characters of a host's name, as in DNS."""
_IN_WORD = r"""[^\s,;()"'=]"""
_WORD = re.compile(rf"{_IN_WORD}+")
_MARKED = re.compile(rf"(?<!{_IN_WORD})(?={_IN_WORD}*(?:[0-9/]|\.\w)){_IN_WORD}+")
"""A word with a number, a path or a domain: most words have none, and need no look by themselves."""
_FEW = 20
"""With more plain names a look at each word is quicker than a look for each name."""
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_ADDRESS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")


class HostFinding(NamedTuple):
    """A finding of a host; its patterns are the texts without the names and numbers of its mounts."""

    rule: str
    name: str
    severity: Severity
    message: str
    remedy: str
    source: str
    pattern: str
    remedy_pattern: str


class Verdict(NamedTuple):
    """A host's document."""

    host: str
    time_s: float
    version: str
    findings: tuple[HostFinding, ...]
    unknown: int
    """The number of unanswered questions and lines that were not understood."""
    broken: bool
    """The check could not judge all of it: its exit status was 2."""


class _Names(NamedTuple):
    """The names of a host and of its mounts."""

    words: Mapping[str, str]
    """By name, the word that stands for it in a pattern."""
    plain: Sequence[str]
    """The names that a look at marked words alone would miss."""


def parse_verdict(text: str, file: str, line: int = 0) -> Verdict:
    """Return the verdict in a document of `nfstuned check --format json`. Raises ParseError."""
    if not text.strip():
        raise ParseError(file, line, "empty: its host gave no document")
    try:
        return _verdict(_document(text))
    except RecursionError:
        raise ParseError(file, line, f"not JSON of {CHECK}: too deeply nested") from None
    except json.JSONDecodeError as error:
        raise ParseError(file, line, f"not JSON ({error}); nfstuned check --format json writes it") from None
    except ValueError as error:
        raise ParseError(file, line, str(error)) from None


def _document(text: str) -> Mapping[str, object]:
    document = json.loads(text)
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != CHECK:
        shown = quoted(schema) if isinstance(schema, str) else "missing"
        raise ValueError(f"schema is {shown}, expected {CHECK}: nfstuned check --format json writes it")
    known: Mapping[str, object] = document
    return known


def _verdict(document: Mapping[str, object]) -> Verdict:
    host = document.get("host")
    if not isinstance(host, str) or not 0 < len(host) <= _MOST_NAME:
        raise ValueError("host is missing, or no name: a version after 0.1 writes it")
    # A rule that needs a host alone is skipped only without a host.
    of_files = any(_list(row, "needs") == ["host"] for row in _rows(document, "skipped"))
    if document.get("root") != "/" or of_files:
        raise ValueError(f"it judges an image or files, and not {quoted(host)}: leave it out")
    exit_code = document.get("exit_code")
    if exit_code not in range(BROKEN + 1) or isinstance(exit_code, bool):
        raise ValueError(f"exit_code is {quoted(repr(exit_code))}, expected {CLEAN} to {BROKEN}")
    rows = _rows(document, "findings")
    if len(rows) > MOST_FINDINGS:
        raise ValueError(f"more than {count(MOST_FINDINGS, 'finding')}: not read")
    names = _names(document, host)
    return Verdict(
        host=host,
        time_s=_time(document),
        version=_text(document, "version"),
        findings=tuple(_finding(row, names) for row in rows),
        unknown=len(_list(document, "unknown")) + len(_list(document, "problems")),
        broken=exit_code == BROKEN,
    )


def _time(document: Mapping[str, object]) -> float:
    text = _text(document, "time")
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        raise ValueError(f"time is {quoted(text)}, expected UTC such as 2026-11-20T13:00:00Z") from None


def _finding(row: Mapping[str, object], names: _Names) -> HostFinding:
    rule, name, severity = (_text(row, key) for key in ("rule", "name", "severity"))
    if not (_RULE.fullmatch(rule) and _NAME.fullmatch(name)):
        raise ValueError(f"a finding's rule is {quoted(f'{rule} {name}')}, expected an id and a name")
    message, remedy = _text(row, "message"), _text(row, "remedy")
    return HostFinding(
        rule,
        name,
        Severity(severity),
        message,
        remedy,
        _text(row, "source"),
        _pattern(message, names),
        _pattern(remedy, names),
    )


def _names(document: Mapping[str, object], host: str) -> _Names:
    """Return the words that stand in a pattern for names of the host and its mounts."""
    names = {host: "HOST"}
    for row in _rows(document, "mounts"):
        source = _text(row, "source")
        server = source.strip("/").partition("/")[0].rstrip(":")
        names |= {server: "SERVER", source: "SOURCE", _text(row, "mount_point"): "MOUNT"}
    names.pop("", None)
    return _Names(names, [name for name in names if not _MARKED.fullmatch(name)])


def _pattern(text: str, names: _Names) -> str:
    """Return a text without the names and numbers in which the same finding of another host differs."""

    def general(match: re.Match[str]) -> str:
        word = match[0].rstrip(":.")
        end = match[0][len(word) :]
        if word in names.words:
            return names.words[word] + end
        if not word[-1:].isdigit():
            return match[0]
        if _ADDRESS.fullmatch(word):
            return "ADDRESS" + end
        file, colon, number = word.rpartition(":")
        return f"{file}{colon}N{end}" if _NUMBER.fullmatch(number) else match[0]

    plain = len(names.plain) > _FEW or any(name in text for name in names.plain)
    return (_WORD if plain else _MARKED).sub(general, text)


def _unlike(key: str, value: object, kind: str) -> ValueError:
    shown = "missing" if value is None else quoted(json.dumps(value)[:200])
    return ValueError(f"{key} is {shown}, expected {kind}")


def _text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise _unlike(key, value, "a text")
    return value


def _list(row: Mapping[str, object], key: str) -> list[object]:
    value = row.get(key)
    if not isinstance(value, list):
        raise _unlike(key, value, "a list")
    return value


def _rows(row: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    rows = _list(row, key)
    found: list[Mapping[str, object]] = [each for each in rows if isinstance(each, dict)]
    if len(found) < len(rows):
        raise ValueError(f"{key} has something that is no object")
    return found
